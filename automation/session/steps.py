"""What the loop does itself, within seconds: nodes up and down, acceptance, sweep, report, giving up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from automation.accounts.outcome import outcome
from automation.cleanup.delete import delete
from automation.cleanup.sweep import sweep
from automation.errors import ClusterFailed
from automation.ledger.entries import (
    Accepted,
    Closed,
    DrainAsked,
    EndAsked,
    FaultSeen,
    NodesRaised,
    StartupMarked,
    Swept,
)
from automation.ledger.fold import fold
from automation.ledger.folder import SessionFolder
from automation.ledger.journal import Journal
from automation.serving import acceptance
from automation.serving.client import connect
from automation.session.decide import Quick
from automation.session.nodes import drain_nodes, raise_nodes
from automation.session.observation import GpuGroup, Observation
from automation.session.observe import Observer
from automation.session.outputs import api_key, read_outputs
from automation.session.plan import Plan
from automation.session.report import write_report
from automation.target import Target


@dataclass(frozen=True, kw_only=True)
class Step:
    """All that a step may need."""

    target: Target
    folder: SessionFolder
    journal: Journal
    observer: Observer
    plan: Plan
    observation: Observation
    why: str

    @property
    def now(self) -> datetime:
        """AWS's time at this moment."""
        return self.target.clock.now()

    @property
    def group(self) -> GpuGroup:
        """The GPU group as it was seen. Raises ClusterFailed when there was none."""
        if isinstance(self.observation.group, GpuGroup):
            return self.observation.group
        raise ClusterFailed(
            happened="There is no GPU node group to change.",
            cost="The block is paid for, whether its nodes run or not.",
            remedy="The session looks again.",
        )


def _raise_nodes(step: Step) -> None:
    now = step.now
    raise_nodes(step.target, step.plan, step.group, now)
    step.journal.write(NodesRaised(at=now, desired=step.plan.block.instance_count))


def _drain(step: Step) -> None:
    drain_nodes(step.target, step.group)
    step.journal.write(DrainAsked(at=step.now))


def _accept(step: Step) -> None:
    outputs = read_outputs(step.folder)
    if outputs is None:
        raise ClusterFailed(
            happened="The stack has given no outputs.",
            cost="The block runs and nobody can use it.",
            remedy="The session tries `up` again.",
        )
    key = api_key(step.folder, step.observer.cluster(), outputs.namespace)
    with connect(step.folder.kubeconfig, outputs.namespace, outputs.service) as base_url:
        checks = acceptance.run(base_url, key, outputs.served_model)
    now = step.now
    step.journal.write(Accepted(at=now, checks=checks))
    if all(check.ok for check in checks):
        step.journal.write(StartupMarked(at=now, phase="acceptance", ended=now))
    for check in checks:
        if not check.ok:
            step.journal.write(FaultSeen(at=now, what=f"Acceptance check {check.check}: {check.detail}"))


def _sweep(step: Step) -> None:
    session = step.folder.session
    found = sweep(step.target, session, session)
    if step.journal.record().sweeps:
        # What a second look finds as well is not just slow to go: nothing deletes it any more.
        found = delete(step.target, found)
    step.journal.write(Swept(at=step.now, residual=found))


def _report(step: Step) -> None:
    # The report first: nobody would ask again for the one that a closed session lacks.
    closed = Closed(at=step.now, outcome=outcome(step.journal.record()))
    write_report(step.folder, fold([*step.journal.entries(), closed]))
    step.journal.write(closed)


def _give_up(step: Step) -> None:
    now = step.now
    step.journal.write(FaultSeen(at=now, what=step.why))
    step.journal.write(EndAsked(at=now, reason=step.why, gave_up=True))


STEPS: Mapping[Quick, Callable[[Step], None]] = {
    "raise-nodes": _raise_nodes,
    "drain": _drain,
    "accept": _accept,
    "sweep": _sweep,
    "report": _report,
    "give-up": _give_up,
}
