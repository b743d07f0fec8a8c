"""What a session does next: a pure function of its plan, of what is seen, of what it remembers, and of AWS's time.

A crash, Ctrl-C, another terminal and a resumed session are all the same thing here: look again and go on. The function
also says when to look next, so that a day of serving needs no more than a hundred looks or two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from automation.errors import AwsUnreachable, CredentialsMissing
from automation.ledger.record import OperationName, OperationRun, PhaseName, Record
from automation.market.reservations import ACTIVE, NEVER, OVER, PAYING
from automation.serving.startup import StartupView
from automation.session.observation import GpuGroup, Observation, OperationSeen, Unknown
from automation.session.plan import Plan

Quick = Literal["give-up", "raise-nodes", "accept", "drain", "sweep", "report"]
"""What the loop does itself, within seconds."""

ON_DEMAND_UP_TRIES = 4
DESTROY_TRIES = 6
ACCEPT_TRIES = 3
MOST_SWEEPS = 60

_SOON = timedelta(seconds=2)
_STARTUP_LOOK = timedelta(seconds=10)
# The last phase before the endpoint can be used: each second until it is noticed is paid and lost. Half an hour before
# it is due a look may be longer; no budget is so good that it may be long.
_ENGINE_LOOK = timedelta(seconds=5)
_LONGEST_ENGINE_LOOK = timedelta(seconds=30)
_ENGINE_LOOKS_TO_GO = 20
_RUNNING_LOOK = timedelta(seconds=15)
_PAYMENT_LOOK = timedelta(minutes=1)
_LONGEST_LOOK = timedelta(minutes=30)
# An endpoint that went away is told to people, and accepted anew, no later than this.
_LONGEST_SERVING_LOOK = timedelta(minutes=10)
_PAUSE = timedelta(seconds=30)
_LONGEST_SWEEP_PAUSE = timedelta(minutes=5)
# EKS takes the longest, 10 to 15 minutes for a cluster or a node group that drains; and a refusal may be put right.
NOTHING_GOES = timedelta(minutes=40)
NOTHING_ANSWERS = timedelta(minutes=10)
# What ended before the engine began, for want of network or sign-in, has tried nothing: only a longer wait helps.
_NOT_BEGUN = frozenset({AwsUnreachable.exit_code, CredentialsMissing.exit_code})
# So a pause between tries is at most 8 minutes: an expired sign-in may be renewed at any time of a paid block.
_MOST_DOUBLINGS = 4
_ACCEPT_PAUSE = timedelta(seconds=15)
# A scale-in evicts for up to 15 minutes: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
_DRAIN_LIMIT = timedelta(minutes=20)
# Longer than any `up` or `destroy` of this stack; EKS's own slowest step is an hour at most.
_OPERATION_LIMIT = timedelta(minutes=90)
# An engine that was asked to stop finishes the step that it is in, and the same step is the slowest.
_STOPPING_LIMIT = timedelta(minutes=60)


@dataclass(frozen=True, kw_only=True)
class Start:
    """Begin an operation: `up` and `destroy` as detached children, the others at once. `why` is for people."""

    operation: OperationName | Quick
    phase: PhaseName | None
    why: str


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """Ask the running operation, once, to stop after what it is doing."""

    phase: PhaseName | None
    why: str


@dataclass(frozen=True, kw_only=True)
class Kill:
    """End the running operation, which did not stop when it was asked to: a destroy that waits for it for ever would
    leave everything running."""

    phase: PhaseName | None
    why: str


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Nothing to do before `until`, or before the running operation has ended; `why` says what is waited for."""

    until: datetime
    phase: PhaseName | None
    why: str


Decision = Start | Interrupt | Kill | Wait


def decide(plan: Plan, observation: Observation, record: Record, now: datetime) -> Decision:
    """The next step. Nodes are never raised before the block is active, nor after its drain moment."""
    ending = _ending(plan, observation, record, now)
    if observation.running:
        return _while_running(observation.running, plan, record, now, ending)
    if ending:
        return _end(plan, observation, record, now)
    if not record.prepared:
        return _prepare(plan, observation, record, now)
    if record.raised is None and observation.reservation_state != ACTIVE:
        return _await_start(plan, observation, now)
    return _serve(plan, observation, record, now)


def _ending(plan: Plan, observation: Observation, record: Record, now: datetime) -> bool:
    over = observation.reservation_state in NEVER | OVER
    return record.end_asked is not None or now >= plan.moments.drain or over


