"""What EC2 and the cluster show at one instant of a start: the few fields that the watch reads.

Only what can still matter is asked for: each look costs paid seconds and API calls. What cannot be read is a fact too,
with its reason, so that a watch never mistakes "not seen" for "not there".
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from kr8s.asyncio.objects import Event, Node, Pod
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from components.names import APP_LABEL, GPU_ROLE, ROLE_LABEL, VLLM

from ..aws_errors import aws_errors
from ..errors import ClusterFailed, RentblockError
from ..target import Target
from .cluster import Cluster

GPU_RESOURCE = "nvidia.com/gpu"
GPU_NODES = {ROLE_LABEL: GPU_ROLE}
MODEL_PODS = {APP_LABEL: VLLM}
CONTAINER = VLLM
_LOG_LINES = 400


@dataclass(frozen=True, kw_only=True)
class NodeSeen:
    """A node of the GPU group. `ready_since` by the cluster's own timestamp, None while it is not Ready."""

    name: str
    ready_since: datetime | None
    gpus: int


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """A line of the engine's log with the kubelet's timestamp."""

    at: datetime | None
    text: str


@dataclass(frozen=True, kw_only=True)
class PodSeen:
    """A pod that serves, or will serve, the model.

    `started`: its container runs since then. `ready_since`: it is Ready since then. `went_away`: when it, or the pod
    whose place it took, may have stopped serving. `waiting`: why it does not run, in Kubernetes' own words.
    """

    name: str
    started: datetime | None
    ready_since: datetime | None
    went_away: tuple[datetime, ...]
    restarts: int
    waiting: str | None
    log: tuple[LogLine, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One instant. `activity` is the Auto Scaling group's last word; `unknown` says what could not be read, and why."""

    running_instances: int = 0
    activity: str | None = None
    nodes: tuple[NodeSeen, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    unknown: tuple[str, ...] = ()


def read(
    cluster: Cluster, target: Target, *, cluster_name: str, node_group: str, namespace: str, ended: Collection[str]
) -> Facts:
    """Look once. `ended` names the start-up phases that are over; nothing raises: a failure stands in `unknown`."""
    unknown: list[str] = []
    instances, activity = 0, None
    if "launch" not in ended:
        try:
            instances, activity = _instances(target, cluster_name, node_group)
        except RentblockError as error:
            unknown.append(error.happened)
    nodes: tuple[NodeSeen, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    try:
        if "device_plugin" not in ended:
            nodes = tuple(_node(item) for item in cluster.objects(Node, labels=GPU_NODES))
        pods = _pods(cluster, namespace)
    except RentblockError as error:
        unknown.append(error.happened)
    except ValidationError as error:
        unknown.append(f"The cluster answered in another shape: {error.errors()[0]['msg']}.")
    return Facts(running_instances=instances, activity=activity, nodes=nodes, pods=pods, unknown=tuple(unknown))


def _instances(target: Target, cluster_name: str, node_group: str) -> tuple[int, str | None]:
    """How many instances of the group run, and what Auto Scaling said last.

    By way of the group and not of tags: a node group is ACTIVE whether or not it can launch anything, and only the
    scaling activities say why it cannot.
    """
    with aws_errors(f"looking at the instances of node group {node_group}"):
        group = target.client("eks").describe_nodegroup(clusterName=cluster_name, nodegroupName=node_group)["nodegroup"]
        names = [behind["name"] for behind in group.get("resources", {}).get("autoScalingGroups", [])]
        if not names:
            return 0, None
        scaling = target.client("autoscaling")
        groups = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)["AutoScalingGroups"]
        ids = [instance["InstanceId"] for found in groups for instance in found.get("Instances", [])]
        activities = scaling.describe_scaling_activities(AutoScalingGroupName=names[0], MaxRecords=1)["Activities"]
        activity = next((said.get("StatusMessage") or said.get("Description") for said in activities), None)
        if not ids:
            return 0, activity
        reservations = target.client("ec2").describe_instances(InstanceIds=ids)["Reservations"]
    states = [instance["State"]["Name"] for found in reservations for instance in found["Instances"]]
    return states.count("running"), activity


class _Seen(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class _Metadata(_Seen):
    name: str
    created: datetime | None = Field(default=None, alias="creationTimestamp")
    deleted: datetime | None = Field(default=None, alias="deletionTimestamp")


class _Condition(_Seen):
    type: str
    status: str
    message: str | None = None
    since: datetime | None = Field(default=None, alias="lastTransitionTime")


class _NodeStatus(_Seen):
    conditions: tuple[_Condition, ...] = ()
    allocatable: dict[str, str] = {}


class _NodeObject(_Seen):
    metadata: _Metadata
    status: _NodeStatus = _NodeStatus()


class _Waiting(_Seen):
    reason: str | None = None
    message: str | None = None


class _Running(_Seen):
    started: datetime | None = Field(default=None, alias="startedAt")


class _Terminated(_Seen):
    finished: datetime | None = Field(default=None, alias="finishedAt")


class _State(_Seen):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(_Seen):
    name: str
    restarts: int = Field(default=0, alias="restartCount")
    state: _State = _State()
    last: _State = Field(default=_State(), alias="lastState")


class _PodStatus(_Seen):
    phase: str = "Pending"
    taken: datetime | None = Field(default=None, alias="startTime")
    conditions: tuple[_Condition, ...] = ()
    containers: tuple[_ContainerStatus, ...] = Field(default=(), alias="containerStatuses")


class _PodObject(_Seen):
    metadata: _Metadata
    status: _PodStatus = _PodStatus()


class _Involved(_Seen):
    name: str = ""


class _EventObject(_Seen):
    involved: _Involved = Field(alias="involvedObject")
    reason: str | None = None
    message: str | None = None
    last: datetime | None = Field(default=None, alias="lastTimestamp")
    at: datetime | None = Field(default=None, alias="eventTime")


_TIME = TypeAdapter(datetime)


def _node(item: Mapping[str, object]) -> NodeSeen:
    node = _NodeObject.model_validate(item)
    gpus = int(node.status.allocatable.get(GPU_RESOURCE, "0"))
    return NodeSeen(name=node.metadata.name, ready_since=_true_since(node.status.conditions, "Ready"), gpus=gpus)


def _pods(cluster: Cluster, namespace: str) -> tuple[PodSeen, ...]:
    items = cluster.objects(Pod, namespace=namespace, labels=MODEL_PODS)
    objects = [_PodObject.model_validate(item) for item in items]
    # A pod that is on its way out keeps its Ready condition for a while and serves nobody.
    staying = [pod for pod in objects if pod.metadata.deleted is None]
    waits = any(_container(pod).state.running is None for pod in staying)
    said = _last_events(cluster.objects(Event, namespace=namespace)) if waits else {}
    return tuple(_pod(cluster, namespace, pod, said.get(pod.metadata.name)) for pod in staying)


def _pod(cluster: Cluster, namespace: str, pod: _PodObject, event: str | None) -> PodSeen:
    name, container = pod.metadata.name, _container(pod)
    ready_since = _true_since(pod.status.conditions, "Ready")
    running = container.state.running
    log: tuple[LogLine, ...] = ()
    if running and not ready_since:
        # The kubelet of a node that is gone answers nobody, and its pods are told as running for minutes.
        with suppress(ClusterFailed):
            log = tuple(_log_line(line) for line in cluster.log(namespace, name, CONTAINER, lines=_LOG_LINES))
    return PodSeen(
        name=name,
        started=running.started if running else None,
        ready_since=ready_since,
        went_away=tuple(_went_away(pod, container)),
        restarts=container.restarts,
        waiting=None if running else _why_waiting(pod, container, event),
        log=log,
    )


def _container(pod: _PodObject) -> _ContainerStatus:
    return next(
        (status for status in pod.status.containers if status.name == CONTAINER), _ContainerStatus(name=CONTAINER)
    )


def _went_away(pod: _PodObject, container: _ContainerStatus) -> Iterator[datetime]:
    unready = next((c.since for c in pod.status.conditions if c.type == "Ready" and c.status != "True"), None)
    ended = container.last.terminated.finished if container.last.terminated else None
    yield from (at for at in (unready, ended, pod.metadata.created, pod.status.taken) if at)


def _why_waiting(pod: _PodObject, container: _ContainerStatus, event: str | None) -> str:
    unscheduled = next((c for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"), None)
    if unscheduled:
        return f"not scheduled: {unscheduled.message}"
    waiting = container.state.waiting
    reason = ": ".join(part for part in (waiting.reason, waiting.message) if part) if waiting else ""
    return "; ".join(part for part in (reason or pod.status.phase, event) if part)


def _last_events(items: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """The last event of each object, as "Reason: message"."""
    events = [_EventObject.model_validate(item) for item in items]
    dated = sorted(
        ((event.last or event.at, event) for event in events if event.last or event.at), key=lambda pair: str(pair[0])
    )
    return {event.involved.name: f"{event.reason}: {event.message}" for _, event in dated}


def _true_since(conditions: Iterable[_Condition], kind: str) -> datetime | None:
    return next((c.since for c in conditions if c.type == kind and c.status == "True"), None)


def _log_line(line: str) -> LogLine:
    stamp, _, text = line.partition(" ")
    try:
        return LogLine(at=_TIME.validate_python(stamp), text=text)
    except ValidationError:
        return LogLine(at=None, text=line)
