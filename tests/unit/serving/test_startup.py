"""The watch names the first unfinished phase, when each one ended, what is waited for, and what is late."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from automation.ledger.record import StartupMark
from automation.serving.facts import Facts, LogLine, NodeSeen, PodSeen
from automation.serving.startup import Expected, StartupView, view
from planning.budget import StartupBudget
from planning.costs import STARTUP_PHASES

START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
BUDGET = StartupBudget(**{phase: timedelta(minutes=2) for phase in STARTUP_PHASES})
EXPECTED = Expected(since=START, instances=1, gpus_per_instance=8, budget=BUDGET)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def node(*, ready: float | None = 3, gpus: int = 0) -> NodeSeen:
    return NodeSeen(name="ip-10-0-0-9", ready_since=None if ready is None else at(ready), gpus=gpus)


def pod(
    *,
    started: float | None = None,
    ready: float | None = None,
    log: tuple[LogLine, ...] = (),
    restarts: int = 0,
    away: float | None = None,
) -> PodSeen:
    return PodSeen(
        name="vllm-0",
        started=None if started is None else at(started),
        ready_since=None if ready is None else at(ready),
        went_away=() if away is None else (at(away),),
        restarts=restarts,
        waiting="ContainerCreating; Pulling: pulling image" if started is None else None,
        log=log,
    )


LOADED = LogLine(at=at(9), text="(Worker_TP0) Model loading took 192.5613 GiB memory and 231.2 seconds")
CAPTURE = LogLine(at=at(10), text="Capturing CUDA graphs: 12 of 51")

NOTHING = Facts()
LAUNCHED = Facts(running_instances=1)
JOINED = replace(LAUNCHED, nodes=(node(),))
WITH_GPUS = replace(LAUNCHED, nodes=(node(gpus=8),), pods=(pod(),))
STARTED = replace(WITH_GPUS, pods=(pod(started=5),))
LOADED_ALL = replace(WITH_GPUS, pods=(pod(started=5, log=(LOADED, CAPTURE)),))
READY = replace(WITH_GPUS, pods=(pod(started=5, ready=11),))


@pytest.mark.parametrize(
    ("facts", "phase", "says"),
    [
        (NOTHING, "launch", "0 of 1"),
        (LAUNCHED, "join", "0 of 1"),
        (replace(LAUNCHED, nodes=(node(ready=None),)), "join", "1 have joined"),
        (JOINED, "device_plugin", "0 of 8 GPUs"),
        (WITH_GPUS, "image", "Pulling: pulling image"),
        (replace(WITH_GPUS, pods=()), "image", "there is no pod yet"),
        (STARTED, "weights", "its log is still empty"),
        (replace(WITH_GPUS, pods=(pod(started=5, log=(CAPTURE,)),)), "weights", "Capturing CUDA graphs"),
        (LOADED_ALL, "engine", "Capturing CUDA graphs: 12 of 51"),
        (replace(WITH_GPUS, pods=(pod(started=5, log=(LOADED,), restarts=2),)), "engine", "restarted 2 times"),
        (READY, "acceptance", "acceptance checks"),
    ],
)
def test_the_first_unfinished_phase_is_named_with_what_it_waits_for(facts: Facts, phase: str, says: str) -> None:
    seen = view(facts, EXPECTED, now=at(12))
    assert seen.phase == phase
    assert says in seen.sentence
    assert [mark.phase for mark in seen.ended] == list(STARTUP_PHASES[: STARTUP_PHASES.index(phase)])


def test_the_auto_scaling_groups_own_words_are_shown_while_nothing_launches() -> None:
    refused = "Could not launch: the Capacity Block is not active yet"
    assert refused in view(replace(NOTHING, activity=refused), EXPECTED, now=at(1)).sentence


def ends(seen: StartupView) -> dict[str, datetime]:
    return {mark.phase: mark.ended for mark in seen.ended}


def test_an_end_is_the_clusters_own_timestamp_where_it_has_one() -> None:
    seen = ends(view(LOADED_ALL, EXPECTED, now=at(12)))
    assert (seen["join"], seen["image"], seen["weights"]) == (at(3), at(5), at(9))
    assert ends(view(READY, EXPECTED, now=at(12)))["engine"] == at(11)


def test_an_end_without_a_timestamp_is_when_it_was_seen() -> None:
    assert ends(view(LAUNCHED, EXPECTED, now=at(1.5)))["launch"] == at(1.5)


def test_a_timestamp_of_another_clock_is_not_believed() -> None:
    for wrong in (-600, 600):
        seen = ends(view(replace(LAUNCHED, nodes=(node(ready=wrong),)), EXPECTED, now=at(4)))
        assert seen["join"] == at(4)


def test_a_phase_ends_no_later_than_its_successor() -> None:
    seen = ends(view(READY, EXPECTED, now=at(12)))
    assert list(seen.values()) == sorted(seen.values())
    assert seen["launch"] == seen["join"] == at(3)
    assert seen["device_plugin"] == at(5)


def test_weights_without_their_log_line_ended_when_the_pod_was_ready() -> None:
    assert ends(view(READY, EXPECTED, now=at(12)))["weights"] == at(11)


def test_an_end_once_established_stands() -> None:
    marks = (StartupMark(phase="launch", ended=at(1)), StartupMark(phase="join", ended=at(2.5)))
    seen = view(Facts(unknown=("The cluster did not answer.",)), EXPECTED, marks, now=at(4))
    assert seen.phase == "device_plugin"
    assert seen.ended == marks
    assert ends(view(READY, EXPECTED, marks, now=at(12)))["join"] == at(2.5)


def test_what_could_not_be_read_is_not_taken_for_missing() -> None:
    seen = view(Facts(unknown=("AWS did not answer while looking.",)), EXPECTED, now=at(1))
    assert seen.sentence == "Not known what is waited for: AWS did not answer while looking."
    assert seen.unknown
    assert not view(READY, EXPECTED, now=at(12)).unknown


def test_a_phase_is_late_by_what_it_takes_beyond_its_budget_and_the_margin() -> None:
    assert view(STARTED, EXPECTED, now=at(6)).late_by == timedelta(0)
    assert view(STARTED, EXPECTED, now=at(8.5)).late_by == timedelta(minutes=0.5)


def test_two_instances_are_launched_when_both_run_and_ready_when_both_pods_are() -> None:
    two = replace(EXPECTED, instances=2)
    assert view(LAUNCHED, two, now=at(1)).phase == "launch"
    half = Facts(
        running_instances=2, nodes=(node(gpus=8), node(gpus=8)), pods=(pod(started=5, ready=11), pod(started=6))
    )
    assert view(half, two, now=at(12)).phase == "weights"
    assert not view(half, two, now=at(12)).ready
    both = replace(half, pods=(pod(started=5, ready=11), pod(started=6, ready=11.5)))
    assert ends(view(both, two, now=at(12)))["engine"] == at(11.5)


def test_the_start_is_over_once_the_acceptance_is_marked() -> None:
    seen = view(READY, EXPECTED, (StartupMark(phase="acceptance", ended=at(12)),), now=at(13))
    assert seen.phase is None
    assert seen.ready
    assert [mark.phase for mark in seen.ended] == list(STARTUP_PHASES)


def test_a_model_that_loads_again_after_the_start_is_said_to_and_dated() -> None:
    marks = tuple(StartupMark(phase=phase, ended=at(12)) for phase in STARTUP_PHASES)
    away = view(
        replace(WITH_GPUS, pods=(pod(started=41, away=40, restarts=1, log=(CAPTURE,)),)), EXPECTED, marks, now=at(43)
    )
    assert (away.ready, away.went_away) == (False, (at(40),))
    assert away.sentence.startswith("Waiting for the model to serve again (the container has restarted once)")
    assert "Capturing" in away.sentence
    back = view(replace(WITH_GPUS, pods=(pod(started=41, ready=47, away=40),)), EXPECTED, marks, now=at(60))
    assert (back.ready_since, back.went_away, back.sentence) == (at(47), (at(40),), "The start is over.")
    assert back.is_newer_than(at(12))
    assert not back.is_newer_than(at(48))
    assert not back.is_newer_than(None)
