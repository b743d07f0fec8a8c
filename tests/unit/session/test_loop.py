"""A whole session with stand-ins for AWS, the engine and the endpoint, killed and gone on with at every turn."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from automation.accounts.minutes import minutes_lost
from automation.errors import AwsSaysNo, AwsUnreachable, ClusterFailed, LeftBehind, MachineInTheWay, RentblockError
from automation.ledger.entries import (
    BlockKnown,
    Closed,
    EndAsked,
    EndpointLost,
    Entry,
    FaultSeen,
    NodesRaised,
    Opened,
    OperationEnded,
    OperationStarted,
    PurchaseConfirmed,
)
from automation.ledger.folder import SessionFolder, session_folder
from automation.ledger.journal import Journal, alone, attendant
from automation.ledger.record import CheckResult, Record, Residual, StartupMark
from automation.serving.startup import StartupView
from automation.session import loop, rent, steps
from automation.session.decide import NOTHING_GOES, Kill, decide
from automation.session.display import Quiet
from automation.session.loop import run
from automation.session.observation import GpuGroup, Observation, OperationSeen, Unknown
from automation.session.operations import LastWord
from automation.session.plan import Plan, plan_of
from automation.target import Target
from planning.catalogue import load

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LEFT = Residual(kind="nat_gateway", resource_id="nat-1", region="us-west-2", detail="", usd_per_day=Decimal(1))


class World:
    """One thing after the other, in time that passes by waiting: operations take ten minutes, a start takes twelve."""

    def __init__(self, case: Any, group: Callable[[int], GpuGroup]) -> None:
        self.case, self.group = case, group
        self.time: datetime = case.record.opened
        self.state: str | None = None
        self.desired = 0
        self.raised_at: datetime | None = None
        self.done: list[str] = []
        self.refusals: list[str] = []
        self.left: list[tuple[Residual, ...]] = [()]
        self.deleted: list[Residual] = []
        self.not_deleted = ""
        self.checks = [CheckResult(check="chat", ok=True, detail="")]
        self.up_fails = 0
        self.outages: list[tuple[datetime, datetime]] = []
        self.reserved: Callable[[Plan, datetime], tuple[datetime, datetime] | None] = lambda plan, now: None

    # The clock of the target.
    def now(self) -> datetime:
        return self.time

    def wait(self, until: datetime, operation: object = None) -> None:
        self.time = max(self.time, until)

    # The observer.
    def __call__(self, target: Target, folder: SessionFolder, journal: Journal) -> "World":
        self.journal = journal
        return self

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def cluster(self) -> None:
        return None

    def look(self, plan: Plan, record: Record, now: datetime) -> Observation:
        moments = plan.moments
        ready = self.raised_at is not None and now >= self.raised_at + 12 * MINUTE
        marks = (StartupMark(phase="engine", ended=now),) if ready else ()
        last = record.operations[-1] if record.operations else None
        return Observation(
            reservation_state=self.state or ("active" if moments.start <= now < moments.end else "scheduled"),
            reserved=self.reserved(plan, now),
            operation=OperationSeen(number=last.number, name=last.name, running=False, exit_code=last.exit_code)
            if last
            else None,
            group=self.group(self.desired) if record.prepared else None,
            instances=(),
            usage=(),
            unseen=frozenset(),
            startup=self.startup(now, marks if ready else None) if self.desired and record.raised else None,
        )

    def startup(self, now: datetime, marks: tuple[StartupMark, ...] | None) -> StartupView:
        assert self.raised_at is not None
        away = [(since, back) for since, back in self.outages if since <= now]
        since, back = away[-1] if away else (None, self.raised_at + 12 * MINUTE)
        ready = marks is not None and back <= now
        return replace(
            self.case.ready, ready_since=back if ready else None, went_away=(since,) if since else (), ended=marks or ()
        )

    # What is done.
    def start(self, name: Any, folder: SessionFolder, journal: Journal, now: datetime, environment: object) -> None:
        self.done.append(name)
        number = len(journal.record().operations) + 1
        journal.write(OperationStarted(at=now, number=number, name=name, pid=1, process_started=1.0))
        fails = name == "up" and self.up_fails > 0
        self.up_fails -= fails
        self.time += 10 * MINUTE
        journal.write(OperationEnded(at=self.time, number=number, exit_code=9 if fails else 0))
        folder.operation(number, name).mkdir(parents=True)
        LastWord(exit_code=9 if fails else 0, sentence="no capacity" if fails else "").write(
            folder.operation(number, name)
        )

    def size(self, target: object, *given: Any) -> None:
        if self.refusals:
            raise AwsSaysNo(happened=self.refusals.pop(), code="Busy", remedy="")
        rising = self.desired == 0
        self.desired, self.raised_at = (1, self.time) if rising else (0, None)
        self.done.append("raise" if rising else "drain")

    def sweep(self, target: Target, session: str, cluster_name: str) -> tuple[Residual, ...]:
        self.done.append("sweep")
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def delete(self, target: Target, left: tuple[Residual, ...]) -> tuple[Residual, ...]:
        self.deleted += left
        return tuple(replace(each, detail=self.not_deleted) for each in left)

    def accept(self, base_url: str, key: str, model: str) -> tuple[CheckResult, ...]:
        self.done.append("accept")
        return tuple(self.checks)


@pytest.fixture
def world(case: Any, group: Callable[[int], GpuGroup], monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(case, group)
    monkeypatch.setattr(loop, "Observer", world)
    monkeypatch.setattr(loop, "start", world.start)
    monkeypatch.setattr(steps, "raise_nodes", world.size)
    monkeypatch.setattr(steps, "drain_nodes", world.size)
    monkeypatch.setattr(steps, "sweep", world.sweep)
    monkeypatch.setattr(steps, "delete", world.delete)
    monkeypatch.setattr(steps, "read_outputs", lambda folder: _Outputs())
    monkeypatch.setattr(steps, "api_key", lambda folder, cluster, namespace: "key")
    monkeypatch.setattr(steps, "connect", lambda kubeconfig, namespace, service: nullcontext("http://127.0.0.1:1/v1"))
    monkeypatch.setattr(steps.acceptance, "run", world.accept)
    monkeypatch.setattr(rent, "check_account", lambda target: None)
    return world


class _Outputs:
    namespace = service = served_model = "vllm"


@pytest.fixture
def target(world: World, tmp_path: Path) -> Target:
    return Target(
        mode="rehearsal",
        account_id="123456789012",
        region="us-west-2",
        boto_session=None,  # type: ignore[arg-type]
        endpoint_url=None,
        clock=world,
        home=tmp_path,
        engine_environment={},
    )


@pytest.fixture
def folder(tmp_path: Path, record: Record) -> SessionFolder:
    folder = session_folder(tmp_path, record.session)
    folder.create()
    journal = Journal(folder.journal)
    journal.write(
        Opened(
            at=record.opened,
            session=record.session,
            mode=record.mode,
            account_id=record.account_id,
            request=record.request,
        )
    )
    assert record.block is not None
    fee = record.block.fee_usd
    bought = PurchaseConfirmed(
        at=record.opened, offering_id="cb-1", reservation_id=record.block.reservation_id, fee_usd=fee
    )
    journal.write(bought)
    journal.write(BlockKnown(at=record.opened, block=record.block))
    return folder


STRAIGHT = ["up", "raise", "accept", "drain", "destroy", "sweep"]


def test_a_session_goes_straight_from_purchase_to_proof(world: World, target: Target, folder: SessionFolder) -> None:
    record = run(target, folder, Quiet())
    assert world.done == STRAIGHT
    assert record.outcome == "ok"
    assert [span.name for span in record.phases] == [
        "wait", "prepare", "wait", "start", "accept", "serve", "drain", "destroy", "sweep",
    ]  # fmt: skip
    assert all(span.ended for span in record.phases)
    assert {mark.phase for mark in record.startup} == {"engine", "acceptance"}
    assert (folder.root / "report.json").exists()


def test_a_session_that_is_killed_after_every_turn_does_the_same(
    world: World, target: Target, folder: SessionFolder
) -> None:
    asked = 0

    def dies(record: Record) -> bool:
        # Asked before and after each turn: every second time the process ends.
        nonlocal asked
        asked += 1
        return asked % 2 == 0

    record = Journal(folder.journal).record()
    while record.outcome is None:
        record = run(target, folder, Quiet(), until=dies)
    assert asked > 40
    assert world.done == STRAIGHT
    assert record.outcome == "ok"


def test_an_up_that_fails_is_tried_again_and_its_words_are_kept(
    world: World, target: Target, folder: SessionFolder
) -> None:
    world.up_fails = 1
    record = run(target, folder, Quiet())
    assert world.done == ["up", *STRAIGHT]
    assert [fault.what for fault in record.faults] == ["Operation 1 (`pulumi up`): no capacity"]
    assert record.outcome == "ok"


def test_a_call_that_aws_refuses_is_a_fault_and_is_made_again(
    world: World, target: Target, folder: SessionFolder
) -> None:
    class Heard(Quiet):
        def say(self, now: datetime, sentence: str) -> None:
            said.append(sentence)

    said: list[str] = []
    world.refusals = ["busy"] * 9
    record = run(target, folder, Heard())
    assert world.done == STRAIGHT
    assert [what for what in said if what.startswith("raise-nodes")] == ["raise-nodes: 1 node(s).", "raise-nodes: busy"]
    assert [fault.what for fault in record.faults] == ["raise-nodes: busy"]


def test_a_refusal_in_other_words_each_time_does_not_fill_the_journal(
    world: World, target: Target, folder: SessionFolder
) -> None:
    world.refusals = [f"request {number} failed" for number in range(100)]
    record = run(target, folder, Quiet())
    assert world.done == STRAIGHT
    assert len(record.faults) == loop._MOST_TOLD
    assert record.outcome == "ok"


def test_a_broken_endpoint_is_tried_three_times_and_told(world: World, target: Target, folder: SessionFolder) -> None:
    world.checks.append(CheckResult(check="streaming", ok=False, detail="one piece"))
    record = run(target, folder, Quiet())
    assert world.done == ["up", "raise", "accept", "accept", "accept", "drain", "destroy", "sweep"]
    assert record.outcome == "not accepted"
    assert record.faults[0].what == "Acceptance check streaming: one piece"


def test_the_outcome_is_ok_only_when_the_sweep_found_nothing(
    world: World, target: Target, folder: SessionFolder
) -> None:
    world.left = [(LEFT,)]
    record = run(target, folder, Quiet())
    assert record.outcome == "something is left"
    with pytest.raises(LeftBehind, match="nat-1"):
        rent._require_empty(record)


def test_a_left_over_that_goes_away_is_no_left_over(world: World, target: Target, folder: SessionFolder) -> None:
    world.left = [(LEFT,), ()]
    record = run(target, folder, Quiet())
    assert (record.outcome, record.sweeps) == ("ok", 2)


def test_what_a_second_look_finds_as_well_is_deleted(world: World, target: Target, folder: SessionFolder) -> None:
    slow = replace(LEFT, resource_id="nat-slow")
    world.left = [(slow, LEFT), (LEFT,), ()]
    assert run(target, folder, Quiet()).outcome == "ok"
    assert world.deleted == [LEFT]


def test_what_cannot_be_deleted_is_reported_with_the_reason(
    world: World, target: Target, folder: SessionFolder
) -> None:
    world.left, world.not_deleted = [(LEFT,)], "Not allowed."
    record = run(target, folder, Quiet())
    assert [left.detail for left in record.residual] == ["Not allowed."]
    assert record.residual_since is not None
    assert record.swept_at is not None
    assert record.swept_at - record.residual_since >= NOTHING_GOES


def test_a_sweep_that_aws_does_not_answer_has_learned_nothing(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def sweep(*given: Any) -> tuple[Residual, ...]:
        nonlocal asked
        asked += 1
        if asked <= 2000:
            raise AwsUnreachable(happened="No network.", remedy="")
        return world.sweep(*given)

    monkeypatch.setattr(steps, "sweep", sweep)
    record = run(target, folder, Quiet())
    assert (record.outcome, record.sweeps) == ("ok", 1)
    assert 1 < len(record.faults) < 20


def test_down_ends_a_session_in_the_middle(world: World, target: Target, folder: SessionFolder) -> None:
    run(target, folder, Quiet(), until=lambda record: record.phase == "serve")
    record = rent.end(target, folder, Quiet(), "`rentblock down`")
    assert world.done == STRAIGHT
    assert world.time < world.case.plan.moments.drain
    assert (record.outcome, record.end_reason) == ("ok", "`rentblock down`")


def test_down_again_sweeps_what_was_left(world: World, target: Target, folder: SessionFolder) -> None:
    world.left = [(LEFT,)]
    run(target, folder, Quiet())
    world.left = [()]
    assert rent.end(target, folder, Quiet(), "again").outcome == "ok"
    done = list(world.done)
    rent.end(target, folder, Quiet(), "and again")
    assert world.done == done


def test_down_before_anything_was_made_only_sweeps(world: World, target: Target, folder: SessionFolder) -> None:
    rent.end(target, folder, Quiet(), "changed my mind")
    assert world.done == ["sweep"]


def test_a_session_without_a_block_is_closed(target: Target, world: World, tmp_path: Path, record: Record) -> None:
    folder = session_folder(tmp_path, "rtb-without")
    folder.create()
    Journal(folder.journal).write(
        Opened(at=record.opened, session="s", mode="rehearsal", account_id="123456789012", request=record.request)
    )
    assert rent.end(target, folder, Quiet(), "down").outcome == "nothing bought"
    assert world.done == []


def test_leaving_the_with_block_ends_the_session_also_on_an_exception(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch, record: Record
) -> None:
    monkeypatch.setattr(rent, "begin", lambda *given: folder)
    monkeypatch.setattr(rent, "_connected", lambda *given: None)
    with pytest.raises(ZeroDivisionError), rent.rent(record.request, target):
        raise ZeroDivisionError
    assert world.done == STRAIGHT
    assert Journal(folder.journal).record().outcome == "ok"


@pytest.fixture
def in_reach(monkeypatch: pytest.MonkeyPatch, folder: SessionFolder) -> list[RentblockError]:
    """What the way to the endpoint raises, one after the other, before it is there."""
    raised: list[RentblockError] = []

    def connect(*given: Any) -> nullcontext[str]:
        if raised:
            raise raised.pop(0)
        return nullcontext("http://127.0.0.1:1/v1")

    monkeypatch.setattr(rent, "begin", lambda *given: folder)
    monkeypatch.setattr(rent, "Cluster", lambda kubeconfig: nullcontext())
    monkeypatch.setattr(rent, "connect", connect)
    monkeypatch.setattr(rent, "api_key", lambda *given: "key")
    named = SimpleNamespace(namespace="vllm", service="vllm", served_model="k3")
    monkeypatch.setattr(rent, "_outputs", lambda folder: named)
    return raised


def test_an_endpoint_that_is_out_of_reach_for_a_moment_ends_no_paid_day(
    world: World, target: Target, in_reach: list[RentblockError], record: Record
) -> None:
    in_reach += [ClusterFailed(happened="No pod is ready.", remedy="")] * 3
    with rent.rent(record.request, target) as session:
        assert (session.base_url, session.api_key, in_reach) == ("http://127.0.0.1:1/v1", "key", [])
        assert session.drain > world.time
    assert world.done == STRAIGHT


def test_an_endpoint_that_stays_out_of_reach_is_tried_until_the_drain(
    world: World, target: Target, in_reach: list[RentblockError], record: Record
) -> None:
    in_reach += [ClusterFailed(happened="No pod is ready.", remedy="")] * 100_000
    with pytest.raises(ClusterFailed), rent.rent(record.request, target):
        pytest.fail("there is nothing to use")
    assert world.case.plan.moments.drain <= world.time < world.case.plan.moments.end
    assert world.done == STRAIGHT


def test_a_session_that_never_served_raises_and_leaves_nothing(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch, record: Record
) -> None:
    monkeypatch.setattr(rent, "begin", lambda *given: folder)
    world.up_fails = 99
    with pytest.raises(rent.AcceptanceFailed, match="too short to serve"), rent.rent(record.request, target):
        pytest.fail("there is nothing to use")
    assert set(world.done[:-2]) == {"up"}
    assert world.done[-2:] == ["destroy", "sweep"]


@pytest.mark.parametrize(
    "error",
    [
        MachineInTheWay(happened="This machine refused: Cannot allocate memory.", remedy=""),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ],
)
def test_a_machine_that_is_in_the_way_for_a_while_ends_no_paid_session(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    refusals = [error, error]

    def short_of_memory(*given: Any) -> None:
        if refusals:
            raise refusals.pop()
        world.start(*given)

    monkeypatch.setattr(loop, "start", short_of_memory)
    record = run(target, folder, Quiet())
    assert world.done == STRAIGHT
    assert [fault.what for fault in record.faults] == ["up: This machine refused: Cannot allocate memory."]
    assert record.outcome == "ok"


def test_an_operation_that_does_not_stop_is_ended_and_the_session_goes_on(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    decisions = [Kill(phase="prepare", why="it has not stopped within 1:00:00")]
    monkeypatch.setattr(loop, "decide", lambda *given: decisions.pop() if decisions else decide(*given))
    monkeypatch.setattr(loop, "kill", lambda record: ended.append(record.session))
    before = world.time
    run(target, folder, Quiet(), until=lambda record: bool(ended))
    assert ended == [folder.session]
    assert world.time > before
    assert run(target, folder, Quiet()).outcome == "ok"


def test_a_journal_that_cannot_be_written_ends_the_loop(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(Journal):
        def write(self, entry: Entry) -> None:
            if isinstance(entry, (NodesRaised, FaultSeen)):
                raise MachineInTheWay(happened="disk full", remedy="")
            super().write(entry)

    monkeypatch.setattr(loop, "Journal", Full)
    with pytest.raises(MachineInTheWay):
        run(target, folder, Quiet())
    assert world.done == ["up", "raise"]


def test_a_session_whose_report_cannot_be_written_is_not_closed(
    world: World, target: Target, folder: SessionFolder
) -> None:
    (folder.root / "report.json").mkdir()
    with pytest.raises(MachineInTheWay):
        run(target, folder, Quiet())
    assert Journal(folder.journal).record().outcome is None
    (folder.root / "report.json").rmdir()
    assert run(target, folder, Quiet()).outcome == "ok"
    assert '"outcome": "ok"' in (folder.root / "report.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("minutes", [2, 90])
def test_an_endpoint_that_went_away_is_accepted_anew_and_its_minutes_are_no_served_ones(
    world: World, target: Target, folder: SessionFolder, minutes: int
) -> None:
    went = world.case.plan.moments.start + 5 * HOUR + timedelta(seconds=13)
    world.outages = [(went, went + minutes * MINUTE)]
    record = run(target, folder, Quiet())
    assert world.done == ["up", "raise", "accept", "accept", "drain", "destroy", "sweep"]
    assert record.outcome == "ok"
    assert [lost.since for lost in record.interruptions] == [went]
    assert any("away from 16:30:13" in fault.what for fault in record.faults)
    # It counts as served again from the second acceptance on, which comes with the next look.
    assert record.acceptance_at is not None
    anew = Decimal((record.acceptance_at - went) / MINUTE)
    assert minutes_lost(record).lost["restart"] == pytest.approx(anew, abs=Decimal("0.01"))
    assert minutes <= anew <= minutes + 10


def test_of_two_pods_that_went_away_the_first_one_begins_the_loss(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    went = world.case.plan.moments.start + 5 * HOUR
    world.outages = [(went, went + 9 * MINUTE)]
    alone = world.startup

    def two_pods(now: datetime, marks: tuple[StartupMark, ...] | None) -> StartupView:
        seen = alone(now, marks)
        other = (went + 7 * MINUTE, world.case.plan.moments.start) if seen.went_away else ()
        return replace(seen, went_away=(*other, *seen.went_away))

    monkeypatch.setattr(world, "startup", two_pods)
    record = run(target, folder, Quiet())
    assert [lost.since for lost in record.interruptions] == [went]


def test_a_session_killed_between_seeing_a_loss_and_saying_so_counts_all_of_it(
    world: World, target: Target, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    went = world.case.plan.moments.start + 5 * HOUR
    world.outages = [(went, went + 3 * HOUR)]

    class Dies(Journal):
        def write(self, entry: Entry) -> None:
            super().write(entry)
            if isinstance(entry, EndpointLost) and not died:
                died.append(entry)
                raise KeyboardInterrupt

    died: list[Entry] = []
    monkeypatch.setattr(loop, "Journal", Dies)
    with pytest.raises(KeyboardInterrupt):
        run(target, folder, Quiet())
    # Nobody looks for hours; when somebody does, the endpoint is back, and serves again once it is accepted.
    world.time += 4 * HOUR
    record = run(target, folder, Quiet())
    assert record.acceptance_at is not None
    assert record.acceptance_at > went + 4 * HOUR
    lost = Decimal((record.acceptance_at - went) / MINUTE)
    assert minutes_lost(record).lost["restart"] == pytest.approx(lost, abs=Decimal("0.01"))


def test_a_block_that_somebody_extends_is_served_to_its_new_end(
    world: World, target: Target, folder: SessionFolder
) -> None:
    day = timedelta(days=1)
    before = plan_of(Journal(folder.journal).record(), load())
    extended = (before.block.start, before.block.end + day)
    world.reserved = lambda plan, now: extended if now > before.block.start + 5 * HOUR else None
    record = run(target, folder, Quiet())
    assert record.block is not None
    assert (record.block.start, record.block.end, record.block.fee_usd) == (*extended, None)
    drained = next(span.started for span in record.phases if span.name == "drain")
    assert drained == before.moments.drain + day
    assert record.outcome == "ok"


def test_what_is_being_ended_stays_ended_whatever_is_bought_then(
    world: World, target: Target, folder: SessionFolder
) -> None:
    before = plan_of(Journal(folder.journal).record(), load())
    later = (before.block.start, before.block.end + timedelta(days=1))
    world.reserved = lambda plan, now: later if now >= before.moments.drain else None
    record = run(target, folder, Quiet())
    assert record.block == before.block
    assert world.done.count("up") == 1


def test_a_block_that_is_moved_to_where_nothing_could_be_served_changes_no_plan(
    world: World, target: Target, folder: SessionFolder
) -> None:
    before = plan_of(Journal(folder.journal).record(), load())
    world.reserved = lambda plan, now: (before.block.start, before.block.start + timedelta(minutes=5))
    assert run(target, folder, Quiet()).block == before.block


def test_a_block_whose_payment_failed_is_not_called_paid(world: World, target: Target, folder: SessionFolder) -> None:
    world.state = "payment-failed"
    record = run(target, folder, Quiet())
    assert world.done == ["sweep"]
    assert (record.outcome, record.purchases, record.paid_block) == ("nothing was bought", (), None)
    assert "No block was paid." in str(rent._never_served(record))
    report = json.loads((folder.root / "report.json").read_text(encoding="utf-8"))
    assert (report["cost"]["block_usd"], report["block"], report["paid_minutes"]) == (0, None, 0)
    assert "took no money" in report["faults"][0]["what"]


_HOLDS = """
import signal, sys, time
from pathlib import Path
from automation.ledger.folder import SessionFolder
from automation.ledger.journal import alone
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
with alone(SessionFolder(root=Path(sys.argv[1]))):
    print("holds", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("ears", "ended"), [("hears", signal.SIGINT), ("deaf", signal.SIGTERM)])
