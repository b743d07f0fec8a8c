"""What could be rented for a request, best first, and why the rest could not."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from automation.errors import AwsSaysNo, InvalidRequest, NoOffer
from automation.ledger.request import RentRequest
from automation.market import offers
from automation.session.plan import budget_of
from automation.session.staged_weights import region_of
from automation.target import Target
from components.names import ZONES_WITHOUT_EKS
from planning.block import minutes
from planning.catalogue import load
from planning.costs import hours_between
from planning.ranking import Offer, RankedOffer, rank

ON_DEMAND = "on-demand"
"""Stands where a block has its ids: capacity by the hour has none."""

# A block starts at most 8 weeks ahead: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-purchase.html
_AHEAD = timedelta(weeks=8)


def search(request: RentRequest, target: Target) -> tuple[RankedOffer, ...]:
    """What could be bought for a request, best first, those that are refused last.

    AWS also shows the next shorter and longer blocks. One that is longer than what was asked for costs more than was
    asked for, whatever its hours cost; one that starts at once may be up to a day shorter. With staged weights only
    their region is asked. Raises NoOffer when AWS sells nothing like it, InvalidRequest when no model is staged there.
    """
    now = target.clock.now()
    wanted = offers.Wanted(
        instance_type=request.instance_type,
        instance_count=request.instance_count,
        hours=request.hours,
        start_from=now,
        end_until=now + _AHEAD + timedelta(hours=request.hours),
    )
    found = offers.search(target, wanted, _regions(request, target) or offers.enabled_regions(target))
    if not found.offers:
        silent = "".join(f" {region} did not answer: {why}" for region, why in found.unanswered)
        raise NoOffer(
            happened=f"AWS offers no block of {request.instance_count} x {request.instance_type}.{silent}",
            remedy="Offers come and go: ask again later, for other lengths, or rent on demand.",
        )
    ranked = _ranked(request, found.offers)
    judged = [
        replace(each, refused=_wrong_length(each.offer, request) or _wrong_place(each.offer) or each.refused)
        for each in ranked
    ]
    # The reason that is told when nothing is left is that of the first: one of the length that was asked for.
    return tuple(sorted(judged, key=lambda each: (each.refused is not None, bool(_wrong_length(each.offer, request)))))


def best_offer(ranked: tuple[RankedOffer, ...]) -> Offer:
    """The first that is not refused. Raises NoOffer with the reason of the first refusal."""
    for each in ranked:
        if each.refused is None:
            return each.offer
    raise NoOffer(
        happened=f"None of {len(ranked)} offers is within the request: {ranked[0].refused}.",
        remedy="Raise the caps, or ask again later.",
    )


def on_demand(request: RentRequest, target: Target) -> Offer:
    """Capacity by the hour, for as long as was asked for.

    Raises NoOffer where there is none, or none within the caps, InvalidRequest when no model is staged there.
    """
    regions = _regions(request, target)
    place = target.in_region(regions[0]) if regions else target
    zone, zone_id = offers.on_demand_zone(place, request.instance_type)
    start = place.clock.now() + minutes("prepare_lead_minutes")
    end = start + timedelta(hours=request.hours)
    price = load().instance_type(request.instance_type).on_demand_usd_per_hour
    if price is None:
        raise NoOffer(happened=f"No on-demand price of {request.instance_type} is known.", remedy="Rent a block.")
    offer = Offer(
        offering_id=ON_DEMAND,
        instance_type=request.instance_type,
        instance_count=request.instance_count,
        region=place.region,
        availability_zone=zone,
        availability_zone_id=zone_id,
        start=start,
        end=end,
        fee_usd=(price.value * hours_between(start, end) * request.instance_count).quantize(Decimal("0.01")),
        currency="USD",
    )
    return best_offer(_ranked(request, (offer,)))


def require_weights(request: RentRequest, target: Target, region: str) -> None:
    """Raise InvalidRequest when a block in `region` could not load the weights that are said to be staged."""
    _regions(request.model_copy(update={"regions": (region,)}), target)


def _regions(request: RentRequest, target: Target) -> tuple[str, ...]:
    """Where to look: that of the staged weights, else those that were asked for; none says that all will do."""
    if request.weights_uri is None:
        return request.regions
    try:
        staged = region_of(target, request.weights_uri)
    except AwsSaysNo:
        if not request.regions:
            raise
        # Whoever names the region knows where the bucket is.
        return request.regions
    if request.regions and staged not in request.regions:
        raise InvalidRequest(
            happened=f"{request.weights_uri} is in {staged}, and a block in {' or '.join(request.regions)} "
            "can't load from there.",
            cost="Nothing was bought.",
            remedy=f"Look in {staged}, or copy the weights to a bucket of the block's region.",
        )
    return (staged,)


def _ranked(request: RentRequest, found: Iterable[Offer]) -> tuple[RankedOffer, ...]:
    return rank(
        found,
        budget_of(request, load()),
        max_fee_usd=request.max_fee_usd,
        max_usd_per_useful_hour=request.max_usd_per_useful_hour,
    )


def _wrong_place(offer: Offer) -> str | None:
    if offer.region not in load().regions:
        return f"the catalogue does not know the region {offer.region}"
    if offer.availability_zone_id and offer.availability_zone_id not in ZONES_WITHOUT_EKS:
        return None
    return f"EKS makes no cluster in zone {offer.availability_zone}"


def _wrong_length(offer: Offer, request: RentRequest) -> str | None:
    asked, length = timedelta(hours=request.hours), offer.end - offer.start
    if asked - timedelta(days=1) < length <= asked:
        return None
    return f"it lasts {length / timedelta(hours=1):g} hours, and {request.hours} were asked for"
