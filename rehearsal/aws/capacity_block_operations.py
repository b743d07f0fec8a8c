"""EC2's calls about Capacity Blocks and the reservations that they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from moto.ec2.models import ec2_backends

from rehearsal.aws.capacity_blocks import CapacityBlocks, Offering, Reservation
from rehearsal.aws.clock import naive
from rehearsal.aws.operations import Request, refuse
from rehearsal.delays import Refusal

Answer = Mapping[str, object]

_PLATFORM = "Linux/UNIX"


class CapacityBlockOperations:
    """Each public method is an operation of EC2."""

    def __init__(self, blocks: CapacityBlocks, refusals: Mapping[str, Refusal]) -> None:
        self._blocks = blocks
        self._refusals = refusals

    def describe_capacity_block_offerings(self, request: Request) -> Answer:
        offerings: Iterable[Offering] = self._blocks.search(
            request.region,
            request.text("InstanceType"),
            request.number("InstanceCount") or 1,
            request.number("CapacityDurationHours") or 0,
        )
        earliest, latest = request.instant("StartDateRange"), request.instant("EndDateRange")
        offerings = (offering for offering in offerings if earliest is None or offering.start >= earliest)
        offerings = (offering for offering in offerings if latest is None or offering.end <= latest)
        return {"CapacityBlockOfferings": [_offering(offering) for offering in offerings]}

    def purchase_capacity_block(self, request: Request) -> Answer:
        platform = request.text("InstancePlatform")
        if platform != _PLATFORM:
            raise refuse(self._refusals["platform"], platform=platform)
        offering = self._blocks.check(request.text("CapacityBlockOfferingId"))
        if request.flag("DryRun"):
            raise refuse(self._refusals["dry_run"])
        reservation = self._blocks.buy(offering, request.tags("capacity-reservation"))
        described = self._reservation(reservation, request.account_id)
        return {
            "CapacityReservation": described,
            "CapacityReservations": [described],
            "CapacityBlocks": [self._block(reservation, request.account_id)],
        }

    def describe_capacity_reservations(self, request: Request) -> Answer:
        wanted = request.texts("CapacityReservationIds")
        here = [item for item in self._blocks.reservations if item.region == request.region]
        known = {reservation.reservation_id for reservation in here}
        for reservation_id in wanted:
            if reservation_id not in known:
                raise refuse(self._refusals["reservation_unknown"], reservation_id=reservation_id)
        filters = request.filters()
        found = (item for item in here if not wanted or item.reservation_id in wanted)
        found = (item for item in found if self._matches(self._reservation(item, request.account_id), filters))
        return {"CapacityReservations": [self._reservation(item, request.account_id) for item in found]}

    def describe_capacity_blocks(self, request: Request) -> Answer:
        return {"CapacityBlocks": [self._block(item, request.account_id) for item in self._wanted_blocks(request)]}

    def describe_capacity_block_status(self, request: Request) -> Answer:
        return {"CapacityBlockStatuses": [_status(item) for item in self._wanted_blocks(request)]}

    def _wanted_blocks(self, request: Request) -> list[Reservation]:
        wanted = request.texts("CapacityBlockIds")
        here = {item.block_id: item for item in self._blocks.reservations if item.region == request.region}
        for block_id in wanted:
            if block_id not in here:
                raise refuse(self._refusals["block_unknown"], block_id=block_id)
        return [item for block_id, item in here.items() if not wanted or block_id in wanted]

    def _matches(self, described: Mapping[str, object], filters: Mapping[str, list[str]]) -> bool:
        """EC2's filters: `tag:<key>`, `tag-key`, or a field's name in words with hyphens; all of them must hold."""
        tags = {tag["Key"]: tag["Value"] for tag in cast("list[dict[str, str]]", described["Tags"])}
        for name, values in filters.items():
            field = "".join(word.capitalize() for word in name.split("-"))
            if name.startswith("tag:"):
                found = [tags[name[4:]]] if name[4:] in tags else []
            elif name == "tag-key":
                found = list(tags)
            elif field in described:
                found = [str(described[field])]
            else:
                raise refuse(self._refusals["filter"], name=name)
            if not set(found) & set(values):
                return False
        return True

    def _reservation(self, item: Reservation, account_id: str) -> dict[str, object]:
        started = item.state in ("active", "expired")
        return {
            "CapacityReservationId": item.reservation_id,
            "CapacityReservationArn": (
                f"arn:aws:ec2:{item.region}:{account_id}:capacity-reservation/{item.reservation_id}"
            ),
            "CapacityBlockId": item.block_id,
            "OwnerId": account_id,
            "ReservationType": "capacity-block",
            "InstanceType": item.instance_type,
            "InstancePlatform": _PLATFORM,
            "InstanceMatchCriteria": "targeted",
            "AvailabilityZone": item.zone,
            "AvailabilityZoneId": item.zone_id,
            "Tenancy": "default",
            # Both counts are 0 before the start; until then only a tag shows the size.
            "TotalInstanceCount": item.instance_count if started else 0,
            "AvailableInstanceCount": item.free,
            "EbsOptimized": False,
            "EphemeralStorage": False,
            "State": item.state,
            "StartDate": naive(item.start),
            "EndDate": naive(item.end),
            "EndDateType": "limited",
            "CreateDate": naive(item.created),
            "Tags": _tags(item, account_id),
        }

    def _block(self, item: Reservation, account_id: str) -> dict[str, object]:
        return {
            "CapacityBlockId": item.block_id,
            "AvailabilityZone": item.zone,
            "AvailabilityZoneId": item.zone_id,
            "CapacityReservationIds": [item.reservation_id],
            "StartDate": naive(item.start),
            "EndDate": naive(item.end),
            "CreateDate": naive(item.created),
            "State": item.state,
            "Tags": _tags(item, account_id),
        }


def _offering(offering: Offering) -> dict[str, object]:
    minutes = int(offering.length.total_seconds()) // 60
    segment = {
        "InstanceType": offering.instance_type,
        "AvailabilityZone": offering.zone,
        "AvailabilityZoneId": offering.zone_id,
        "InstanceCount": offering.instance_count,
        "StartDate": naive(offering.start),
        "EndDate": naive(offering.end),
        # AWS gives the minutes in addition to the hours.
        "CapacityBlockDurationHours": minutes // 60,
        "CapacityBlockDurationMinutes": minutes % 60,
        "UpfrontFee": str(offering.fee_usd),
        "CurrencyCode": "USD",
        "ZoneType": "availability-zone",
    }
    # The zone id stands in the segments only.
    whole = {name: value for name, value in segment.items() if name != "AvailabilityZoneId"}
    return whole | {
        "CapacityBlockOfferingId": offering.offering_id,
        "Tenancy": "default",
        "CapacityBlockOfferingSegments": [segment],
    }


def _status(item: Reservation) -> dict[str, object]:
    total = item.instance_count if item.state == "active" else 0
    return {
        "CapacityBlockId": item.block_id,
        "TotalCapacity": total,
        "TotalAvailableCapacity": item.free,
        "TotalUnavailableCapacity": 0,
        "CapacityReservationStatuses": [
            {
                "CapacityReservationId": item.reservation_id,
                "TotalCapacity": total,
                "TotalAvailableCapacity": item.free,
                "TotalUnavailableCapacity": 0,
            }
        ],
    }


def _tags(item: Reservation, account_id: str) -> list[dict[str, str]]:
    stored = ec2_backends[account_id][item.region].tags[item.reservation_id]
    return [{"Key": key, "Value": value} for key, value in stored.items()]
