"""Which offer gives a useful GPU hour for the least money, and which are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from planning.block import Block
from planning.budget import StartupBudget
from planning.catalogue import UnknownName, load
from planning.costs import useful_hours


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A block that AWS would sell: times aware UTC, `fee_usd` the whole fee for all its instances."""

    offering_id: str
    instance_type: str
    instance_count: int
    region: str
    availability_zone: str
    availability_zone_id: str
    start: datetime
    end: datetime
    fee_usd: Decimal
    currency: str

    @property
    def where(self) -> str:
        """The zone by name and id, and where that is: "us-west-2b (usw2-az2), Oregon"."""
        place = load().regions.get(self.region)
        return f"{self.availability_zone} ({self.availability_zone_id})" + (f", {place}" if place else "")

    def bought_as(self, reservation_id: str) -> Block:
        """The block that this offer becomes once it is bought."""
        return Block(
            reservation_id=reservation_id,
            offering_id=self.offering_id,
            instance_type=self.instance_type,
            instance_count=self.instance_count,
            region=self.region,
            availability_zone=self.availability_zone,
            availability_zone_id=self.availability_zone_id,
            start=self.start,
            end=self.end,
            fee_usd=self.fee_usd,
        )


@dataclass(frozen=True, kw_only=True)
class RankedOffer:
    """An offer and what it is worth: no price without a useful hour; `refused` says why it must not be bought."""

    offer: Offer
    useful_hours: Decimal
    usd_per_useful_gpu_hour: Decimal | None
    refused: str | None


def rank(
    offers: Iterable[Offer],
    budget: StartupBudget,
    *,
    max_fee_usd: Decimal | None,
    max_usd_per_useful_hour: Decimal | None,
) -> tuple[RankedOffer, ...]:
    """Offers by price of a useful GPU hour, then by start, then by place; refused ones last.

    The total fee alone would make the shortest block the cheapest. `max_usd_per_useful_hour` caps the fee by the useful
    hours of the whole block; None is no cap.
    """
    ranked = [_rank_one(offer, budget, max_fee_usd, max_usd_per_useful_hour) for offer in offers]
    return tuple(sorted(ranked, key=_order))


def _rank_one(
    offer: Offer, budget: StartupBudget, max_fee_usd: Decimal | None, max_usd_per_useful_hour: Decimal | None
) -> RankedOffer:
    hours = useful_hours(offer.start, offer.end, budget)
    try:
        gpus = load().instance_type(offer.instance_type).gpus * offer.instance_count
    except UnknownName as unknown:
        return RankedOffer(offer=offer, useful_hours=hours, usd_per_useful_gpu_hour=None, refused=str(unknown))
    per_gpu_hour = offer.fee_usd / (hours * gpus) if hours and gpus else None
    refused = _refusal(offer, hours, max_fee_usd, max_usd_per_useful_hour)
    return RankedOffer(offer=offer, useful_hours=hours, usd_per_useful_gpu_hour=per_gpu_hour, refused=refused)


def _refusal(
    offer: Offer, hours: Decimal, max_fee_usd: Decimal | None, max_usd_per_useful_hour: Decimal | None
) -> str | None:
    if offer.currency != "USD":
        return f"the fee is in {offer.currency}, and every cap is in USD"
    if not hours:
        return "it would end before its model could serve"
    if max_fee_usd is not None and offer.fee_usd > max_fee_usd:
        return f"the fee of US${offer.fee_usd:,.2f} is above the cap of US${max_fee_usd:,.2f}"
    per_hour = offer.fee_usd / hours
    if max_usd_per_useful_hour is not None and per_hour > max_usd_per_useful_hour:
        return f"a useful hour costs US${per_hour:,.2f}, above the cap of US${max_usd_per_useful_hour:,.2f}"
    return None


def _order(ranked: RankedOffer) -> tuple[bool, Decimal, datetime, str, str]:
    price = ranked.usd_per_useful_gpu_hour
    known_price = Decimal("Infinity") if price is None else price
    # An id is new with each search: ordered by it, the same market would list itself differently each time.
    offer = ranked.offer
    return (ranked.refused is not None, known_price, offer.start, offer.availability_zone, offer.offering_id)
