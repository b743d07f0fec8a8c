"""What a session looks like from outside at one instant: values only; `observe.py` looks.

Each piece may be `Unknown` with the reason. An API error is an observation too and never ends the loop.
"""

from dataclasses import dataclass
from datetime import datetime

from automation.ledger.record import OperationName
from automation.serving.startup import StartupView
from planning.costs import Usage, UsageKind


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """This could not be looked at now; `reason` is a sentence."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class OperationSeen:
    """The last detached child. `exit_code` None once it is not running: it vanished without a word."""

    number: int
    name: OperationName
    running: bool
    exit_code: int | None


@dataclass(frozen=True, kw_only=True)
class GpuGroup:
    """The Auto Scaling group behind the GPU node group. `last_activity` is AWS's own sentence on its latest launch or
    termination, `suspended` those of the processes that start or end instances which AWS or somebody suspended."""

    name: str
    desired: int
    last_activity: str
    failed: bool
    suspended: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An EC2 instance of the session, also one that has been terminated. `in_block`: it runs in the reservation, so the
    block's fee pays for it."""

    instance_id: str
    instance_type: str
    state: str
    launched: datetime
    ended: datetime | None
    in_block: bool


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One look. `reserved` is from when to when AWS holds the block; None: it does not show it. `usage` is what bills
    now or has billed, outside the block's fee; `unseen` are the kinds of it that could not be looked at. `group` and
    `startup` None: there is no GPU group, or no cluster to look into."""

    reservation_state: str | Unknown
    reserved: tuple[datetime, datetime] | None
    operation: OperationSeen | None
    group: GpuGroup | Unknown | None
    instances: tuple[Instance, ...] | Unknown
    usage: tuple[Usage, ...]
    unseen: frozenset[UsageKind]
    startup: StartupView | Unknown | None

    def running_of_type(self, instance_type: str) -> int:
        """How many instances of a type are not yet terminated; 0 when that is not known."""
        if isinstance(self.instances, Unknown):
            return 0
        return sum(seen.instance_type == instance_type and seen.state != "terminated" for seen in self.instances)

    @property
    def running(self) -> OperationSeen | None:
        """The operation that runs now."""
        return self.operation if self.operation and self.operation.running else None
