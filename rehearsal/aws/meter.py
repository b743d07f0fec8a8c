"""The simulated cloud's own bill. It knows nothing of how the product plans costs: its prices are `constants.toml`'s.

After each call that changed something, and after each instance that appeared or ended, the meter compares what bills
now with what billed before. What is new began now. What is missing ended now, or, when an engine operation took it
away, at that operation's end: virtual time stands still inside an operation, so its deletions are stamped afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from rehearsal.aws.calls import Call
from rehearsal.aws.capacity_blocks import CapacityBlocks
from rehearsal.aws.inventory import Billable, BillableKind, billables
from rehearsal.delays import Prices
from rehearsal.world import World

_CENT = Decimal("0.01")
_HOUR = timedelta(hours=1)
_HOURS_A_MONTH = 730


@dataclass(frozen=True, kw_only=True)
class BillLine:
    """What one thing cost so far, not rounded. `ended` is None while it runs."""

    kind: BillableKind
    resource_id: str
    detail: str
    quantity: Decimal
    started: datetime
    ended: datetime | None
    usd: Decimal


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What the cloud charges: the blocks that were bought, and everything else, rounded once, to cents."""

    purchases: int
    block_usd: Decimal
    outside_usd: Decimal
    lines: tuple[BillLine, ...]


@dataclass(frozen=True, kw_only=True)
class _Run:
    item: Billable
    started: datetime
    ended: datetime | None = None


class Meter:
    """Counts what the world's cloud charges."""

    def __init__(
        self,
        world: World,
        prices: Prices,
        blocks: CapacityBlocks,
        account_id: str,
        stamp_end: Callable[[str, str], None],
    ) -> None:
        """`stamp_end(instance_id, region)` lets EC2 show that an instance ended now."""
        self._world = world
        self._prices = prices
        self._blocks = blocks
        self._account_id = account_id
        self._stamp_end = stamp_end
        self._running: dict[str, _Run] = {}
        self._ended: list[_Run] = []
        self._taken_away: set[str] = set()

    def after_call(self, call: Call) -> None:
        """Look at the cloud after a call: engine operations are Pulumi's calls."""
        self._look(in_operation=call.principal == "pulumi")

    def after_event(self) -> None:
        """Look at the cloud after something happened by itself."""
        self._look(in_operation=False)

    def operation_ended(self) -> None:
        """An engine operation has ended and the world is at its end: what it took away ended now."""
        for resource_id in self._taken_away:
            item = self._end(resource_id)
            if item.kind == "ec2_instance":
                self._stamp_end(resource_id, item.region)
        self._taken_away.clear()

    def bill(self) -> Bill:
        """What was charged until now."""
        lines = tuple(self._line(run) for run in [*self._ended, *self._running.values()])
        bought = [reservation for reservation in self._blocks.reservations if not reservation.held]
        return Bill(
            purchases=len(bought),
            block_usd=sum((reservation.fee_usd for reservation in bought), Decimal(0)),
            outside_usd=sum((line.usd for line in lines), Decimal(0)).quantize(_CENT, rounding=ROUND_HALF_UP),
            lines=lines,
        )

    def _look(self, *, in_operation: bool) -> None:
        existing = {item.resource_id: item for item in billables(self._account_id)}
        # An operation that replaces a cluster takes it away and makes it again under the same name.
        self._taken_away -= existing.keys()
        for resource_id in existing.keys() - self._running.keys():
            self._running[resource_id] = _Run(item=existing[resource_id], started=self._world.now)
        for resource_id in self._running.keys() - existing.keys() - self._taken_away:
            if in_operation:
                self._taken_away.add(resource_id)
            else:
                self._end(resource_id)

    def _end(self, resource_id: str) -> Billable:
        run = self._running.pop(resource_id)
        self._ended.append(replace(run, ended=self._world.now))
        return run.item

    def _line(self, run: _Run) -> BillLine:
        item = run.item
        time = (run.ended or self._world.now) - run.started
        return BillLine(
            kind=item.kind,
            resource_id=item.resource_id,
            detail=item.detail,
            quantity=item.quantity,
            started=run.started,
            ended=run.ended,
            usd=self._usd(item, time),
        )

    def _usd(self, item: Billable, time: timedelta) -> Decimal:
        hours = Decimal(time // timedelta(seconds=1)) / 3600
        match item.kind:
            case "eks_cluster" | "public_ipv4":
                return self._prices.usd(item.kind) * hours
            case "nat_gateway":
                return self._prices.usd("nat_gateway") * max(1, -(-time // _HOUR))
            case "ec2_instance":
                return self._prices.usd(f"ec2.{item.detail}") * hours
            case "ebs_gp3_gib":
                return self._prices.usd("ebs_gp3") / _HOURS_A_MONTH * item.quantity * hours
