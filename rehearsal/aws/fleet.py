"""Instances of node groups in virtual time: they appear in moto's EC2, join the cluster, and end.

What decides when is Auto Scaling (`autoscaling.py`); what an instance may be is decided here and by its Capacity Block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance

from rehearsal.aws.capacity_blocks import CapacityBlocks, Reservation
from rehearsal.delays import Refusal
from rehearsal.nodes import NodeListener, NodeSpec, Taint
from rehearsal.world import World


@dataclass(frozen=True, kw_only=True)
class LaunchSpec:
    """What a node group launches now. `template` names the launch template and its version as RunInstances does."""

    cluster: str
    node_group: str
    auto_scaling_group: str
    region: str
    instance_type: str
    zone: str
    zone_id: str
    subnet_id: str
    security_group_ids: tuple[str, ...]
    template: Mapping[str, str]
    root_volume_gib: int
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    reservation_id: str | None


@dataclass(kw_only=True)
class Machine:
    """A running instance of a node group, and the node that it is or will be. `leaving`: a scale-in has chosen it."""

    instance: Instance
    node: NodeSpec
    spec: LaunchSpec
    joined: bool = False
    leaving: bool = False


class NoListener:
    """Nobody to tell about nodes."""

    def joined(self, node: NodeSpec) -> None:
        """Nothing happens."""

    def gone(self, name: str) -> None:
        """Nothing happens."""


class Fleet:
    """The machines of all node groups of a world."""

    def __init__(self, world: World, blocks: CapacityBlocks, refusals: Mapping[str, Refusal], account_id: str) -> None:
        self._world = world
        self._blocks = blocks
        self._refusals = refusals
        self._account_id = account_id
        self._machines: dict[str, Machine] = {}
        self.listener: NodeListener = NoListener()
        """Told when a node joins or is gone, at that instant, with the world's lock held."""
        self.on_change: list[Callable[[], None]] = []
        """Told after instances have appeared or ended."""
        self.on_end: list[Callable[[Machine], None]] = []
        """Told which machine has ended."""
        blocks.on_termination.append(self._terminate_block)

    @property
    def machines(self) -> tuple[Machine, ...]:
        """All running machines."""
        return tuple(self._machines.values())

    def machine(self, instance_id: str) -> Machine | None:
        """A running machine by its instance's id."""
        return self._machines.get(instance_id)

    def refusal(self, spec: LaunchSpec) -> tuple[str, str] | None:
        """Why EC2 would not launch this now: the refusal's name and its sentence; None when it would."""
        if spec.reservation_id is None:
            return None
        block = self._blocks.reservation(spec.reservation_id)
        name = _problem(block, spec, ending=block is not None and self._world.now >= block.terminates)
        if name is None:
            return None
        sentence = self._refusals[name].message.format(
            reservation_id=spec.reservation_id,
            state=block.state if block else "unknown",
            instance_type=spec.instance_type,
            zone=spec.zone,
        )
        return name, sentence

    def launch(self, spec: LaunchSpec) -> Machine:
        """Start one instance now."""
        instance = self._run(spec)
        if spec.reservation_id and (block := self._blocks.reservation(spec.reservation_id)):
            block.instance_ids.add(instance.id)
        machine = Machine(instance=instance, node=_node(instance, spec), spec=spec)
        self._machines[instance.id] = machine
        self._world.note("instance", group=spec.node_group, state="running", type=spec.instance_type)
        self._tell()
        return machine

    def join(self, machine: Machine) -> None:
        """Let the machine's node join its cluster now, unless the machine has ended meanwhile."""
        if machine.instance.id in self._machines:
            machine.joined = True
            self._world.note("node", group=machine.spec.node_group, state="joined")
            self.listener.joined(machine.node)

    def terminate(self, machine: Machine) -> None:
        """End the machine now; its node is gone with it. A machine that has ended stays ended."""
        if self._machines.pop(machine.instance.id, None) is None:
            return
        machine.instance.terminate()
        if machine.spec.reservation_id and (block := self._blocks.reservation(machine.spec.reservation_id)):
            block.instance_ids.discard(machine.instance.id)
        self._world.note("instance", group=machine.spec.node_group, state="terminated", type=machine.spec.instance_type)
        if machine.joined:
            self._world.note("node", group=machine.spec.node_group, state="gone")
            self.listener.gone(machine.node.name)
        for end in self.on_end:
            end(machine)
        self._tell()

    def stamp_end(self, instance_id: str, region: str) -> None:
        """Let EC2 say that the instance ended now: it ended inside an engine operation, whose time comes afterwards."""
        instance = ec2_backends[self._account_id][region].get_instance(instance_id)
        instance._reason = f"User initiated ({self._world.now:%Y-%m-%d %H:%M:%S} UTC)"

    def _tell(self) -> None:
        for tell in self.on_change:
            tell()

    def _terminate_block(self, block: Reservation) -> None:
        for machine in self.machines:
            if machine.spec.reservation_id == block.reservation_id:
                delay = self._world.draw("block_termination")
                self._world.after(delay, "block-termination", lambda machine=machine: self.terminate(machine))  # type: ignore[misc]

    def _run(self, spec: LaunchSpec) -> Instance:
        ec2: EC2Backend = ec2_backends[self._account_id][spec.region]
        tags = {
            "eks:cluster-name": spec.cluster,
            "eks:nodegroup-name": spec.node_group,
            f"kubernetes.io/cluster/{spec.cluster}": "owned",
            "aws:autoscaling:groupName": spec.auto_scaling_group,
        }
        interface = {
            "DeviceIndex": 0,
            "SubnetId": spec.subnet_id,
            "DeleteOnTermination": True,
            "Groups": list(spec.security_group_ids),
        }
        volume = {"VolumeSize": spec.root_volume_gib, "VolumeType": "gp3", "DeleteOnTermination": True}
        launched = ec2.run_instances(
            image_id="",
            count=1,
            user_data=None,
            security_group_names=[],
            instance_type=spec.instance_type,
            is_instance_type_default=False,
            region_name=spec.region,
            # moto adds the template's instance tags; EKS does not pass the tags of a node group on to its instances.
            launch_template=dict(spec.template),
            nics=[interface],
            block_device_mappings=[{"DeviceName": "/dev/xvda", "Ebs": volume}],
            tags={"instance": tags},
        )
        instance: Instance = launched.instances[0]
        if spec.reservation_id:
            # moto's serialiser reads these from the instance; EC2 shows them for instances of a block.
            vars(instance).update(capacity_reservation_id=spec.reservation_id, instance_lifecycle="capacity-block")
        return instance


