"""The watch over a start: which phase is unfinished, since when, what is being waited for, and whether it is late.

Each minute of it is paid, so a phase that overruns its budget is named at once and not when some probe gives up.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from planning.budget import StartupBudget
from planning.costs import STARTUP_PHASES

from ..ledger.record import StartupMark
from ..target import Target
from .cluster import Cluster
from .facts import Facts, LogLine, PodSeen, read

# vLLM says the first per worker (default_loader.py, also of other loaders), the second per GPU (gpu_model_runner.py).
_WEIGHTS_LOADED = re.compile(r"Loading weights took|Model loading took")
_NO_TIME = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a start should come to: `since` is the first paid second (aware UTC)."""

    since: datetime
    instances: int
    gpus_per_instance: int
    budget: StartupBudget


@dataclass(frozen=True, kw_only=True)
class StartupView:
    """A start at one instant.

    `phase` is the first unfinished one of STARTUP_PHASES, None when all are over; `ended` are those before it, each
    with the instant of its end; `sentence` says what is waited for; `late_by` is how far it is over its budget and
    margin, zero while it is within them. Of the pods that serve the model are `restarts`, `ready_since` (when the last
    of them became ready, None while one is not) and `went_away` (when one of them may have stopped serving).
    `unknown`: something could not be read, the sentence says what and why, and a `ready_since` of None proves nothing.
    """

    phase: str | None
    ended: tuple[StartupMark, ...]
    sentence: str
    late_by: timedelta
    ready_since: datetime | None
    restarts: int
    went_away: tuple[datetime, ...] = ()
    unknown: bool = False

    @property
    def ready(self) -> bool:
        """Whether every pod that is to serve the model is ready."""
        return self.ready_since is not None

    def is_newer_than(self, accepted: datetime | None) -> bool:
        """Whether a pod became ready only after `accepted`: what was accepted then serves no more."""
        return accepted is not None and self.ready_since is not None and self.ready_since > accepted


def look(
    cluster: Cluster,
    target: Target,
    expected: Expected,
    marks: Iterable[StartupMark] = (),
    *,
    cluster_name: str,
    node_group: str = "gpu",
    namespace: str = "vllm",
) -> StartupView:
    """Read EC2 and the cluster once. Never raises: what could not be read is said in the sentence."""
    marks = tuple(marks)
    facts = read(
        cluster,
        target,
        cluster_name=cluster_name,
        node_group=node_group,
        namespace=namespace,
        ended={mark.phase for mark in marks},
    )
    return view(facts, expected, marks, now=target.clock.now())


def view(facts: Facts, expected: Expected, marks: Iterable[StartupMark] = (), *, now: datetime) -> StartupView:
    """What the facts of `now` mean. `marks` are the ends that earlier looks have established; they stand.

    An end is told by the cluster's own timestamp where there is one (a node's and a pod's Ready condition, a
    container's start, a log line), as long as it lies between `expected.since` and `now`; else it is when the end was
    first seen.
    The acceptance is not seen here: its mark comes from whoever ran it.
    """
    known = {mark.phase: mark.ended for mark in marks}
    ends = _ends(facts, expected, known, now)
    unfinished = next((phase for phase in STARTUP_PHASES if phase not in ends), None)
    ended = tuple(StartupMark(phase=phase, ended=ends[phase]) for phase in STARTUP_PHASES if phase in ends)
    return StartupView(
        phase=unfinished,
        ended=ended,
        sentence=_sentence(unfinished, facts, expected),
        late_by=_late_by(unfinished, max([expected.since, *ends.values()]), expected.budget, now),
        ready_since=_ready_since(facts, expected),
        restarts=sum(pod.restarts for pod in facts.pods),
        went_away=tuple(at for pod in facts.pods for at in pod.went_away),
        unknown=bool(facts.unknown),
    )


def _ends(facts: Facts, expected: Expected, known: dict[str, datetime], now: datetime) -> dict[str, datetime]:
    """When each phase ended. A phase whose successor is over is over too, and no later than it."""
    seen = _seen_ends(facts, expected, now)
    ends: dict[str, datetime] = {}
    successor: datetime | None = None
    for phase in reversed(STARTUP_PHASES):
        end = known.get(phase) or min((at for at in (seen.get(phase), successor) if at), default=None)
        if end:
            ends[phase] = successor = end
    return ends