def _while_running(running: OperationSeen, plan: Plan, record: Record, now: datetime, ending: bool) -> Decision:
    run = next(run for run in record.operations if run.number == running.number)
    phase: PhaseName = "prepare" if running.name == "up" else "destroy"
    too_long = now - run.started > _OPERATION_LIMIT
    if run.interrupted is None and (too_long or (ending and running.name == "up")):
        why = f"`{running.name}` has run for more than {_OPERATION_LIMIT}" if too_long else "the session ends"
        return Interrupt(phase=phase, why=why)
    if run.interrupted is not None and now - run.interrupted > _STOPPING_LIMIT:
        return Kill(phase=phase, why=f"it has not stopped within {_STOPPING_LIMIT}")
    until = now + _RUNNING_LOOK if ending else min(now + _RUNNING_LOOK, plan.moments.drain)
    return Wait(until=until, phase=phase, why=f"`pulumi {running.name}`")


def _prepare(plan: Plan, observation: Observation, record: Record, now: datetime) -> Decision:
    state = observation.reservation_state
    if isinstance(state, Unknown):
        return Wait(until=now + _PAUSE, phase=record.phase, why=f"AWS: {state.reason}")
    if state in PAYING:
        # A node group is refused before the payment has cleared; AWS releases a block that is not paid at start-5.
        return Wait(until=now + _PAYMENT_LOOK, phase="buy", why=f"the payment of the block ({state})")
    if now < plan.moments.prepare_by:
        return Wait(until=_toward(plan.moments.prepare_by, now), phase="wait", why="the time to prepare")
    if now + plan.budget.total >= plan.moments.drain:
        return _give_up("The stack is not up, and what is left of the block is too short to serve.")
    tries = record.tries("up")
    # A block's fee is spent either way, and a quota or a sign-in may be put right at any time: only the clock gives up.
    if record.request.capacity == "on-demand" and len(tries) >= ON_DEMAND_UP_TRIES:
        return _give_up(f"The stack did not come up in {ON_DEMAND_UP_TRIES} tries.")
    if (again := _next_try(tries)) and again > now:
        return Wait(until=again, phase="prepare", why="a pause before the next try")
    return Start(operation="up", phase="prepare", why="everything but the nodes")


def _await_start(plan: Plan, observation: Observation, now: datetime) -> Decision:
    state = observation.reservation_state
    if now < plan.moments.start:
        return Wait(until=_toward(plan.moments.start, now), phase="wait", why="the start of the block")
    if now + plan.budget.total >= plan.moments.drain:
        return _give_up("The block did not become active, and what is left of it is too short to serve.")
    seen = state.reason if isinstance(state, Unknown) else state
    return Wait(until=now + _SOON, phase="start", why=f"the block to become active ({seen})")


def _serve(plan: Plan, observation: Observation, record: Record, now: datetime) -> Decision:
    group = observation.group
    if record.accepted and not isinstance(group, GpuGroup):
        # What serves goes on serving while AWS does not answer: the pods tell.
        return _watch(plan, observation.startup, record, now)
    if isinstance(group, Unknown):
        return Wait(until=now + _SOON, phase="start", why=f"AWS: {group.reason}")
    if group is None:
        if now + plan.budget.total >= plan.moments.drain:
            return _give_up("AWS knows no GPU node group, and what is left of the block is too short to serve.")
        return Wait(until=now + _STARTUP_LOOK, phase="start", why="AWS to know the GPU node group")
    # Asked for twice is no harm; whoever was killed before it wrote that it had asked would never look at the start.
    if record.raised is None or group.desired < plan.block.instance_count or group.suspended:
        if now + plan.budget.total >= plan.moments.drain:
            if record.accepted:
                return _watch(plan, observation.startup, record, now)
            return _give_up("The nodes do not run, and what is left of the block is too short to serve.")
        return Start(operation="raise-nodes", phase="start", why=f"{plan.block.instance_count} node(s)")
    return _watch(plan, observation.startup, record, now)


def _watch(plan: Plan, startup: StartupView | Unknown | None, record: Record, now: datetime) -> Decision:
    if startup is None or isinstance(startup, Unknown):
        why = "the cluster" if startup is None else startup.reason
        return Wait(until=now + _STARTUP_LOOK, phase=record.phase, why=why)
    if not startup.ready:
        # Also after it has served: the account then calls these minutes a restart, and the acceptance runs again.
        look = _engine_look(plan, record, now) if startup.phase == "engine" else _STARTUP_LOOK
        # A cluster that could not be asked proves no restart: the phase stays, and with it what the account says.
        return Wait(until=now + look, phase=record.phase if startup.unknown else "start", why=startup.sentence)
    if record.accepted and record.phase in ("accept", "serve") and not startup.is_newer_than(record.acceptance_at):
        return Wait(until=_until_the_drain(plan, now), phase="serve", why="the drain; the endpoint serves")
    if record.acceptance_failures >= ACCEPT_TRIES and not startup.is_newer_than(record.acceptance_at):
        # The fee is spent either way: the endpoint stays up for people to look at. The outcome tells.
        return Wait(until=_until_the_drain(plan, now), phase="accept", why="the drain; the acceptance failed")
    pause_ends = record.acceptance_at + _ACCEPT_PAUSE if record.acceptance_at and record.acceptance_failures else now
    if pause_ends > now:
        return Wait(until=pause_ends, phase="accept", why="a pause before the acceptance is tried again")
    return Start(operation="accept", phase="accept", why="the endpoint answers")


