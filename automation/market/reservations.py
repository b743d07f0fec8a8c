"""What is bought: Capacity Block reservations, looked up by a session's tag or by id, in whatever state they are."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from automation.aws_errors import aws_errors
from automation.errors import AwsSaysNo
from automation.target import Target
from components.names import SESSION_TAG

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-view.html
PAYING = frozenset({"payment-pending", "pending", "assessing"})
ACTIVE = "active"
PAYMENT_FAILED = "payment-failed"
NEVER = frozenset({PAYMENT_FAILED, "failed", "unsupported", "cancelled", "cancelling"})
# AWS's model also knows `unavailable` and says nowhere what it means: no reason to give a paid block up.
OVER = frozenset({"expired"})

# Before the start AvailableInstanceCount is 0 and the total may be unset; this tag of AWS holds what was bought.
_SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A reservation as AWS shows it; `state` is AWS's own word. `start` and `end` may be unset while it is assessed."""

    reservation_id: str
    state: str
    instance_type: str
    instance_count: int
    availability_zone: str
    availability_zone_id: str
    start: datetime | None
    end: datetime | None
    session: str | None


def by_session(target: Target, session: str) -> tuple[Reservation, ...]:
    """Every reservation that carries the session's tag, in every state: a look-up that filtered would buy twice."""
    pages = target.client("ec2").get_paginator("describe_capacity_reservations")
    with aws_errors(f"looking for reservations of session {session}"):
        return tuple(
            parse(raw)
            for page in pages.paginate(Filters=[{"Name": f"tag:{SESSION_TAG}", "Values": [session]}])
            for raw in page["CapacityReservations"]
        )


def by_id(target: Target, reservation_id: str) -> Reservation | None:
    """One reservation; None when AWS knows none of that id (any more)."""
    try:
        with aws_errors(f"looking at reservation {reservation_id}"):
            found = target.client("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation_id])
    except AwsSaysNo as error:
        if error.code == "InvalidCapacityReservationId.NotFound":
            return None
        raise
    return next((parse(raw) for raw in found["CapacityReservations"]), None)


def parse(raw: "CapacityReservationTypeDef") -> Reservation:
    """A reservation as AWS words it. Only id and state are sure to be there before the payment has cleared."""
    tags = {tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])}
    return Reservation(
        reservation_id=raw["CapacityReservationId"],
        state=raw["State"],
        instance_type=raw.get("InstanceType", ""),
        instance_count=raw.get("TotalInstanceCount") or int(tags.get(_SIZE_TAG, "0")),
        availability_zone=raw.get("AvailabilityZone", ""),
        availability_zone_id=raw.get("AvailabilityZoneId", ""),
        start=raw.get("StartDate"),
        end=raw.get("EndDate"),
        session=tags.get(SESSION_TAG),
    )
