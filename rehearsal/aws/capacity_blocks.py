"""Capacity Blocks: what is on offer, what was bought, and how a reservation's state follows virtual time.

Rules: EC2 user guide, "Capacity Blocks for ML". Blocks end at 11:30 UTC and start then too, or at once for the rest of
a day; EC2 begins to terminate instances 30 minutes before the end. Tags of reservations are kept in moto's EC2.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Literal

from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX

from rehearsal.aws.operations import refuse
from rehearsal.delays import Constants
from rehearsal.world import World

State = Literal["payment-pending", "scheduled", "active", "expired"]

HELD_RESERVATION_ID = "cr-0123456789abcdef0"
"""A reservation that every world holds from the beginning: nobody buys it and nobody pays for it."""

SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
"""Where EC2 shows a block's size before its start, when its instance counts are still 0."""

TERMINATION_LEAD = timedelta(minutes=30)

_BOUNDARY = time(11, 30)
_DAY = timedelta(days=1)
_SOONEST = timedelta(minutes=30)
_GRID = timedelta(minutes=5)
_CENT = Decimal("0.01")

# moto refuses tags on ids whose prefix it does not know.
EC2_RESOURCE_TO_PREFIX["capacity-reservation"] = "cr"
EC2_PREFIX_TO_RESOURCE["cr"] = "capacity-reservation"


@dataclass(frozen=True, kw_only=True)
class Offering:
    """A block that can be bought until `expires`."""

    offering_id: str
    instance_type: str
    instance_count: int
    region: str
    zone: str
    zone_id: str
    start: datetime
    end: datetime
    fee_usd: Decimal
    expires: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start


@dataclass(kw_only=True)
class Reservation:
    """A block that was bought, or the held one. `label` names it in the story, which knows no ids."""

    reservation_id: str
    label: str
    instance_type: str
    instance_count: int
    region: str
    zone: str
    zone_id: str
    created: datetime
    start: datetime
    end: datetime
    fee_usd: Decimal
    held: bool
    state: State
    instance_ids: set[str] = field(default_factory=set)

    @property
    def block_id(self) -> str:
        """The id of the block that the reservation is the capacity of."""
        return self.reservation_id.replace("cr-", "cb-", 1)

    @property
    def terminates(self) -> datetime:
        """When EC2 begins to terminate the instances."""
        return self.end - TERMINATION_LEAD

    @property
    def free(self) -> int:
        """How many instances can be launched now: none before the start, nor after the end."""
        return self.instance_count - len(self.instance_ids) if self.state == "active" else 0

    def backend(self, account_id: str) -> EC2Backend:
        """moto's EC2 of the reservation's region, which keeps its tags."""
        return ec2_backends[account_id][self.region]