def _engine_look(plan: Plan, record: Record, now: datetime) -> timedelta:
    """A share of what the engine should still need."""
    began = max((mark.ended for mark in record.startup), default=now)
    left = began + plan.budget.engine - now
    return min(max(left / _ENGINE_LOOKS_TO_GO, _ENGINE_LOOK), _LONGEST_ENGINE_LOOK)


def _end(plan: Plan, observation: Observation, record: Record, now: datetime) -> Decision:
    return (
        _drain(plan, observation, record, now)
        or _destroy(record, now)
        or _sweep(record, now)
        or Start(operation="report", phase=None, why="the session is over")
    )


def _drain(plan: Plan, observation: Observation, record: Record, now: datetime) -> Decision | None:
    if record.destroyed:
        return None
    group = observation.group
    limit = (record.drain_asked or max(record.end_asked or plan.moments.drain, record.opened)) + _DRAIN_LIMIT
    if now >= limit:
        # Deleting the node group takes its nodes by force: nothing waits for ever beside a bill.
        return None
    if isinstance(group, Unknown):
        return Wait(until=now + _STARTUP_LOOK, phase="drain", why=f"AWS: {group.reason}")
    if group and group.desired > 0:
        return Start(operation="drain", phase="drain", why="no nodes any more")
    if isinstance(observation.instances, Unknown):
        return Wait(until=now + _STARTUP_LOOK, phase="drain", why=f"AWS: {observation.instances.reason}")
    if left := observation.running_of_type(plan.block.instance_type):
        return Wait(until=now + _STARTUP_LOOK, phase="drain", why=f"{left} instance(s) to end")
    return None


def _destroy(record: Record, now: datetime) -> Decision | None:
    tries = record.tries("destroy")
    begun = [run for run in tries if run.exit_code not in _NOT_BEGUN]
    if not record.operations or record.destroyed or len(begun) >= DESTROY_TRIES:
        return None
    if (again := _next_try(tries)) and again > now:
        return Wait(until=again, phase="destroy", why="a pause before the next try")
    return Start(operation="destroy", phase="destroy", why="everything that the stack made")


def _sweep(record: Record, now: datetime) -> Decision | None:
    if record.sweeps and _nothing_more_goes(record):
        return None
    left = [each for each in record.residual if not each.kept]
    pause = min(_PAUSE * record.sweeps, _LONGEST_SWEEP_PAUSE)
    if record.swept_at and (again := record.swept_at + pause) > now:
        return Wait(until=again, phase="sweep", why=f"{len(left)} left-over(s) to go")
    why = f"{len(left)} left-over(s) to delete that are still there" if left else "proof that nothing is left"
    return Start(operation="sweep", phase="sweep", why=why)


def _nothing_more_goes(record: Record) -> bool:
    """Deleting takes AWS minutes, and what holds something else up goes first: while things go, more will."""
    left = [each for each in record.residual if not each.kept]
    if not left or record.sweeps >= MOST_SWEEPS or record.swept_at is None or record.residual_since is None:
        return True
    patience = NOTHING_GOES if any(each.resource_id for each in left) else NOTHING_ANSWERS
    return record.swept_at - record.residual_since >= patience


def _give_up(why: str) -> Start:
    return Start(operation="give-up", phase=None, why=why)


def _next_try(tries: Sequence[OperationRun]) -> datetime | None:
    """When to try again: half a minute after the first failure, then twice as long up to a limit. None: at once."""
    ended = tries[-1].ended if tries else None
    return ended + _PAUSE * 2 ** min(len(tries) - 1, _MOST_DOUBLINGS) if ended else None


def _until_the_drain(plan: Plan, now: datetime) -> datetime:
    return min(_toward(plan.moments.drain, now), now + _LONGEST_SERVING_LOOK)


def _toward(moment: datetime, now: datetime) -> datetime:
    """Half of the way to a moment, so that a look is never far from it; the last minute in one go."""
    left = moment - now
    return moment if left <= timedelta(minutes=1) else now + min(left / 2, _LONGEST_LOOK)
