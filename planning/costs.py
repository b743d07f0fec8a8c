"""What a session costs besides the block's fee, what of the block is useful, and what a hosted API would have to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from planning.block import minutes
from planning.budget import StartupBudget
from planning.catalogue import Catalogue

STARTUP_PHASES = ("launch", "join", "device_plugin", "image", "weights", "engine", "acceptance")
LOSS_CAUSES = (*STARTUP_PHASES, "restart", "tail")

UsageKind = Literal["eks_cluster", "nat_gateway", "public_ipv4", "ec2_instance", "ebs_gp3_gib"]


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Something that bills by time outside the block's fee, as long as AWS billed it (aware UTC; `ended` None: still).

    `quantity` counts `kind`: clusters, gateways, addresses, instances, GiB. `detail` of an "ec2_instance" is its type;
    the instances of a block are in the fee and are no Usage.
    """

    kind: UsageKind
    resource_id: str
    detail: str
    quantity: Decimal
    started: datetime
    ended: datetime | None


def outside_usd(usages: Iterable[Usage], catalogue: Catalogue, *, until: datetime | None = None) -> Decimal:
    """The bill of `usages`, rounded to cents once; what still runs is counted to `until`.

    Raises ValueError for a usage that still runs without `until`, UnknownName for an instance type without a price.
    """
    total = sum((usage_usd(usage, catalogue, until=until) for usage in usages), Decimal(0))
    return total.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def usage_usd(usage: Usage, catalogue: Catalogue, *, until: datetime | None = None) -> Decimal:
    """One line of that bill, not rounded. Raises as outside_usd."""
    ended = usage.ended or until
    if ended is None:
        raise ValueError(f"{usage.resource_id} still runs: say until when to count it")
    hours = max(hours_between(usage.started, ended), Decimal(0))
    if usage.kind == "nat_gateway":
        hours = Decimal(math.ceil(hours))
    return hours * usage.quantity * _usd_per_hour(usage, catalogue)


def useful_hours(start: datetime, end: datetime, budget: StartupBudget) -> Decimal:
    """The hours of a block in which its model serves: without the start-up budget and the tail from drain to end."""
    drain = end - minutes("drain_before_end_minutes")
    return max(hours_between(start + budget.total, drain), Decimal(0))


def hosted_break_even_tokens_per_s(
    *, usd_per_hour: Decimal, served_share: Decimal, hosted_usd_per_million_tokens: Decimal
) -> Decimal | None:
    """Output tokens a second at which serving costs what the hosted API would; None when nothing was served.

    `usd_per_hour` is the paid price of an hour, `served_share` the part of the paid time that served (0 to 1).
    """
    if served_share <= 0:
        return None
    return usd_per_hour * 10**6 / (served_share * 3600 * hosted_usd_per_million_tokens)


def hours_between(start: datetime, end: datetime) -> Decimal:
    """The hours from `start` to `end`, exact to the microsecond; negative when `end` comes first."""
    return Decimal((end - start) // timedelta(microseconds=1)) / 3_600_000_000


def _usd_per_hour(usage: Usage, catalogue: Catalogue) -> Decimal:
    match usage.kind:
        case "eks_cluster":
            return catalogue.constant("eks_cluster_usd_per_hour").value
        case "nat_gateway":
            return catalogue.constant("nat_gateway_usd_per_started_hour").value
        case "public_ipv4":
            return catalogue.constant("public_ipv4_usd_per_hour").value
        case "ebs_gp3_gib":
            per_month = catalogue.constant("ebs_gp3_usd_per_gib_month").value
            return per_month / catalogue.constant("ebs_month_hours").value
        case "ec2_instance":
            return catalogue.constant(f"{usage.detail}.on_demand_usd_per_hour").value