class CapacityBlocks:
    """All offerings and reservations of a world, in every region."""

    def __init__(self, world: World, constants: Constants, account_id: str) -> None:
        self._world = world
        self._constants = constants
        self._account_id = account_id
        self._offerings: dict[str, Offering] = {}
        self._reservations: dict[str, Reservation] = {}
        self._identifiers: Counter[str] = Counter()
        self.on_termination: list[Callable[[Reservation], None]] = []
        """Told when EC2 begins to terminate a block's instances."""

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """All reservations, expired ones included."""
        return tuple(self._reservations.values())

    def reservation(self, reservation_id: str) -> Reservation | None:
        """A reservation by its id."""
        return self._reservations.get(reservation_id)

    def search(self, region: str, instance_type: str, count: int, hours: int) -> tuple[Offering, ...]:
        """What is on offer now, under new ids. Refuses impossible lengths and sizes as EC2 does."""
        refusals = self._constants.refusals
        if not _valid_hours(hours):
            raise refuse(refusals["duration"], hours=hours)
        if not 1 <= count <= 64:
            raise refuse(refusals["count"], count=count)
        zones = self._zones(region, instance_type)
        found = tuple(
            self._offer(region, zones[index % len(zones)], instance_type, count, start, end)
            for index, start, end in (_windows(self._world.now, hours) if zones else ())
        )
        self._offerings.update({offering.offering_id: offering for offering in found})
        return found

    def check(self, offering_id: str) -> Offering:
        """The offering, if it can still be bought; refuses otherwise."""
        offering = self._offerings.get(offering_id)
        if offering is None:
            raise refuse(self._constants.refusals["offering_unknown"], offering_id=offering_id)
        if self._world.now >= offering.expires or self._world.now >= offering.start:
            raise refuse(self._constants.refusals["offering_expired"], offering_id=offering_id)
        return offering

    def buy(self, offering: Offering, tags: dict[str, str]) -> Reservation:
        """Sell the offering. There is no idempotency token: whoever asks twice buys twice."""
        bought = sum(not reservation.held for reservation in self.reservations)
        reservation = Reservation(
            reservation_id=self._identifier("cr", offering.region),
            label=f"bought-{bought + 1}",
            instance_type=offering.instance_type,
            instance_count=offering.instance_count,
            region=offering.region,
            zone=offering.zone,
            zone_id=offering.zone_id,
            created=self._world.now,
            start=offering.start,
            end=offering.end,
            fee_usd=offering.fee_usd,
            held=False,
            state="payment-pending",
        )
        self._add(reservation, tags)
        self._world.after(self._world.draw("block_payment"), "payment", lambda: self._paid(reservation))
        return reservation

    def hold(self, *, region: str, zone_id: str, instance_type: str, instance_count: int) -> Reservation:
        """Put the world's own reservation in place: a whole day from the next 11:30 UTC on."""
        zone = next(zone for zone in self._all_zones(region) if zone[1] == zone_id)[0]
        start = next(_boundaries(self._world.now))
        reservation = Reservation(
            reservation_id=HELD_RESERVATION_ID,
            label="held",
            instance_type=instance_type,
            instance_count=instance_count,
            region=region,
            zone=zone,
            zone_id=zone_id,
            created=self._world.now,
            start=start,
            end=start + _DAY,
            fee_usd=Decimal(0),
            held=True,
            state="scheduled",
        )
        self._add(reservation, {})
        return reservation

    def _add(self, reservation: Reservation, tags: dict[str, str]) -> None:
        self._reservations[reservation.reservation_id] = reservation
        backend = reservation.backend(self._account_id)
        backend.create_tags([reservation.reservation_id], tags | {SIZE_TAG: str(reservation.instance_count)})
        self._world.at(reservation.start, "block-start", lambda: self._start(reservation))
        self._world.at(reservation.terminates, "block-termination", lambda: self._terminate(reservation))
        self._world.at(reservation.end, "block-end", lambda: self._change(reservation, "expired"))

    def _paid(self, reservation: Reservation) -> None:
        self._change(reservation, "scheduled")
        if self._world.now >= reservation.start:
            self._start(reservation)

    def _start(self, reservation: Reservation) -> None:
        if reservation.state == "scheduled":
            self._change(reservation, "active")

    def _terminate(self, reservation: Reservation) -> None:
        for tell in self.on_termination:
            tell(reservation)

    def _change(self, reservation: Reservation, state: State) -> None:
        reservation.state = state
        self._world.note("reservation", which=reservation.label, state=state)

    def _offer(
        self, region: str, zone: tuple[str, str], instance_type: str, count: int, start: datetime, end: datetime
    ) -> Offering:
        hours = Decimal((end - start) // timedelta(minutes=1)) / 60
        price = self._constants.prices.usd(f"block.{instance_type}")
        return Offering(
            offering_id=self._identifier("cb", region),
            instance_type=instance_type,
            instance_count=count,
            region=region,
            zone=zone[0],
            zone_id=zone[1],
            start=start,
            end=end,
            fee_usd=(price * hours * count).quantize(_CENT),
            expires=self._world.now + self._world.draw("offer_lifetime", of=region),
        )

    def _zones(self, region: str, instance_type: str) -> list[tuple[str, str]]:
        market = self._constants.markets.get(instance_type)
        zone_ids = market.zone_ids if market else ()
        return sorted((zone for zone in self._all_zones(region) if zone[1] in zone_ids), key=lambda zone: zone[0])

    def _all_zones(self, region: str) -> list[tuple[str, str]]:
        zones = ec2_backends[self._account_id][region].describe_availability_zones()
        return [(str(zone.name), str(zone.zone_id)) for zone in zones]

    def _identifier(self, prefix: str, region: str) -> str:
        # Counted by region: all are asked at once, and which of them is answered first is chance.
        name = f"{prefix}/{region}"
        self._identifiers[name] += 1
        digest = hashlib.sha256(f"{self._world.seed}/{name}/{self._identifiers[name]}".encode())
        return f"{prefix}-{digest.hexdigest()[:17]}"


def _valid_hours(hours: int) -> bool:
    days, rest = divmod(hours, 24)
    return rest == 0 and (1 <= days <= 14 or (days % 7 == 0 and 14 < days <= 182))


def _boundaries(now: datetime) -> Iterator[datetime]:
    """The instants at which blocks start and end: 11:30 UTC of each day, from the next on."""
    boundary = datetime.combine(now.date(), _BOUNDARY, now.tzinfo)
    if boundary <= now:
        boundary += _DAY
    while True:
        yield boundary
        boundary += _DAY


def _windows(now: datetime, hours: int) -> Iterator[tuple[int, datetime, datetime]]:
    """What a search finds, as (number of the zone, start, end): the rest of a day at once, then whole days."""
    soon = now + _SOONEST
    soon += (datetime.min.replace(tzinfo=now.tzinfo) - soon) % _GRID
    boundaries = _boundaries(soon)
    first, second, third = next(boundaries), next(boundaries), next(boundaries)
    length = timedelta(hours=hours)
    yield 0, soon, first + length - _DAY
    yield 0, first, first + length
    yield 1, second, second + length
    if _valid_hours(hours + 24):
        yield 0, third, third + length + _DAY
