"""The fold: a journal's entries, oldest first, become one Record."""

from collections.abc import Iterable
from dataclasses import replace

from automation.errors import MachineInTheWay
from automation.ledger import entries as lines
from automation.ledger.entries import Entry
from automation.ledger.record import (
    Fault,
    Interruption,
    OperationRun,
    PhaseSpan,
    Purchase,
    PurchaseIntent,
    Record,
    Residual,
    StartupMark,
)


def fold(entries: Iterable[Entry]) -> Record:
    """The session as its journal tells it. Raises MachineInTheWay for a journal without its opening."""
    journal = iter(entries)
    first = next(journal, None)
    if not isinstance(first, lines.Opened):
        raise MachineInTheWay(
            happened="A session's journal has no beginning.",
            cost="What it may have bought can be seen in the EC2 console under Capacity Reservations.",
            remedy="Put the journal back from a copy.",
        )
    record = Record(
        session=first.session, mode=first.mode, account_id=first.account_id, opened=first.at, request=first.request
    )
    for entry in journal:
        record = _add(record, entry)
    return record


def _add(record: Record, entry: Entry) -> Record:
    match entry:
        case lines.ImagePinned(digest=digest):
            return replace(record, image_digest=digest)
        case lines.PurchaseIntended(offer=offer, at=at):
            return replace(record, intent=PurchaseIntent(offer=offer, intended_at=at))
        case lines.PurchaseConfirmed(offering_id=offering, reservation_id=bought, fee_usd=fee, at=at):
            purchase = Purchase(offering_id=offering, reservation_id=bought, fee_usd=fee, bought_at=at)
            # The buyer and somebody who looks at the same time may both write down the one purchase.
            others = tuple(known for known in record.purchases if known.reservation_id != bought)
            return replace(record, intent=None, purchases=(*others, purchase))
        case lines.PurchaseDenied():
            return replace(record, intent=None)
        case lines.BlockReleased(reservation_id=released):
            kept = tuple(bought for bought in record.purchases if bought.reservation_id != released)
            return replace(record, purchases=kept, released=True)
        case lines.BlockKnown(block=block):
            return replace(record, block=block)
        case lines.PhaseBegan(phase=phase, at=at):
            return replace(record, phases=(*_ended(record, entry), PhaseSpan(name=phase, started=at)))
        case lines.NodesRaised(at=at):
            return replace(record, raised=at)
        case lines.DrainAsked(at=at):
            return replace(record, drain_asked=at)
        case lines.StartupMarked(phase=name, ended=ended):
            return replace(record, startup=(*record.startup, StartupMark(phase=name, ended=ended)))
        case lines.Accepted(checks=checks):
            failures = 0 if all(check.ok for check in checks) else record.acceptance_failures + 1
            return replace(record, acceptance=checks, acceptance_failures=failures, acceptance_at=entry.at)
        case lines.EndpointLost(since=since, at=at):
            return replace(record, interruptions=(*record.interruptions, Interruption(since=since, until=at)))
        case lines.Swept(residual=residual):
            before = record.residual_since if _same(residual, record.residual) else None
            return replace(
                record,
                residual=residual,
                sweeps=record.sweeps + 1,
                residual_since=before or entry.at,
                swept_at=entry.at,
            )
        case lines.FaultSeen(what=what, at=at):
            return replace(record, faults=(*record.faults, Fault(at=at, what=what)))
        case lines.EndAsked(reason=reason, gave_up=gave_up, at=at):
            # The first reason stands: later ones only repeat it.
            return record if record.end_asked else replace(record, end_asked=at, end_reason=reason, gave_up=gave_up)
        case lines.Reopened(at=at):
            return replace(record, reopened=at, outcome=None, sweeps=0, residual_since=None, residual=())
        case lines.Closed(outcome=outcome):
            return replace(record, outcome=outcome, phases=_ended(record, entry))
        case lines.UsageStarted() | lines.UsageEnded():
            return _add_usage(record, entry)
        case lines.OperationStarted() | lines.OperationInterrupted() | lines.OperationEnded():
            return _add_operation(record, entry)
        case _:
            return record


def _same(found: Iterable[Residual], before: Iterable[Residual]) -> bool:
    """Whether two sweeps found the same things, in whatever state."""
    return {(left.kind, left.resource_id) for left in found} == {(left.kind, left.resource_id) for left in before}


def _ended(record: Record, entry: Entry) -> tuple[PhaseSpan, ...]:
    return tuple(span if span.ended else replace(span, ended=entry.at) for span in record.phases)


def _add_usage(record: Record, entry: lines.UsageStarted | lines.UsageEnded) -> Record:
    if isinstance(entry, lines.UsageStarted):
        return replace(record, usage=(*record.usage, entry.usage))
    return replace(
        record,
        usage=tuple(
            replace(usage, ended=entry.ended)
            if (usage.kind, usage.resource_id, usage.ended) == (entry.usage_kind, entry.resource_id, None)
            else usage
            for usage in record.usage
        ),
    )


def _add_operation(
    record: Record, entry: lines.OperationStarted | lines.OperationInterrupted | lines.OperationEnded
) -> Record:
    if isinstance(entry, lines.OperationStarted):
        run = OperationRun(
            number=entry.number,
            name=entry.name,
            pid=entry.pid,
            process_started=entry.process_started,
            started=entry.at,
        )
        return replace(record, operations=(*record.operations, run))
    return replace(
        record,
        operations=tuple(_changed(run, entry) if run.number == entry.number else run for run in record.operations),
    )


def _changed(run: OperationRun, entry: lines.OperationInterrupted | lines.OperationEnded) -> OperationRun:
    if isinstance(entry, lines.OperationInterrupted):
        return replace(run, interrupted=entry.at)
    return replace(run, ended=entry.at, exit_code=entry.exit_code)