def test_down_takes_over_from_whoever_runs_it_also_if_that_minds_no_ctrl_c(
    world: World, target: Target, folder: SessionFolder, ears: str, ended: int
) -> None:
    runs = [sys.executable, "-c", _HOLDS, str(folder.root), ears]
    with subprocess.Popen(runs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "holds\n"
        rent.end(target, folder, Quiet(), "down")
        assert other.wait(timeout=60) == -ended
    assert world.done == ["sweep"]


def test_the_last_second_of_a_block_is_no_extension(world: World, target: Target, folder: SessionFolder) -> None:
    before = plan_of(Journal(folder.journal).record(), load())
    second = timedelta(seconds=1)
    world.reserved = lambda plan, now: (before.block.start, before.block.end + second)
    record = run(target, folder, Quiet())
    assert record.block == replace(before.block, end=before.block.end + second)


def test_a_session_is_attended_by_the_process_that_has_its_lock_open(folder: SessionFolder) -> None:
    assert attendant(folder) is None
    with alone(folder):
        assert attendant(folder) == os.getpid()
        # Between locking and signing, the pid of somebody who had it before.
        folder.lock.write_text(f"{os.getppid()}\n")
        assert attendant(folder) is None
        folder.lock.write_text("")
        assert attendant(folder) is None
    folder.lock.write_text(f"{os.getpid()}\n")
    assert attendant(folder) is None


def test_another_account_may_not_touch_a_session(target: Target, folder: SessionFolder, world: World) -> None:
    with pytest.raises(rent.UnknownSession, match="account 123456789012"):
        rent.end(replace(target, account_id="999999999999"), folder, Quiet(), "down")
    kinds = [type(entry) for entry in Journal(folder.journal).entries()]
    assert EndAsked not in kinds
    assert Closed not in kinds


def test_the_last_word_of_aws_is_no_launch_of_hours_ago(case: Any, group: Callable[[int], GpuGroup]) -> None:
    launched = replace(group(1), last_activity="Launching a new EC2 instance: i-1")
    started = replace(case.ready, ready_since=case.plan.moments.start)
    serving = case.seeing(reservation_state="active", group=launched, startup=started)
    assert loop._said(serving.observation) == "reservation active"
    starting = serving.seeing(startup=replace(started, ready_since=None))
    assert loop._said(starting.observation) == "Launching a new EC2 instance: i-1"
    silent = serving.seeing(instances=Unknown(reason="AWS is busy"))
    assert loop._said(silent.observation) == "AWS is busy"
