"""The Auto Scaling groups behind node groups: they bring instances to the desired number, in virtual time.

A group's face (sizes, tags, instances) is moto's own object; launches, failures with their back-off and scale-ins are
here. Nobody else makes Auto Scaling groups in this project.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from moto.autoscaling.models import FakeAutoScalingGroup, InstanceState, autoscaling_backends

from rehearsal.aws.clock import utcnow
from rehearsal.aws.fleet import Fleet, LaunchSpec, Machine
from rehearsal.aws.operations import Request, refuse
from rehearsal.delays import Refusal
from rehearsal.world import World

Answer = Mapping[str, object]
Activity = dict[str, object]

_LONGEST_BACK_OFF = 16


@dataclass(kw_only=True)
class _Attempt:
    """One launch under way, or waiting to be tried again."""

    activity: Activity
    backing_off: bool = False
    cancelled: bool = False


@dataclass(kw_only=True)
class ScalingGroup:
    """An Auto Scaling group. `spec` says what it would launch now; `health` hears how launches went (None: well)."""

    face: FakeAutoScalingGroup
    spec: Callable[[], LaunchSpec]
    health: Callable[[str | None], None]
    machines: list[Machine] = field(default_factory=list)
    attempts: list[_Attempt] = field(default_factory=list)
    activities: list[Activity] = field(default_factory=list)
    failures: int = 0
    deleted: bool = False

    @property
    def name(self) -> str:
        return str(self.face.name)

    @property
    def desired(self) -> int:
        return self.face.desired_capacity or 0

    def show(self) -> None:
        """Let moto describe the instances that the group has now."""
        self.face.instance_states = [_instance_state(machine, self.face) for machine in self.machines]


class AutoScaling:
    """All Auto Scaling groups of a world."""

    def __init__(self, world: World, fleet: Fleet, refusals: Mapping[str, Refusal], account_id: str) -> None:
        self._world = world
        self._fleet = fleet
        self._refusals = refusals
        self._account_id = account_id
        self._groups: dict[str, ScalingGroup] = {}
        fleet.on_end.append(self._ended)

    def group(self, name: str) -> ScalingGroup:
        """A group by its name; refuses an unknown one."""
        group = self._groups.get(name)
        if group is None or group.deleted:
            raise refuse(self._refusals["group_unknown"], name=name)
        return group

    def activities(self, name: str) -> list[Activity]:
        """What a group did, newest first; a deleted group's activities stay."""
        groups = [group for group in self._groups.values() if name in ("", group.name)]
        found = (activity for group in groups for activity in reversed(group.activities))
        return sorted(found, key=lambda activity: str(activity["StartTime"]), reverse=True)

    def create(
        self, name: str, spec: Callable[[], LaunchSpec], health: Callable[[str | None], None], *, low: int, high: int
    ) -> ScalingGroup:
        """A new group with no instances."""
        launch = spec()
        template = {key: value for key, value in launch.template.items() if key != "LaunchTemplateName"}
        tags = {"eks:cluster-name": launch.cluster, "eks:nodegroup-name": launch.node_group}
        face = autoscaling_backends[self._account_id][launch.region].create_auto_scaling_group(
            name=name,
            availability_zones=[],
            desired_capacity=0,
            max_size=high,
            min_size=low,
            launch_config_name="",
            launch_template=template,
            vpc_zone_identifier=launch.subnet_id,
            default_cooldown=None,
            health_check_period=None,
            health_check_type="EC2",
            load_balancers=[],
            target_group_arns=[],
            placement_group=None,
            termination_policies=[],
            tags=[{"Key": key, "Value": value, "PropagateAtLaunch": "true"} for key, value in tags.items()],
        )
        group = ScalingGroup(face=face, spec=spec, health=health)
        self._groups[name] = group
        return group

    def fill_at_once(self, group: ScalingGroup, desired: int) -> None:
        """Bring a group that was created inside an engine operation to its size without virtual time passing."""
        group.face.desired_capacity = desired
        for _ in range(desired - len(group.machines)):
            activity = self._activity(group, "Launching a new EC2 instance")
            machine = self._launched(group, activity)
            self._fleet.join(machine)

    def set_desired(self, group: ScalingGroup, desired: int) -> None:
        """Ask for another number of instances; refuses one outside the group's limits.

        Asking again for the same number does not wake a group that waits to try a failed launch again.
        """
        low, high = group.face.min_size or 0, group.face.max_size or 0
        if desired < low:
            raise refuse(self._refusals["desired_capacity"], desired=desired, relation="below min", limit=low)
        if desired > high:
            raise refuse(self._refusals["desired_capacity"], desired=desired, relation="above max", limit=high)
        if desired != group.desired:
            group.face.desired_capacity = desired
            group.failures = 0
            self._cancel(group, [attempt for attempt in group.attempts if attempt.backing_off])
        self._reconcile(group)

    def resize(self, group: ScalingGroup, *, low: int, high: int, desired: int) -> None:
        """Change a group's limits and its size."""
        group.face.min_size, group.face.max_size = low, high
        self.set_desired(group, desired)

    def delete(self, group: ScalingGroup) -> None:
        """End all instances of the group now, and the group."""
        group.deleted = True
        self._cancel(group, list(group.attempts))
        for machine in list(group.machines):
            self._fleet.terminate(machine)
        autoscaling_backends[self._account_id][group.face.region].delete_auto_scaling_group(group.name)

    def _reconcile(self, group: ScalingGroup) -> None:
        if group.deleted:
            return
        staying = [machine for machine in group.machines if not machine.leaving]
        missing = group.desired - len(staying) - len(group.attempts)
        for _ in range(missing):
            self._attempt(group)
        if missing < 0:
            self._cancel(group, group.attempts[missing:])
        for machine in staying[group.desired :]:
            self._drain(group, machine)

    def _attempt(self, group: ScalingGroup) -> None:
        attempt = _Attempt(activity=self._activity(group, "Launching a new EC2 instance"))
        group.attempts.append(attempt)
        self._world.after(self._world.draw("ec2_launch"), "ec2-launch", lambda: self._try(group, attempt))

    def _try(self, group: ScalingGroup, attempt: _Attempt) -> None:
        if attempt.cancelled:
            return
        refusal = self._fleet.refusal(group.spec())
        if refusal is not None:
            self._failed(group, attempt, *refusal)
            return
        group.attempts.remove(attempt)
        group.failures = 0
        machine = self._launched(group, attempt.activity)
        self._world.after(self._world.draw("node_join"), "node-join", lambda: self._fleet.join(machine))

    def _launched(self, group: ScalingGroup, activity: Activity) -> Machine:
        machine = self._fleet.launch(group.spec())
        group.machines.append(machine)
        group.show()
        activity["Description"] = f"Launching a new EC2 instance: {machine.instance.id}"
        _finish(activity, "Successful")
        group.health(None)
        return machine

    def _failed(self, group: ScalingGroup, attempt: _Attempt, why: str, sentence: str) -> None:
        _finish(attempt.activity, "Failed", sentence)
        self._world.note("launch-failed", group=group.spec().node_group, why=why)
        group.health(sentence)
        attempt.backing_off = True
        pause = self._world.draw("launch_retry") * min(2**group.failures, _LONGEST_BACK_OFF)
        group.failures += 1
        self._world.after(pause, "launch-retry", lambda: self._again(group, attempt))

    def _again(self, group: ScalingGroup, attempt: _Attempt) -> None:
        if not attempt.cancelled:
            group.attempts.remove(attempt)
            self._reconcile(group)

    def _drain(self, group: ScalingGroup, machine: Machine) -> None:
        machine.leaving = True
        activity = self._activity(group, f"Terminating EC2 instance: {machine.instance.id}")

        def drained() -> None:
            self._fleet.terminate(machine)
            _finish(activity, "Successful")

        group.show()
        self._world.after(self._world.draw("node_drain"), "node-drain", drained)

    def _ended(self, machine: Machine) -> None:
        group = self._groups[machine.spec.auto_scaling_group]
        group.machines.remove(machine)
        group.show()
        self._reconcile(group)

    def _cancel(self, group: ScalingGroup, attempts: Iterable[_Attempt]) -> None:
        for attempt in list(attempts):
            attempt.cancelled = True
            group.attempts.remove(attempt)
            if not attempt.backing_off:
                _finish(attempt.activity, "Cancelled")

    def _activity(self, group: ScalingGroup, description: str) -> Activity:
        activity: Activity = {
            "ActivityId": str(uuid.uuid4()),
            "AutoScalingGroupName": group.name,
            "Description": description,
            "Cause": f"At {utcnow():%Y-%m-%dT%H:%M:%SZ} the desired capacity of the group was {group.desired}.",
            "StartTime": utcnow(),
            "StatusCode": "InProgress",
            "Progress": 0,
        }
        group.activities.append(activity)
        return activity


