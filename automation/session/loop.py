"""The loop of a session: observe, decide, start, write down; again until there is an outcome.

It may be killed at any line and started again, here or in another terminal: nothing is remembered outside the journal.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from automation.clock import RunningOperation
from automation.errors import RentblockError, machine_error
from automation.ledger.entries import (
    BlockKnown,
    BlockReleased,
    EndpointLost,
    Entry,
    FaultSeen,
    PhaseBegan,
    StartupMarked,
)
from automation.ledger.folder import SessionFolder
from automation.ledger.journal import Journal, alone
from automation.ledger.record import Record
from automation.market.reservations import PAYMENT_FAILED
from automation.serving.startup import StartupView
from automation.session.billed import billed_so_far, usage_entries
from automation.session.decide import Decision, Interrupt, Kill, Start, Wait, decide
from automation.session.display import Display, Progress
from automation.session.observation import GpuGroup, Observation, Unknown
from automation.session.observe import Observer
from automation.session.operations import LastWord, SeenOperation, interrupt, kill, start
from automation.session.plan import Plan, plan_of
from automation.session.steps import STEPS, Step
from automation.target import Target
from planning.block import Block
from planning.catalogue import load

_AFTER_A_FAULT = timedelta(seconds=2)
_TOLD_AGAIN = timedelta(minutes=10)
_MOST_TOLD = 20


def run(
    target: Target, folder: SessionFolder, display: Display, *, until: Callable[[Record], bool] | None = None
) -> Record:
    """Run a session on until it has an outcome, or until `until` says so after a look.

    Raises Refused when another process of this machine runs it, MachineInTheWay when the journal can't be written, and
    AwsUnreachable when not even AWS's time is known. Everything else that goes wrong is a fault in the journal and is
    tried again.
    """
    journal = Journal(folder.journal)
    record = journal.record()
    if record.block:
        target = target.in_region(record.block.region)
    with alone(folder), Observer(target, folder, journal) as observer:
        loop = _Loop(target, folder, journal, observer, display)
        while record.outcome is None and not (until and until(record)):
            record = loop.turn()
    return record


class _Loop:
    def __init__(
        self, target: Target, folder: SessionFolder, journal: Journal, observer: Observer, display: Display
    ) -> None:
        self._target = target
        self._folder = folder
        self._journal = journal
        self._observer = observer
        self._display = display
        self._before: Decision | None = None

    def turn(self) -> Record:
        """Look once and do what follows from it."""
        before = self._journal.record()
        now = self._target.clock.now()
        plan = plan_of(before, load())
        observation = self._observer.look(plan, before, now)
        for entry in _findings(plan, observation, before, self._folder, now):
            self._write(entry)
        record = self._journal.record()
        plan = plan_of(record, load())
        decision = decide(plan, observation, record, now)
        if decision.phase and decision.phase != record.phase:
            self._write(PhaseBegan(at=now, phase=decision.phase))
            record = self._journal.record()
        self._display.show(_progress(record, observation, decision, now))
        try:
            self._do(decision, plan, observation, record, now)
        except (RentblockError, OSError) as error:
            self._fault(decision, error)
        self._before = decision
        return self._journal.record()

    def _do(self, decision: Decision, plan: Plan, observation: Observation, record: Record, now: datetime) -> None:
        match decision:
            case Wait(until=until):
                self._target.clock.wait(until, _running(observation, record))
            case Interrupt():
                self._display.say(now, f"Asking the running operation to stop: {decision.why}.")
                interrupt(record, self._journal, now)
            case Kill():
                self._say_first_time(decision, f"Ending the running operation: {decision.why}.", now)
                kill(record)
                self._target.clock.wait(now + _AFTER_A_FAULT)
            case Start():
                self._start(decision, plan, observation, now)

    def _start(self, decision: Start, plan: Plan, observation: Observation, now: datetime) -> None:
        name = decision.operation
        if name == "up" or name == "destroy":
            self._say_first_time(decision, f"`pulumi {name}`: {decision.why}.", now)
            start(name, self._folder, self._journal, now, self._target.engine_environment)
            return
        self._say_first_time(decision, f"{name}: {decision.why}.", now)
        step = Step(
            target=self._target,
            folder=self._folder,
            journal=self._journal,
            observer=self._observer,
            plan=plan,
            observation=observation,
            why=decision.why,
        )
        STEPS[name](step)

    def _fault(self, decision: Decision, error: RentblockError | OSError) -> None:
        """What fails is a fault and is decided anew, while the block goes on: a journal that cannot be written ends the
        loop, and so does a report that cannot, since nothing follows it."""
        name = decision.operation if isinstance(decision, Start) else decision.why
        if name == "report":
            raise error
        said = machine_error(error) if isinstance(error, OSError) else error
        now, what = self._target.clock.now(), f"{name}: {said.happened}"
        # It may be made again every two seconds for hours, in other words each time, and each turn reads the journal.
        told = [fault.what for fault in self._journal.record().faults if now - fault.at < _TOLD_AGAIN]
        if what not in told and len(told) < _MOST_TOLD:
            self._write(FaultSeen(at=now, what=what))
        self._target.clock.wait(now + _AFTER_A_FAULT)

    def _say_first_time(self, decision: Decision, sentence: str, now: datetime) -> None:
        # What fails is made again every two seconds; saying so each time would fill the screen.
        if decision != self._before:
            self._display.say(now, sentence)

    def _write(self, entry: Entry) -> None:
        self._journal.write(entry)
        match entry:
            case FaultSeen():
                self._display.say(entry.at, entry.what)
            case BlockKnown(block=block):
                until = f"{block.start:%Y-%m-%d %H:%M} to {block.end:%Y-%m-%d %H:%M} UTC"
                self._display.say(entry.at, f"AWS holds {block.reservation_id} from {until} now.")


def _running(observation: Observation, record: Record) -> RunningOperation | None:
    return SeenOperation(run=record.operations[-1]) if observation.running else None


def _findings(
    plan: Plan, observation: Observation, record: Record, folder: SessionFolder, now: datetime
) -> Iterator[Entry]:
    """What a look has found that the journal does not know yet."""
    yield from usage_entries(observation, record, now)
    known = {mark.phase for mark in record.startup}
    startup = observation.startup
    if startup and not isinstance(startup, Unknown):
        yield from (
            StartupMarked(at=now, phase=mark.phase, ended=mark.ended)
            for mark in startup.ended
            if mark.phase not in known
        )
        if now < plan.moments.drain and (lost := _endpoint_lost(startup, record, now)):
            back = f"to {lost.back:%H:%M:%S}" if lost.back else "on"
            yield lost
            yield FaultSeen(at=now, what=f"The endpoint was away from {lost.since:%H:%M:%S} {back}.")
    if observation.reservation_state == PAYMENT_FAILED and not record.released:
        block = plan.block.reservation_id
        yield BlockReleased(at=now, reservation_id=block)
        yield FaultSeen(at=now, what=f"The payment of {block} failed: AWS took no money and gave the block up.")
    if moved := _moved(plan, observation, record, now):
        yield BlockKnown(at=now, block=moved)
    told = _told(record)
    yield from (FaultSeen(at=now, what=what) for what in _faults(observation, record, folder) if what not in told)


def _moved(plan: Plan, observation: Observation, record: Record, now: datetime) -> Block | None:
    """The block as AWS holds it, when that is for another time than is known: it was extended, or it is delayed. What
    is being ended stays ended, and a time in which nothing could be served changes no plan."""
    block, reserved = plan.block, observation.reserved
    ending = record.drain_asked or record.end_asked or now >= plan.moments.drain
    if ending or reserved is None or reserved == (block.start, block.end):
        return None
    start, end = reserved
    # An extension, of whole days, has a fee of its own that only whoever bought it was told.
    extended = end - block.end >= timedelta(hours=1)
    moved = replace(block, start=start, end=end, fee_usd=None if extended else block.fee_usd)
    try:
        plan_of(replace(record, block=moved), load())
    except RentblockError:
        return None
    return moved


def _endpoint_lost(startup: StartupView, record: Record, now: datetime) -> EndpointLost | None:
    """That what was accepted serves no more, or has been away between two looks; once for each acceptance."""
    accepted = record.acceptance_at
    away = not startup.ready and not startup.unknown
    if accepted is None or not record.accepted or not (away or startup.is_newer_than(accepted)):
        return None
    if record.phase in ("start", "accept") and any(known.until > accepted for known in record.interruptions):
        return None
    # A pod that was ready, was not, and is again without a new container leaves no trace of when it went away.
    gone = min((at for at in startup.went_away if accepted < at <= now), default=startup.ready_since or now)
    return EndpointLost(at=now, since=gone, back=startup.ready_since)


def _told(record: Record) -> frozenset[str]:
    return frozenset(fault.what for fault in record.faults)


def _faults(observation: Observation, record: Record, folder: SessionFolder) -> Iterator[str]:
    group, startup, operation = observation.group, observation.startup, observation.operation
    if isinstance(group, GpuGroup) and group.failed and record.raised:
        yield f"Auto Scaling: {group.last_activity}"
    if startup and not isinstance(startup, Unknown) and startup.phase and startup.late_by:
        yield f"The start is late in phase {startup.phase}."
    if operation and not operation.running and operation.exit_code != 0:
        place = folder.operation(operation.number, operation.name)
        word = LastWord.read(place)
        said = word.sentence if word else f"It ended without a word; {place}/child.log may have one."
        yield f"Operation {operation.number} (`pulumi {operation.name}`): {said}"


def _progress(record: Record, observation: Observation, decision: Decision, now: datetime) -> Progress:
    until = decision.until if isinstance(decision, Wait) else None
    return Progress(
        session=record.session,
        mode=record.mode,
        phase=record.phase,
        now=now,
        waiting_for=decision.why.removeprefix("Waiting for "),
        until=until,
        said=_said(observation),
        fee_usd=record.paid_block.fee_usd if record.paid_block else Decimal(0),
        outside_usd=billed_so_far(record, now),
    )


def _said(observation: Observation) -> str:
    """The last thing that AWS said: an error first, for it hides the rest."""
    pieces = (observation.reservation_state, observation.group, observation.instances, observation.startup)
    reasons = [piece.reason for piece in pieces if isinstance(piece, Unknown)]
    if reasons:
        return reasons[0]
    group, startup = observation.group, observation.startup
    # Of nodes that serve since hours, their launch is no news.
    serves = isinstance(startup, StartupView) and startup.ready
    activity = group.last_activity if isinstance(group, GpuGroup) and not serves else ""
    return activity or f"reservation {observation.reservation_state}"
