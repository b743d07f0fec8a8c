"""A bought block, the instants of its session, and the lengths that AWS sells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from planning.budget import StartupBudget
from planning.catalogue import load


@dataclass(frozen=True, kw_only=True)
class Block:
    """A reservation that has been bought: what, where, from when to when (aware UTC), and the whole fee in US dollars.

    `offering_id` is None when the reservation was bought elsewhere, `fee_usd` when nobody here knows what it cost.
    Raises ValueError for a time without a zone, an end before its start, or a count below 1.
    """

    reservation_id: str
    offering_id: str | None
    instance_type: str
    instance_count: int
    region: str
    availability_zone: str
    availability_zone_id: str
    start: datetime
    end: datetime
    fee_usd: Decimal | None

    def __post_init__(self) -> None:
        require_span(self.start, self.end)
        if self.instance_count < 1:
            raise ValueError(f"a block has at least one instance, not {self.instance_count}")


@dataclass(frozen=True, kw_only=True)
class Moments:
    """The named instants of a session, all aware UTC.

    prepare_by       preparing begins no later than this, or control plane and add-ons eat paid minutes
    start            the first paid second
    first_token_due  when the start-up budget says that the endpoint serves
    last_extension   the last instant at which AWS takes an extension
    drain            no new request, no new node from here on
    eks_scale_in     EKS itself scales the managed node group to zero
    ec2_termination  EC2 begins to terminate the instances
    end              the last paid second
    sweep_by         by then the account is proved empty
    """

    prepare_by: datetime
    start: datetime
    first_token_due: datetime
    last_extension: datetime
    drain: datetime
    eks_scale_in: datetime
    ec2_termination: datetime
    end: datetime
    sweep_by: datetime


def moments(start: datetime, end: datetime, budget: StartupBudget) -> Moments:
    """The instants of a session on a block from `start` to `end`, for a managed node group.

    Raises ValueError for times without a zone, or a block that ends before its model could serve.
    """
    require_span(start, end)
    drain = end - minutes("drain_before_end_minutes")
    first_token_due = start + budget.total
    if first_token_due >= drain:
        raise ValueError(
            f"a block of {end - start} drains at {drain:%H:%M}, before its model serves at {first_token_due:%H:%M}"
        )
    return Moments(
        prepare_by=start - minutes("prepare_lead_minutes"),
        start=start,
        first_token_due=first_token_due,
        last_extension=end - minutes("last_extension_before_end_minutes"),
        drain=drain,
        eks_scale_in=end - minutes("eks_scale_in_before_end_minutes"),
        ec2_termination=end - minutes("ec2_termination_before_end_minutes"),
        end=end,
        sweep_by=end + minutes("sweep_after_end_minutes"),
    )


def valid_duration(hours: int) -> bool:
    """Whether AWS sells blocks of this length: 1 to 14 days by the day, then by the week to 182 days.

    A block that starts at once may be up to a day shorter, since every block ends at 11:30 UTC; it is searched for
    with a length from this list all the same.
    """
    days, rest = divmod(hours, 24)
    return rest == 0 and (1 <= days <= 14 or (14 < days <= 182 and days % 7 == 0))


def minutes(constant: str) -> timedelta:
    """A constant in minutes as a length of time. Raises UnknownName."""
    return timedelta(minutes=float(load().constant(constant).value))


def require_span(start: datetime, end: datetime) -> None:
    """Raises ValueError unless both times carry a zone and the start comes first."""
    if start.tzinfo is None or end.tzinfo is None:
        raise ValueError("a time without a zone is ambiguous: give aware UTC times")
    if start >= end:
        raise ValueError(f"the start {start.isoformat()} is not before the end {end.isoformat()}")