class AutoScalingOperations:
    """Each public method is an operation of Auto Scaling."""

    def __init__(self, scaling: AutoScaling) -> None:
        self._scaling = scaling

    def set_desired_capacity(self, request: Request) -> Answer:
        group = self._scaling.group(request.text("AutoScalingGroupName"))
        self._scaling.set_desired(group, request.number("DesiredCapacity") or 0)
        return {}

    def update_auto_scaling_group(self, request: Request) -> Answer:
        group = self._scaling.group(request.text("AutoScalingGroupName"))
        low, high, desired = (request.number(name) for name in ("MinSize", "MaxSize", "DesiredCapacity"))
        self._scaling.resize(
            group,
            low=group.face.min_size or 0 if low is None else low,
            high=group.face.max_size or 0 if high is None else high,
            desired=group.desired if desired is None else desired,
        )
        return {}

    def describe_scaling_activities(self, request: Request) -> Answer:
        found = self._scaling.activities(request.text("AutoScalingGroupName"))
        return {"Activities": found[: request.number("MaxRecords") or 100]}


def _finish(activity: Activity, status: str, message: str | None = None) -> None:
    activity.update(StatusCode=status, EndTime=utcnow(), Progress=100)
    if message is not None:
        activity["StatusMessage"] = message


def _instance_state(machine: Machine, face: FakeAutoScalingGroup) -> InstanceState:
    state = "Terminating" if machine.leaving else "InService"
    return InstanceState(machine.instance, lifecycle_state=state, autoscaling_group=face)
