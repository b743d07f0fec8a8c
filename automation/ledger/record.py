"""The record: what a session has done and decided, folded from its journal.

AWS can tell what exists now; only the record knows intents, tries, choices, confirmations and money. Nothing here does
I/O: `journal.py` reads and writes the entries of `entries.py`, and `fold.py` turns them into one Record.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from automation.ledger.request import RentRequest
from automation.target import Mode, Target
from planning.block import Block
from planning.costs import Usage
from planning.ranking import Offer

PhaseName = Literal["buy", "prepare", "wait", "start", "accept", "serve", "drain", "destroy", "sweep"]
OperationName = Literal["up", "destroy"]


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """A block that has been paid for, or whose payment is on its way. `bought_at` is AWS's time."""

    offering_id: str
    reservation_id: str
    fee_usd: Decimal
    bought_at: datetime


@dataclass(frozen=True, kw_only=True)
class PurchaseIntent:
    """Written before the purchase call. While it is unresolved, AWS is looked at and nothing is bought."""

    offer: Offer
    intended_at: datetime


@dataclass(frozen=True, kw_only=True)
class PhaseSpan:
    """One phase of the session; `ended` is None while it lasts."""

    name: PhaseName
    started: datetime
    ended: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class StartupMark:
    """When a start-up phase (one of `planning.costs.STARTUP_PHASES`) ended, by AWS's and Kubernetes' own timestamps."""

    phase: str
    ended: datetime


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """The accepted endpoint went away at `since`, which was seen at `until`: the phases tell what followed."""

    since: datetime
    until: datetime


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One acceptance check of the endpoint."""

    check: str
    ok: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Residual:
    """Something of the session that still exists in AWS after the destroy; without an id: what could not be looked at.
    `kept`: it may hold data of people, so only they may delete it."""

    kind: str
    resource_id: str
    region: str
    detail: str
    usd_per_day: Decimal
    kept: bool = False

    @property
    def told(self) -> str:
        """What it is, what it costs, and what is known of why it is still there; without a full stop."""
        if not self.resource_id:
            return f"{self.kind} in {self.region}: not known, {self.detail.rstrip('.')}"
        known = f" ({self.detail.rstrip('.')})" if self.detail else ""
        return f"{self.kind} {self.resource_id} in {self.region}, US${self.usd_per_day} a day{known}"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that went wrong, in one sentence, whether or not it was repaired."""

    at: datetime
    what: str


@dataclass(frozen=True, kw_only=True)
class OperationRun:
    """One detached child. `process_started` is its start time in seconds since the machine's boot, so that a pid used
    again by another process is not taken for it. `exit_code` None with `ended` set: it vanished without a word."""

    number: int
    name: OperationName
    pid: int
    process_started: float
    started: datetime
    interrupted: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """All that a session knows of itself. `outcome` is None until the report; "ok" only when the sweep found nothing.

    `acceptance` and `residual` are those of the last run of the acceptance and of the sweep; `acceptance_failures`
    counts the runs that failed in a row, `sweeps` all sweeps; `residual_since` is when a sweep last found other things
    than the one before. `raised` and `drain_asked` are when the GPU group was last told to grow and to shrink,
    `end_asked` when somebody or a rule (`gave_up`) ended the session before its time, `reopened` when an ended session
    was taken up again because it had not come out empty. `released` means that AWS took no money for `block` and gave
    it up. `image_digest` pins the model's image for all updates; None: its registry did not name one.
    """

    session: str
    mode: Mode
    account_id: str
    opened: datetime
    request: RentRequest
    image_digest: str | None = None
    purchases: tuple[Purchase, ...] = ()
    intent: PurchaseIntent | None = None
    block: Block | None = None
    released: bool = False
    phases: tuple[PhaseSpan, ...] = ()
    startup: tuple[StartupMark, ...] = ()
    acceptance: tuple[CheckResult, ...] = ()
    acceptance_failures: int = 0
    acceptance_at: datetime | None = None
    interruptions: tuple[Interruption, ...] = ()
    usage: tuple[Usage, ...] = ()
    residual: tuple[Residual, ...] = ()
    sweeps: int = 0
    residual_since: datetime | None = None
    swept_at: datetime | None = None
    faults: tuple[Fault, ...] = ()
    operations: tuple[OperationRun, ...] = ()
    raised: datetime | None = None
    drain_asked: datetime | None = None
    end_asked: datetime | None = None
    end_reason: str | None = None
    gave_up: bool = False
    reopened: datetime | None = None
    outcome: str | None = None

    @property
    def phase(self) -> PhaseName | None:
        """The phase that lasts now."""
        last = self.phases[-1] if self.phases else None
        return last.name if last and last.ended is None else None

    @property
    def paid_block(self) -> Block | None:
        """The block whose whole time is paid. None on demand: what stands in `block` then is only the hours planned;
        and None for a block whose payment failed."""
        return self.block if self.request.capacity == "block" and not self.released else None

    @property
    def accepted(self) -> bool:
        """Whether the last acceptance ran and every check was true."""
        return bool(self.acceptance) and all(check.ok for check in self.acceptance)

    @property
    def prepared(self) -> bool:
        """Whether the stack is up: the last operation that ended was an `up` that went well."""
        return self._last_success("up")

    @property
    def destroyed(self) -> bool:
        """Whether the stack is gone: the last operation that ended was a `destroy` that went well."""
        return self._last_success("destroy")

    def belongs_to(self, target: Target) -> bool:
        """Whether it was made there: in that account, and not in a rehearsal of it."""
        return (self.mode, self.account_id) == (target.mode, target.account_id)

    def tries(self, name: OperationName) -> tuple[OperationRun, ...]:
        """The runs of an operation that ended, since the last one that went well or the session was reopened."""
        since = self.reopened or self.opened
        runs = [run for run in self.operations if run.name == name and run.ended and run.started >= since]
        good = [index for index, run in enumerate(runs) if run.exit_code == 0]
        return tuple(runs[good[-1] + 1 :] if good else runs)

    def _last_success(self, name: OperationName) -> bool:
        ended = [operation for operation in self.operations if operation.ended]
        return bool(ended) and ended[-1].name == name and ended[-1].exit_code == 0
