"""The functions (`aws.get_...`) that a rehearsal knows: what AWS answers, in pulumi-aws's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.providers.protocol import Properties, Refused
from rehearsal.providers.resources.row import Api, from_aws, pascal, tags_from

Connect = Callable[[str], Api]
"""Gives the API of a service in the provider's region (or the call's own)."""

Function = Callable[[Connect, Properties], Properties]

_RESERVATION = tuple(
    pascal(name)
    for name in (
        "availabilityZone", "availabilityZoneId", "availableInstanceCount", "capacityBlockId", "ebsOptimized",
        "endDate", "endDateType", "instanceMatchCriteria", "instancePlatform", "instanceType", "outpostArn", "ownerId",
        "placementGroupArn", "reservationType", "startDate", "state", "tenancy",
    )
)  # fmt: skip

_ZONE = tuple(
    pascal(name)
    for name in (
        "groupName",
        "networkBorderGroup",
        "optInStatus",
        "parentZoneId",
        "parentZoneName",
        "state",
        "zoneId",
        "zoneType",
    )
)


def _capacity_block_reservation(connect: Connect, args: Properties) -> Properties:
    ec2 = connect("ec2")
    request: dict[str, Any] = {"CapacityReservationIds": [args["id"]]} if "id" in args else {}
    found = ec2("describe_capacity_reservations", **request, **_filters(args))["CapacityReservations"]
    blocks = [one for one in found if one.get("ReservationType") == "capacity-block"]
    only = _only(blocks, f"capacity block reservation {args.get('id', '')}")
    properties = from_aws(_RESERVATION, only) | {
        "id": only["CapacityReservationId"],
        "arn": only.get("CapacityReservationArn"),
        "createdDate": _text(only.get("CreateDate")),
        "tags": tags_from(only.get("Tags", [])),
    }
    # EC2 counts the machines of a block only once it is active: pulumi-aws leaves the property out before.
    if only["State"] == "active":
        properties["instanceCount"] = only["TotalInstanceCount"]
    return properties


def _availability_zones(connect: Connect, args: Properties) -> Properties:
    ec2 = connect("ec2")
    zones = ec2("describe_availability_zones", **_filters(args))["AvailabilityZones"]
    wanted = [
        zone
        for zone in zones
        if args.get("state") in (None, zone["State"])
        and zone["ZoneName"] not in args.get("excludeNames", [])
        and zone["ZoneId"] not in args.get("excludeZoneIds", [])
    ]
    wanted.sort(key=lambda zone: str(zone["ZoneName"]))
    return {
        "id": ec2.region,
        "names": [zone["ZoneName"] for zone in wanted],
        "zoneIds": [zone["ZoneId"] for zone in wanted],
        "groupNames": sorted({zone.get("GroupName", ec2.region) for zone in wanted}),
    }


def _availability_zone(connect: Connect, args: Properties) -> Properties:
    ec2 = connect("ec2")
    request: dict[str, Any] = _filters(args)
    if "name" in args:
        request["ZoneNames"] = [args["name"]]
    if "zoneId" in args:
        request["ZoneIds"] = [args["zoneId"]]
    zone = _only(ec2("describe_availability_zones", **request)["AvailabilityZones"], "availability zone")
    name: str = zone["ZoneName"]
    return from_aws(_ZONE, zone) | {"id": name, "name": name, "nameSuffix": name.removeprefix(ec2.region)}


def _region(connect: Connect, args: Properties) -> Properties:
    region = args.get("name") or connect("ec2").region
    return {
        "id": region,
        "name": region,
        "region": region,
        "description": region,
        "endpoint": f"ec2.{region}.amazonaws.com",
    }


def _caller_identity(connect: Connect, args: Properties) -> Properties:
    me = connect("sts")("get_caller_identity")
    return {"id": me["Account"], "accountId": me["Account"], "arn": me["Arn"], "userId": me["UserId"]}


def _partition(connect: Connect, args: Properties) -> Properties:
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


FUNCTIONS: Mapping[str, Function] = {
    "aws:ec2/getCapacityBlockReservation:getCapacityBlockReservation": _capacity_block_reservation,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
    "aws:index/getAvailabilityZone:getAvailabilityZone": _availability_zone,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getPartition:getPartition": _partition,
}


def _filters(args: Properties) -> dict[str, Any]:
    given = [{"Name": one["name"], "Values": one["values"]} for one in args.get("filters", [])]
    return {"Filters": given} if given else {}


def _only(found: list[Properties], what: str) -> Properties:
    if len(found) != 1:
        raise Refused(f"{len(found)} matches for {what.strip()}: it takes exactly one")
    return found[0]


def _text(instant: Any) -> str | None:
    return None if instant is None else instant.isoformat()
