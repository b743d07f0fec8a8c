"""Where a stack is: its region, the zone of its GPUs, another zone. AWS is asked about the reservation and the zones.

A new stack needs a list of zones. An existing stack does not: its subnets stay in their zones (network.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from components.stack_file import Problem, StackFile, problem
from planning.catalogue import UnknownName, load

USABLE_STATES = ("scheduled", "active", "delayed")

# China, GovCloud, the European Sovereign Cloud, the isolated regions: refused, and not served by asking AWS for the
# partition. That would correct the ARNs and no more: endpoints and service principals have other names in some of them,
# and the catalogue knows no block there. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
OTHER_PARTITIONS = re.compile(r"cn-|us-gov-|eusc-|[a-z]{2}-iso")


_LIST_OF_ONE = re.compile(r"^(invoking \S+: )?(1 error occurred: \* )?")


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What AWS says about a reservation. Its count is not here: AWS tells it only once the block is active."""

    instance_type: str
    availability_zone_id: str
    state: str


class LookupFailed(Exception):
    """AWS did not answer a question about the configuration; the message is AWS's, as a part of a sentence."""

    def __init__(self, said: str) -> None:
        # The provider lists its errors one per line, also when there is only one.
        super().__init__(_LIST_OF_ONE.sub("", " ".join(said.split())).rstrip("."))


class Lookup(Protocol):
    """What the settings ask AWS. Both methods raise LookupFailed."""

    def reservation(self, region: str, reservation_id: str) -> Reservation: ...

    def zone_ids(self, region: str) -> tuple[str, ...]:
        """The Availability Zones in which EKS has control planes; no Local Zones."""


def gpu_zone(file: StackFile, lookup: Lookup) -> tuple[str | None, list[Problem]]:
    """The zone of the GPUs, and what is wrong with the region or the reservation."""
    if file.region is None:
        return None, []
    if OTHER_PARTITIONS.match(file.region):
        what = f"{file.region} is not of the partition aws, the only one that this program serves"
        remedy = "Give a region of the partition aws, such as us-west-2"
        return None, [Problem(key="region", what=what, remedy=remedy)]
    try:
        load().place(file.region)
    except UnknownName as error:
        return None, [problem("region", str(error))]
    if file.capacity != "block" or not file.reservation_id:
        return file.availability_zone_id, []
    try:
        reservation = lookup.reservation(file.region, file.reservation_id)
    except LookupFailed as error:
        what = f"AWS did not show {file.reservation_id} in {file.region}: {error}"
        remedy = "Check the id, and set region to the region in which the block was bought"
        return None, [Problem(key="reservationId", what=what, remedy=remedy)]
    return reservation.availability_zone_id, list(_reservation_problems(file, reservation))


def second_zone(region: str, zone_id: str, lookup: Lookup) -> tuple[str | None, list[Problem]]:
    """Another zone than `zone_id`, for a new stack; None and the reasons if a new stack cannot have two zones."""
    try:
        zone_ids = lookup.zone_ids(region)
    except LookupFailed as error:
        remedy = "Allow ec2:DescribeAvailabilityZones and run the command again"
        return None, [Problem(key="region", what=f"AWS did not list the zones of {region}: {error}", remedy=remedy)]
    if zone_id not in zone_ids:
        what = f"{zone_id} is not among the zones of {region} that EKS can use: {', '.join(sorted(zone_ids)) or 'none'}"
        return None, [problem("availabilityZoneId", what)]
    others = sorted(set(zone_ids) - {zone_id})
    if not others:
        what = f"EKS needs two zones, and AWS lists only {zone_id} in {region}"
        return None, [problem("availabilityZoneId", what)]
    return others[0], []


def _reservation_problems(file: StackFile, reservation: Reservation) -> Iterator[Problem]:
    if reservation.state not in USABLE_STATES:
        yield Problem(
            key="reservationId",
            what=f"{file.reservation_id} is {reservation.state}",
            remedy=f"Use a reservation that is {', '.join(USABLE_STATES[:-1])} or {USABLE_STATES[-1]}; "
            "a payment can take AWS 12 hours",
        )
    if file.instance_type and reservation.instance_type != file.instance_type:
        yield Problem(
            key="instanceType",
            what=f"it is {file.instance_type}, and {file.reservation_id} holds {reservation.instance_type}",
            remedy=f"Set it to {reservation.instance_type}, or name another reservation",
        )
    if file.availability_zone_id not in (None, reservation.availability_zone_id):
        yield Problem(
            key="availabilityZoneId",
            what=f"it is {file.availability_zone_id}, and the reservation is in {reservation.availability_zone_id}",
            remedy="Remove it: a reservation names its zone itself",
        )