def _seen_ends(facts: Facts, expected: Expected, now: datetime) -> dict[str, datetime]:
    wanted = expected.instances
    joined = sorted(node.ready_since for node in facts.nodes if node.ready_since)
    with_gpus = [node for node in facts.nodes if node.gpus >= expected.gpus_per_instance]
    started = sorted(pod.started for pod in facts.pods if pod.started)
    loaded = sorted(at for pod in facts.pods if (at := _loaded_at(pod, now)))
    ready = _ready_since(facts, expected)

    def told(at: datetime) -> datetime:
        return at if expected.since <= at <= now else now

    seen: dict[str, datetime] = {}
    if facts.running_instances >= wanted:
        seen["launch"] = now
    if len(joined) >= wanted:
        seen["join"] = told(joined[wanted - 1])
    if len(with_gpus) >= wanted:
        seen["device_plugin"] = now
    if len(started) >= wanted:
        seen["image"] = told(started[wanted - 1])
    if len(loaded) >= wanted:
        seen["weights"] = told(loaded[wanted - 1])
    if ready:
        seen["engine"] = told(ready)
    return seen


def _ready_since(facts: Facts, expected: Expected) -> datetime | None:
    ready = sorted(pod.ready_since for pod in facts.pods if pod.ready_since)
    return ready[expected.instances - 1] if len(ready) >= expected.instances else None


def _loaded_at(pod: PodSeen, now: datetime) -> datetime | None:
    """When the first of the pod's workers said that its weights are loaded: the others say it within moments, and how
    many there are is the engine's own affair."""
    said = [line for line in pod.log if _WEIGHTS_LOADED.search(line.text)]
    return (said[0].at or now) if said else None


def _late_by(phase: str | None, began: datetime, budget: StartupBudget, now: datetime) -> timedelta:
    if phase is None:
        return _NO_TIME
    # The budget is what is usual; a phase a little over it is no news.
    return max(now - began - budget.late_after(phase), _NO_TIME)


def _sentence(phase: str | None, facts: Facts, expected: Expected) -> str:
    if facts.unknown:
        return f"Not known what is waited for: {' '.join(facts.unknown)}"
    wanted, gpus = expected.instances, expected.instances * expected.gpus_per_instance
    match phase:
        case "launch":
            said = f" (Auto Scaling: {facts.activity})" if facts.activity else ""
            return f"Waiting for EC2 to run the instances: {facts.running_instances} of {wanted}{said}."
        case "join":
            ready = sum(node.ready_since is not None for node in facts.nodes)
            return f"Waiting for the nodes to be Ready: {ready} of {wanted}, {len(facts.nodes)} have joined."
        case "device_plugin":
            return (
                f"Waiting for the device plugin: {sum(node.gpus for node in facts.nodes)} of {gpus} GPUs allocatable."
            )
        case "image":
            return f"Waiting for the engine's container to run: {_waiting(facts.pods)}."
        case "weights" | "engine":
            what = "weights" if phase == "weights" else "engine"
            return f"Waiting for the {what}{_restarted(facts.pods)}: {_last_line(facts.pods)}"
        case "acceptance":
            return "The model is ready: waiting for the acceptance checks."
        case _ if _ready_since(facts, expected):
            return "The start is over."
        case _:
            return f"Waiting for the model to serve again{_restarted(facts.pods)}: {_last_line(facts.pods)}"


def _waiting(pods: Iterable[PodSeen]) -> str:
    return next((f"{pod.name} {pod.waiting}" for pod in pods if pod.waiting), "there is no pod yet")


def _restarted(pods: Iterable[PodSeen]) -> str:
    restarts = sum(pod.restarts for pod in pods)
    times = "once" if restarts == 1 else f"{restarts} times"
    return f" (the container has restarted {times})" if restarts else ""


def _last_line(pods: Iterable[PodSeen]) -> str:
    lines: list[LogLine] = [pod.log[-1] for pod in pods if pod.log]
    if lines:
        return lines[0].text
    return next((f"{pod.name} {pod.waiting}." for pod in pods if pod.waiting), "its log is still empty.")
