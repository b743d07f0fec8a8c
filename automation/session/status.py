"""How a session stands, in every state of it: before the purchase, bought and not started, running, over."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from automation.errors import RentblockError
from automation.ledger.folder import SessionFolder, sessions
from automation.ledger.journal import Journal, attendant
from automation.ledger.record import Record
from automation.market.purchase import settle
from automation.market.reservations import by_id
from automation.session.billed import billed_so_far
from automation.session.observation import Unknown
from automation.session.plan import Plan, plan_of
from automation.target import Target
from planning.catalogue import load


@dataclass(frozen=True, kw_only=True)
class Status:
    """`reservation` is AWS's word on it, or why there is none. `plan` None: there is no block, or no use in it.
    `now` and `outside_usd` None: AWS's time, or a price, is not known. `attended_by` is the process of this machine
    that runs the session's loop: without one nothing is raised, drained or destroyed. `others_open` are the other
    sessions of this machine that have not ended."""

    record: Record
    plan: Plan | None
    reservation: str | Unknown
    now: datetime | None
    outside_usd: Decimal | None
    attended_by: int | None
    others_open: tuple[str, ...]


def status(folder: SessionFolder, target: Target | None) -> Status:
    """Look at a session without changing it, except that an unclear purchase is looked after.

    `target` None, or one that does not answer: what the journal says. Raises MachineInTheWay only."""
    journal = Journal(folder.journal)
    reservation = _reservation(journal, target) if target else Unknown(reason="AWS was not asked")
    record = journal.record()
    now = _now(target)
    return Status(
        record=record,
        plan=_plan(record),
        reservation=reservation,
        now=now,
        outside_usd=billed_so_far(record, now) if now else None,
        attended_by=attendant(folder),
        others_open=tuple(name for name in open_sessions(folder.home) if name != folder.session),
    )


def open_sessions(home: Path) -> tuple[str, ...]:
    """The sessions of this machine that have not ended; one whose journal cannot be read may be such a one."""
    return tuple(folder.session for folder in sessions(home) if _is_open(folder))


def _is_open(folder: SessionFolder) -> bool:
    try:
        return Journal(folder.journal).record().outcome is None
    except RentblockError:
        return True


def _reservation(journal: Journal, target: Target) -> str | Unknown:
    record = journal.record()
    if not record.belongs_to(target):
        return Unknown(reason=f"not asked: the session is of {record.mode} account {record.account_id}")
    try:
        block = settle(target, journal)
        if block is None:
            return Unknown(reason="nothing has been bought")
        if record.request.capacity == "on-demand":
            return Unknown(reason="on demand")
        found = by_id(target.in_region(block.region), block.reservation_id)
    except RentblockError as error:
        return Unknown(reason=error.happened)
    return found.state if found else Unknown(reason="AWS does not show it (any more)")


def _plan(record: Record) -> Plan | None:
    try:
        return plan_of(record, load())
    except RentblockError:
        return None


def _now(target: Target | None) -> datetime | None:
    try:
        return target.clock.now() if target else None
    except RentblockError:
        return None
