"""What AWS would sell: Capacity Block offerings of every region that is asked."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from automation.aws_errors import aws_errors
from automation.errors import NoOffer, RentblockError
from automation.target import Target
from components.names import ZONES_WITHOUT_EKS
from planning.ranking import Offer

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityBlockOfferingTypeDef, FilterTypeDef

_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to search for: the length in hours, the earliest start, and the latest end."""

    instance_type: str
    instance_count: int
    hours: int
    start_from: datetime
    end_until: datetime


@dataclass(frozen=True, kw_only=True)
class Search:
    """All offers, and for each region that could not answer the sentence that says why."""

    offers: tuple[Offer, ...]
    unanswered: tuple[tuple[str, str], ...]


def enabled_regions(target: Target) -> tuple[str, ...]:
    """The regions that the account may use. Never a table: a block may be sold where no price list shows one yet."""
    with aws_errors("listing the enabled regions"):
        regions = target.client("ec2").describe_regions()["Regions"]
    return tuple(sorted(region["RegionName"] for region in regions))


def search(target: Target, wanted: Wanted, regions: Iterable[str]) -> Search:
    """Ask every region. One region's error does not hide the others' offers; raises only when all regions fail."""
    # Clients are made one after the other: making them is not safe in threads, using them is.
    clients = {region: target.in_region(region).client("ec2") for region in regions}
    offers: list[Offer] = []
    unanswered: list[tuple[str, RentblockError]] = []
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for region, answer in zip(
            clients, pool.map(lambda item: _ask(item[1], item[0], wanted), clients.items()), strict=True
        ):
            if isinstance(answer, RentblockError):
                unanswered.append((region, answer))
            else:
                offers += answer
    if unanswered and len(unanswered) == len(clients):
        raise unanswered[0][1]
    return Search(offers=tuple(offers), unanswered=tuple((region, error.happened) for region, error in unanswered))


def on_demand_zone(target: Target, instance_type: str) -> tuple[str, str]:
    """Name and id of the first zone of the region that has the instance type and can hold a cluster. Raises NoOffer.

    Local Zones have instance types of their own and no control planes, and their names come first in the alphabet."""
    found = zones_with(target, instance_type)
    usable = zone_ids(target)
    zones = sorted(found & usable.keys())
    if not zones:
        raise NoOffer(
            happened=f"{target.region} has no {instance_type}.", remedy="Choose another region with --region."
        )
    return zones[0], usable[zones[0]]


def zones_with(target: Target, instance_type: str) -> frozenset[str]:
    """The names of the region's zones, Local Zones too, that have an instance type."""
    with aws_errors(f"asking {target.region} for zones with {instance_type}"):
        found = target.client("ec2").describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
        )
    return frozenset(offer["Location"] for offer in found["InstanceTypeOfferings"])


def zone_ids(target: Target) -> dict[str, str]:
    """The id, by its name, of each zone of the region that can hold a control plane of EKS."""
    with aws_errors(f"listing the zones of {target.region}"):
        listed = _zone_ids(target.client("ec2"))
    return {zone: zone_id for zone, zone_id in listed.items() if zone_id not in ZONES_WITHOUT_EKS}


def parse(raw: "CapacityBlockOfferingTypeDef", region: str, zone_ids: dict[str, str]) -> Offer:
    """One offering as AWS words it, whose price is text. A zone that is no Availability Zone has the id ""."""
    return Offer(
        offering_id=raw["CapacityBlockOfferingId"],
        instance_type=raw["InstanceType"],
        instance_count=raw["InstanceCount"],
        region=region,
        availability_zone=raw["AvailabilityZone"],
        availability_zone_id=zone_ids.get(raw["AvailabilityZone"], ""),
        start=raw["StartDate"],
        end=raw["EndDate"],
        fee_usd=Decimal(raw["UpfrontFee"]),
        currency=raw["CurrencyCode"],
    )


def in_one_piece(raw: "CapacityBlockOfferingTypeDef") -> bool:
    """Whether a block has no gap: a session has one start and one end, so an offering of several segments is none."""
    segments = raw.get("CapacityBlockOfferingSegments")
    return not isinstance(segments, list) or len(segments) < 2


def _ask(ec2: "EC2Client", region: str, wanted: Wanted) -> list[Offer] | RentblockError:
    try:
        with aws_errors(f"asking {region} for Capacity Block offerings"):
            pages = ec2.get_paginator("describe_capacity_block_offerings").paginate(
                InstanceType=wanted.instance_type,
                InstanceCount=wanted.instance_count,
                CapacityDurationHours=wanted.hours,
                StartDateRange=wanted.start_from,
                EndDateRange=wanted.end_until,
            )
            found = [raw for page in pages for raw in page["CapacityBlockOfferings"] if in_one_piece(raw)]
            zone_ids = _zone_ids(ec2) if found else {}
    except RentblockError as error:
        return error
    return [parse(raw, region, zone_ids) for raw in found]


def _zone_ids(ec2: "EC2Client") -> dict[str, str]:
    """The id of each Availability Zone by its name; Local Zones, which have no control planes, are not among them."""
    # Offerings name the zone; subnets are made by zone id, which means the same place in every account.
    only: list[FilterTypeDef] = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    zones = ec2.describe_availability_zones(Filters=only)["AvailabilityZones"]
    return {zone["ZoneName"]: zone["ZoneId"] for zone in zones}
