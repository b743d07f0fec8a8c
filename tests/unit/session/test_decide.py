"""What a session does next, at every point of it, whoever looks."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from automation.errors import AwsUnreachable, CredentialsMissing
from automation.ledger.record import CheckResult, OperationRun, PhaseSpan, Residual, StartupMark
from automation.session.decide import (
    ACCEPT_TRIES,
    DESTROY_TRIES,
    MOST_SWEEPS,
    NOTHING_ANSWERS,
    NOTHING_GOES,
    ON_DEMAND_UP_TRIES,
    Decision,
    Interrupt,
    Kill,
    Start,
    Wait,
    decide,
)
from automation.session.observation import GpuGroup, Instance, OperationSeen, Unknown

Group = Callable[[int], GpuGroup]
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
GOOD = (CheckResult(check="chat", ok=True, detail=""),)
BAD = (CheckResult(check="chat", ok=False, detail="empty"),)


def at(case: Any, now: datetime) -> Decision:
    return decide(case.plan, case.observation, case.record, now)


def starts(decision: Decision) -> str | None:
    return decision.operation if isinstance(decision, Start) else None


def run(name: Any, started: datetime, *, number: int = 1, code: int | None = 0, lasts: bool = False) -> OperationRun:
    ended = None if lasts else started + 10 * MINUTE
    return OperationRun(
        number=number, name=name, pid=1, process_started=1.0, started=started, ended=ended, exit_code=code
    )


def phase(name: Any, started: datetime) -> tuple[PhaseSpan, ...]:
    return (PhaseSpan(name=name, started=started),)


def gpu_instance(started: datetime, state: str = "running", *, in_block: bool = True) -> Instance:
    return Instance(
        instance_id="i-1",
        instance_type="p6-b300.48xlarge",
        state=state,
        launched=started,
        ended=None,
        in_block=in_block,
    )


@pytest.fixture
def prepared(case: Any, group: Group) -> Any:
    """The stack is up, the block has not started."""
    prepare_by = case.plan.moments.prepare_by
    return case.with_record(operations=(run("up", prepare_by),)).seeing(group=group(0))


@pytest.fixture
def started(prepared: Any, group: Group) -> Any:
    """The block is active and its node was asked for."""
    now = prepared.plan.moments.start
    return prepared.with_record(raised=now, phases=phase("start", now)).seeing(
        reservation_state="active",
        reserved=None,
        group=group(1),
        startup=replace(prepared.ready, ready_since=None, phase="weights", sentence="Waiting for the weights."),
    )


@pytest.fixture
def serving(started: Any) -> Any:
    now = started.plan.moments.first_token_due
    return started.with_record(acceptance=GOOD, acceptance_at=now, phases=phase("serve", now)).seeing(
        startup=started.ready
    )


@pytest.mark.parametrize("state", ["payment-pending", "pending", "assessing"])
def test_nothing_is_made_before_the_payment_has_cleared(case: Any, state: str) -> None:
    now = case.plan.moments.prepare_by + MINUTE
    decision = at(case.seeing(reservation_state=state), now)
    assert isinstance(decision, Wait)
    assert decision.phase == "buy"


@pytest.mark.parametrize("state", ["payment-failed", "failed", "cancelled", "unsupported", "expired"])
def test_a_block_that_will_never_be_is_swept_and_closed(case: Any, state: str) -> None:
    assert starts(at(case.seeing(reservation_state=state), case.record.opened)) == "sweep"


def test_preparing_waits_for_its_moment_because_a_cluster_bills(case: Any) -> None:
    assert isinstance(at(case, case.plan.moments.prepare_by - SECOND), Wait)
    assert starts(at(case, case.plan.moments.prepare_by)) == "up"


def test_an_up_that_vanished_is_tried_again_after_a_pause(case: Any) -> None:
    gone = run("up", case.plan.moments.prepare_by, code=None)
    vanished = case.with_record(operations=(gone,))
    assert isinstance(at(vanished, gone.ended), Wait)
    assert starts(at(vanished, gone.ended + 30 * SECOND)) == "up"


@pytest.mark.parametrize("code", [5, 6, 9, None])
def test_an_up_that_fails_and_fails_is_tried_until_it_would_come_too_late(case: Any, code: int | None) -> None:
    runs = tuple(run("up", case.plan.moments.prepare_by, number=n, code=code) for n in range(1, 40))
    failing = case.with_record(operations=runs)
    assert starts(at(failing, case.plan.moments.start)) == "up"
    assert starts(at(failing, case.plan.moments.drain - case.plan.budget.total)) == "give-up"


def test_on_demand_an_up_that_fails_and_fails_is_given_up_since_no_fee_is_spent(case: Any) -> None:
    runs = tuple(run("up", case.plan.moments.prepare_by, number=n, code=9) for n in range(1, ON_DEMAND_UP_TRIES + 1))
    request = case.record.request.model_copy(update={"capacity": "on-demand"})
    assert starts(at(case.with_record(operations=runs, request=request), case.plan.moments.start)) == "give-up"


def test_a_stack_that_comes_too_late_to_serve_is_given_up(case: Any) -> None:
    now = case.plan.moments.drain - case.plan.budget.total
    assert starts(at(case.seeing(reservation_state="active"), now)) == "give-up"


def test_nodes_are_never_raised_before_the_block_is_active(prepared: Any) -> None:
    for now in (
        prepared.plan.moments.start - SECOND,
        prepared.plan.moments.start,
        prepared.plan.moments.start + MINUTE,
    ):
        for state in ("scheduled", "delayed", Unknown(reason="no answer")):
            assert isinstance(at(prepared.seeing(reservation_state=state), now), Wait)


def test_nodes_are_raised_in_the_second_in_which_the_block_is_active(prepared: Any) -> None:
    active = prepared.seeing(reservation_state="active")
    assert starts(at(active, prepared.plan.moments.start)) == "raise-nodes"
    assert at(prepared, prepared.plan.moments.start).until <= prepared.plan.moments.start + 2 * SECOND  # type: ignore[union-attr]


def test_nodes_are_never_raised_after_the_drain(prepared: Any, group: Group) -> None:
    moments = prepared.plan.moments
    now = moments.drain - prepared.plan.budget.total
    while now < moments.sweep_by:
        for seen in (group(0), group(1), None, Unknown(reason="no answer")):
            for state in ("active", "scheduled", "expired"):
                assert starts(at(prepared.seeing(reservation_state=state, group=seen), now)) != "raise-nodes"
        now += 7 * MINUTE


def test_nodes_are_never_raised_once_the_end_was_asked(prepared: Any) -> None:
    now = prepared.plan.moments.start + HOUR
    ended = prepared.with_record(end_asked=now).seeing(reservation_state="active")
    assert starts(at(ended, now)) == "destroy"


def test_a_group_that_aws_suspended_is_woken(started: Any, group: Group) -> None:
    asleep = replace(group(1), suspended=("Launch",))
    assert starts(at(started.seeing(group=asleep), started.plan.moments.start + MINUTE)) == "raise-nodes"


def test_nodes_that_were_raised_without_a_note_of_it_are_raised_once_more(started: Any) -> None:
    unnoted = started.with_record(raised=None).seeing(reservation_state="active", startup=None)
    assert starts(at(unnoted, started.plan.moments.start + MINUTE)) == "raise-nodes"


def test_what_serves_is_not_given_up_near_the_end_whatever_the_group_looks_like(serving: Any, group: Group) -> None:
    late = serving.plan.moments.drain - 2 * MINUTE
    for seen in (None, Unknown(reason="no"), group(0), replace(group(1), suspended=("Terminate",))):
        decision = at(serving.seeing(group=seen), late)
        assert isinstance(decision, Wait)
        assert decision.phase == "serve"


def test_the_start_is_watched_and_says_what_it_waits_for(started: Any) -> None:
    decision = at(started, started.plan.moments.start + MINUTE)
    assert isinstance(decision, Wait)
    assert (decision.phase, decision.why) == ("start", "Waiting for the weights.")


def test_an_hour_of_compiling_is_looked_at_more_often_the_nearer_its_end_is(started: Any) -> None:
    began = started.plan.moments.start + 10 * MINUTE
    engine = replace(started.ready, ready_since=None, phase="engine")
    case = started.seeing(startup=engine).with_record(startup=(StartupMark(phase="weights", ended=began),))
    due = began + case.plan.budget.engine
    now, looks = began, 0
    while now < due:
        until = at(case, now).until  # type: ignore[union-attr]
        assert until - now <= 30 * SECOND
        now, looks = until, looks + 1
    assert looks < 200
    assert case.plan.budget.engine > 50 * MINUTE
    for late in (due, due + 10 * MINUTE):
        assert at(case, late).until == late + 5 * SECOND  # type: ignore[union-attr]


def test_a_ready_model_is_accepted_and_then_serves(started: Any, serving: Any) -> None:
    now = started.plan.moments.first_token_due
    assert starts(at(started.seeing(startup=started.ready), now)) == "accept"
    decision = at(serving, now)
    assert isinstance(decision, Wait)
    assert decision.phase == "serve"


def test_a_failed_acceptance_is_tried_again_and_then_left_to_people(started: Any) -> None:
    now = started.plan.moments.first_token_due
    failed = started.seeing(startup=started.ready).with_record(
        acceptance=BAD, acceptance_at=now, acceptance_failures=1, phases=phase("accept", now)
    )
    assert isinstance(at(failed, now + SECOND), Wait)
    assert starts(at(failed, now + MINUTE)) == "accept"
    hopeless = at(failed.with_record(acceptance_failures=ACCEPT_TRIES), now + MINUTE)
    assert isinstance(hopeless, Wait)
    assert hopeless.phase == "accept"
    # A container that has started anew since then is another one.
    anew = failed.with_record(acceptance_failures=ACCEPT_TRIES).seeing(
        startup=replace(started.ready, ready_since=now + 5 * MINUTE)
    )
    assert starts(at(anew, now + 6 * MINUTE)) == "accept"


def test_a_model_that_goes_away_is_accepted_anew(serving: Any) -> None:
    now = serving.plan.moments.start + HOUR
    away = at(serving.seeing(startup=replace(serving.ready, ready_since=None)), now)
    assert away.phase == "start"
    back = serving.with_record(phases=phase("start", now))
    assert starts(at(back, now + MINUTE)) == "accept"


def test_a_model_that_was_away_between_two_looks_is_accepted_anew(serving: Any) -> None:
    now = serving.record.acceptance_at + HOUR
    reloaded = replace(serving.ready, ready_since=serving.record.acceptance_at + 20 * MINUTE)
    assert starts(at(serving.seeing(startup=reloaded), now)) == "accept"
    again = serving.with_record(acceptance_at=now, phases=phase("accept", now)).seeing(startup=reloaded)
    assert at(again, now).phase == "serve"


def test_an_aws_that_does_not_tell_the_reservations_state_stops_no_serving(serving: Any) -> None:
    late = serving.plan.moments.drain - MINUTE
    for seen in (Unknown(reason="throttled"), "unavailable"):
        blind = at(serving.seeing(reservation_state=seen), late)
        assert isinstance(blind, Wait)
        assert blind.phase == "serve"


def test_an_aws_that_does_not_tell_of_the_node_group_stops_no_serving(serving: Any) -> None:
    for seen in (Unknown(reason="throttled"), None):
        blind = at(serving.seeing(group=seen), serving.plan.moments.start + HOUR)
        assert isinstance(blind, Wait)
        assert blind.phase == "serve"


def test_one_look_without_a_node_group_gives_nothing_up(started: Any) -> None:
    lost = started.seeing(group=None)
    assert isinstance(at(lost, started.plan.moments.start + MINUTE), Wait)
    assert starts(at(lost, started.plan.moments.drain - started.plan.budget.total)) == "give-up"


def test_a_look_that_fails_changes_no_phase(serving: Any) -> None:
    for seen in (Unknown(reason="no answer"), replace(serving.ready, ready_since=None, unknown=True)):
        blind = at(serving.seeing(startup=seen), serving.plan.moments.start + HOUR)
        assert isinstance(blind, Wait)
        assert blind.phase == "serve"


def test_serving_ends_at_the_drain_moment_to_the_second(serving: Any) -> None:
    drain = serving.plan.moments.drain
    assert at(serving, drain - 30 * SECOND).until == drain  # type: ignore[union-attr]
    assert starts(at(serving, drain)) == "drain"


def test_a_day_of_serving_is_looked_at_every_ten_minutes(serving: Any) -> None:
    now, looks = serving.plan.moments.first_token_due, 0
    while now < serving.plan.moments.drain:
        until = at(serving, now).until  # type: ignore[union-attr]
        assert until - now <= 10 * MINUTE
        now, looks = until, looks + 1
    assert looks < 150


def test_the_destroy_waits_until_the_last_gpu_node_has_ended(serving: Any, group: Group) -> None:
    drain = serving.plan.moments.drain
    draining = serving.with_record(drain_asked=drain).seeing(group=group(0))
    for in_block in (True, False):
        ending = gpu_instance(drain, "shutting-down", in_block=in_block)
        assert isinstance(at(draining.seeing(instances=(ending,)), drain + MINUTE), Wait)
    assert starts(at(draining.seeing(instances=(gpu_instance(drain, "terminated"),)), drain + MINUTE)) == "destroy"


def test_a_drain_that_hangs_does_not_hold_up_the_destroy(serving: Any, group: Group) -> None:
    drain = serving.plan.moments.drain
    stuck = serving.with_record(drain_asked=drain).seeing(group=group(1), instances=(gpu_instance(drain),))
    assert starts(at(stuck, drain + 20 * MINUTE)) == "destroy"


def test_instances_that_could_not_be_seen_are_not_taken_for_ended(serving: Any, group: Group) -> None:
    drain = serving.plan.moments.drain
    blind = serving.with_record(drain_asked=drain).seeing(group=group(0), instances=Unknown(reason="throttled"))
    assert isinstance(at(blind, drain + MINUTE), Wait)


def test_a_silent_aws_does_not_hold_up_the_destroy(serving: Any) -> None:
    drain = serving.plan.moments.drain
    blind = serving.seeing(group=Unknown(reason="no"), instances=Unknown(reason="no"))
    assert isinstance(at(blind, drain), Wait)
    assert starts(at(blind, drain + 20 * MINUTE)) == "destroy"


def test_an_up_is_interrupted_once_when_the_session_ends(case: Any) -> None:
    now = case.plan.moments.start
    lasting = run("up", now - MINUTE, lasts=True)
    seen = OperationSeen(number=1, name="up", running=True, exit_code=None)
    ending = case.with_record(operations=(lasting,), end_asked=now).seeing(operation=seen)
    assert isinstance(at(ending, now), Interrupt)
    asked = ending.with_record(operations=(replace(lasting, interrupted=now),))
    assert isinstance(at(asked, now + SECOND), Wait)


@pytest.mark.parametrize("name", ["up", "destroy"])
def test_an_operation_that_does_not_stop_when_asked_is_ended_an_hour_later(case: Any, name: Any) -> None:
    now = case.plan.moments.drain
    asked = replace(run(name, now - HOUR, lasts=True), interrupted=now)
    seen = OperationSeen(number=1, name=name, running=True, exit_code=None)
    hangs = case.with_record(operations=(asked,), end_asked=now).seeing(operation=seen)
    assert isinstance(at(hangs, now + HOUR), Wait)
    assert isinstance(at(hangs, now + HOUR + SECOND), Kill)
    # What was killed is made good, however late that is: EKS bills until then.
    late = case.plan.moments.sweep_by + 5 * HOUR
    gone = replace(asked, ended=late, exit_code=None)
    killed = hangs.with_record(operations=(run("up", now - 9 * HOUR), gone), drain_asked=now).seeing(operation=None)
    assert starts(at(killed, late + MINUTE)) == "destroy"


def test_a_running_destroy_is_left_alone(case: Any) -> None:
    now = case.plan.moments.end
    seen = OperationSeen(number=1, name="destroy", running=True, exit_code=None)
    lasting = case.with_record(operations=(run("destroy", now - MINUTE, lasts=True),)).seeing(operation=seen)
    assert isinstance(at(lasting, now), Wait)


def test_a_running_operation_is_the_only_one(case: Any) -> None:
    now = case.plan.moments.prepare_by
    seen = OperationSeen(number=1, name="up", running=True, exit_code=None)
    lasting = case.with_record(operations=(run("up", now - MINUTE, lasts=True),)).seeing(operation=seen)
    assert isinstance(at(lasting, now + MINUTE), Wait)


def destroyed(case: Any, *, code: int, number: int = 1) -> Any:
    end = case.plan.moments.drain
    runs = (
        run("up", case.plan.moments.prepare_by),
        *tuple(run("destroy", end, number=n + 1, code=code) for n in range(1, number + 1)),
    )
    return case.with_record(operations=runs, end_asked=end, drain_asked=end)


def test_after_the_destroy_comes_the_sweep_then_the_report(case: Any) -> None:
    gone, now = destroyed(case, code=0), case.plan.moments.end
    assert starts(at(gone, now)) == "sweep"
    assert starts(at(gone.with_record(sweeps=1, swept_at=now), now)) == "report"


def left_over(name: str = "nat-1", **more: Any) -> Residual:
    return Residual(
        kind="nat_gateway", resource_id=name, region="us-west-2", detail="", usd_per_day=Decimal("1.08"), **more
    )


def swept_at(case: Any, now: datetime, *left: Residual, since: timedelta = timedelta(0), sweeps: int = 1) -> Any:
    """A session whose last sweep found `left`, as every sweep did for `since` before it."""
    gone = destroyed(case, code=0)
    return gone.with_record(sweeps=sweeps, swept_at=now, residual=left, residual_since=now - since)


def test_a_left_over_is_looked_for_again_until_nothing_goes_any_more(case: Any) -> None:
    now = case.plan.moments.end
    seen = swept_at(case, now, left_over())
    assert isinstance(at(seen, now + SECOND), Wait)
    assert starts(at(seen, now + MINUTE)) == "sweep"
    assert starts(at(swept_at(case, now, left_over(), since=NOTHING_GOES - SECOND), now + MINUTE)) == "sweep"
    assert starts(at(swept_at(case, now, left_over(), since=NOTHING_GOES), now)) == "report"
    # What changes all the time, as a controller of somebody else's does, is not looked at for ever.
    assert starts(at(swept_at(case, now, left_over(), sweeps=MOST_SWEEPS), now + HOUR)) == "report"


def test_what_is_not_known_or_kept_is_not_waited_for_as_long(case: Any) -> None:
    now = case.plan.moments.end
    unknown, kept = left_over(""), left_over(kept=True)
    assert starts(at(swept_at(case, now, unknown, since=NOTHING_ANSWERS - SECOND), now + MINUTE)) == "sweep"
    assert starts(at(swept_at(case, now, unknown, since=NOTHING_ANSWERS), now)) == "report"
    assert starts(at(swept_at(case, now, kept), now)) == "report"
    assert starts(at(swept_at(case, now, kept, left_over("b")), now + MINUTE)) == "sweep"


def test_a_look_for_a_left_over_is_never_long_away(case: Any) -> None:
    now = case.plan.moments.end
    swept = swept_at(case, now, left_over(), sweeps=40)
    assert isinstance(at(swept, now + 4 * MINUTE), Wait)
    assert starts(at(swept, now + 5 * MINUTE)) == "sweep"


def test_a_destroy_that_failed_is_tried_again_and_the_sweep_comes_anyway(case: Any) -> None:
    now = case.plan.moments.end
    assert starts(at(destroyed(case, code=9), now)) == "destroy"
    hopeless = destroyed(case, code=9, number=DESTROY_TRIES)
    assert starts(at(hopeless, now)) == "sweep"
    assert starts(at(hopeless.with_record(reopened=now), now)) == "destroy"


@pytest.mark.parametrize("code", [AwsUnreachable.exit_code, CredentialsMissing.exit_code])
def test_a_destroy_that_could_not_begin_is_tried_however_often_that_takes(case: Any, code: int) -> None:
    now = case.plan.moments.end
    offline = destroyed(case, code=code, number=10 * DESTROY_TRIES)
    assert starts(at(offline, now)) == "destroy"


def test_a_session_that_made_nothing_is_swept_without_a_destroy(case: Any) -> None:
    now = case.record.opened
    assert starts(at(case.with_record(end_asked=now), now)) == "sweep"


def test_an_expired_reservation_stops_nobody_from_cleaning_up(serving: Any) -> None:
    later = serving.plan.moments.end + timedelta(days=3)
    gone = serving.seeing(reservation_state=Unknown(reason="AWS shows no such reservation"), group=None)
    assert starts(at(gone, later)) == "destroy"