def _problem(block: Reservation | None, spec: LaunchSpec, *, ending: bool) -> str | None:
    if block is None or block.state != "active" or ending:
        return "launch_not_active"
    if block.instance_type != spec.instance_type:
        return "launch_wrong_type"
    if block.zone_id != spec.zone_id:
        return "launch_wrong_zone"
    return "launch_no_capacity" if block.free < 1 else None


def _node(instance: Instance, spec: LaunchSpec) -> NodeSpec:
    facts = INSTANCE_TYPES[spec.instance_type]
    labels = {
        "eks.amazonaws.com/nodegroup": spec.node_group,
        "eks.amazonaws.com/capacityType": "CAPACITY_BLOCK" if spec.reservation_id else "ON_DEMAND",
        "node.kubernetes.io/instance-type": spec.instance_type,
        "topology.kubernetes.io/region": spec.region,
        "topology.kubernetes.io/zone": spec.zone,
        "topology.k8s.aws/zone-id": spec.zone_id,
    }
    return NodeSpec(
        name=str(instance.private_dns_name),
        instance_id=str(instance.id),
        instance_type=spec.instance_type,
        node_group=spec.node_group,
        availability_zone=spec.zone,
        labels=labels | dict(spec.labels),
        taints=spec.taints,
        gpus=sum(int(gpu["Count"]) for gpu in facts.get("GpuInfo", {}).get("Gpus", [])),
        cpu=int(facts["VCpuInfo"]["DefaultVCpus"]),
        memory_mib=_allocatable_mib(facts),
    )


def _allocatable_mib(facts: Mapping[str, Mapping[str, object]]) -> int:
    """Memory that pods may use, as Karpenter estimates it for EKS's images: 7.5 % are the machine's own, the kubelet
    keeps 255 MiB and 11 MiB for each pod it could run, and evicts below 100 MiB. (p6-b300.48xlarge: 3,877,198 MiB.)"""
    memory_mib = int(str(facts["MemoryInfo"]["SizeInMiB"]))
    network = facts["NetworkInfo"]
    interfaces = int(str(network["NetworkCards"][0]["MaximumNetworkInterfaces"]))  # type: ignore[index]
    pods = interfaces * (int(str(network["Ipv4AddressesPerInterface"])) - 1) + 2
    return memory_mib * 925 // 1000 - (255 + 11 * pods) - 100
