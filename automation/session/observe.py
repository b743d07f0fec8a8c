"""One look at a session: AWS, the cluster, the running child. An error is noted in the piece it hid, never raised."""

from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Self

from automation.aws_errors import aws_errors
from automation.errors import AwsSaysNo, RentblockError
from automation.ledger.folder import SessionFolder
from automation.ledger.journal import Journal
from automation.ledger.record import Record
from automation.market.reservations import ACTIVE, by_id
from automation.serving.cluster import Cluster
from automation.serving.startup import Expected, StartupView, look
from automation.session import billed
from automation.session.observation import GpuGroup, Instance, Observation, Unknown
from automation.session.operations import poll
from automation.session.outputs import read_outputs
from automation.session.plan import Plan
from automation.target import Target
from components.names import GPU_NODE_GROUP

# Only these keep a group from its size; the others are people's own choice.
_NEEDED_PROCESSES = frozenset({"Launch", "Terminate"})


class Observer:
    """Looks at one session; keeps its AWS clients and its connection to the cluster. Use it as a context manager."""

    def __init__(self, target: Target, folder: SessionFolder, journal: Journal) -> None:
        self._target = target
        self._folder = folder
        self._journal = journal
        self._ec2 = target.client("ec2")
        self._eks = target.client("eks")
        self._autoscaling = target.client("autoscaling")
        self._connections = ExitStack()
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connections.close()

    def look(self, plan: Plan, record: Record, now: datetime) -> Observation:
        """Everything that `decide` needs, as it is now."""
        operation = poll(record, self._folder, self._journal, now)
        state, reserved = self._reservation(plan, record, now)
        if not record.operations:
            return Observation(
                reservation_state=state,
                reserved=reserved,
                operation=None,
                group=None,
                instances=(),
                usage=(),
                unseen=frozenset(),
                startup=None,
            )
        found = self._instances(record.session, plan.block.reservation_id)
        known = None if isinstance(found, Unknown) else found
        usage, unseen = billed.look(self._ec2, self._eks, record.session, record.operations[0].started, known)
        return Observation(
            reservation_state=state,
            reserved=reserved,
            operation=operation,
            group=self._group(record),
            instances=found,
            usage=usage,
            unseen=unseen,
            startup=self._startup(plan, record),
        )

    def cluster(self) -> Cluster:
        """The session's cluster. Raises ClusterFailed only when it is used."""
        if self._cluster is None:
            self._cluster = self._connections.enter_context(Cluster(self._folder.kubeconfig))
        return self._cluster

    def _reservation(
        self, plan: Plan, record: Record, now: datetime
    ) -> tuple[str | Unknown, tuple[datetime, datetime] | None]:
        if record.request.capacity == "on-demand":
            return ACTIVE if now >= plan.moments.start else "scheduled", None
        try:
            found = by_id(self._target, plan.block.reservation_id)
        except RentblockError as error:
            return Unknown(reason=error.happened), None
        if found is None:
            # An expired one is forgotten some day, and a new one may take seconds to show: the clock decides then.
            return Unknown(reason=f"AWS shows no {plan.block.reservation_id}"), None
        return found.state, (found.start, found.end) if found.start and found.end else None

    def _instances(self, session: str, reservation_id: str) -> tuple[Instance, ...] | Unknown:
        try:
            return billed.instances(self._ec2, session, reservation_id)
        except RentblockError as error:
            return Unknown(reason=error.happened)

    def _group(self, record: Record) -> GpuGroup | Unknown | None:
        if record.destroyed:
            return None
        try:
            with aws_errors("looking at the GPU node group"):
                return self._read_group(record.session)
        except AwsSaysNo as error:
            return None if error.code == "ResourceNotFoundException" else Unknown(reason=error.happened)
        except RentblockError as error:
            return Unknown(reason=error.happened)

    def _read_group(self, session: str) -> GpuGroup | None:
        node_group = self._eks.describe_nodegroup(clusterName=session, nodegroupName=GPU_NODE_GROUP)["nodegroup"]
        names = [behind["name"] for behind in node_group.get("resources", {}).get("autoScalingGroups", [])]
        groups = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)["AutoScalingGroups"]
        if not names or not groups:
            return None
        activities = self._autoscaling.describe_scaling_activities(AutoScalingGroupName=names[0], MaxRecords=1)
        last = next(iter(activities["Activities"]), None)
        return GpuGroup(
            name=names[0],
            desired=groups[0]["DesiredCapacity"],
            last_activity=(last.get("StatusMessage") or last.get("Description") or "") if last else "",
            failed=last is not None and last["StatusCode"] == "Failed",
            suspended=tuple(
                process["ProcessName"]
                for process in groups[0].get("SuspendedProcesses", [])
                if process["ProcessName"] in _NEEDED_PROCESSES
            ),
        )

    def _startup(self, plan: Plan, record: Record) -> StartupView | Unknown | None:
        if record.raised is None or record.drain_asked or record.destroyed:
            return None
        try:
            outputs = read_outputs(self._folder)
        except RentblockError as error:
            return Unknown(reason=error.happened)
        if outputs is None:
            return Unknown(reason="the stack has given no outputs")
        expected = Expected(
            since=plan.moments.start,
            instances=plan.block.instance_count,
            gpus_per_instance=plan.instance.gpus,
            budget=plan.budget,
        )
        return look(
            self.cluster(),
            self._target,
            expected,
            record.startup,
            cluster_name=record.session,
            node_group=outputs.gpu_node_group,
            namespace=outputs.namespace,
        )
