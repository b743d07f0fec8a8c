"""EKS managed node groups: what EKS refuses to create, and the Auto Scaling group behind each one.

Rules for Capacity Blocks: EKS user guide, "Use Capacity Blocks for ML with managed node groups".
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from moto.ec2.models import EC2Backend, ec2_backends
from moto.eks.models import Cluster, EKSBackend, Nodegroup, eks_backends

from rehearsal.aws.autoscaling import AutoScaling, ScalingGroup
from rehearsal.aws.capacity_blocks import CapacityBlocks, Reservation
from rehearsal.aws.fleet import LaunchSpec
from rehearsal.aws.operations import Request, refuse
from rehearsal.delays import Refusal
from rehearsal.nodes import Taint, TaintEffect
from rehearsal.world import World

Answer = Mapping[str, object]

SCALE_IN_LEAD = timedelta(minutes=40)
"""EKS scales the groups of a block to zero this long before the block's end."""

_DEFAULT_ROOT_GIB = 20
_TAINT_EFFECTS: Mapping[str, TaintEffect] = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}


@dataclass(frozen=True, kw_only=True)
class _Template:
    """The version of a launch template that a node group uses."""

    template_id: str
    version: str
    data: Mapping[str, object]

    @property
    def instance_type(self) -> str:
        return str(self.data.get("InstanceType") or "")

    @property
    def market_type(self) -> str:
        return str(_part(self.data, "InstanceMarketOptions").get("MarketType") or "")

    @property
    def reservation_id(self) -> str:
        target = _part(_part(self.data, "CapacityReservationSpecification"), "CapacityReservationTarget")
        return str(target.get("CapacityReservationId") or "")

    @property
    def root_volume_gib(self) -> int:
        mappings = cast("list[Mapping[str, object]]", self.data.get("BlockDeviceMappings") or [])
        sizes = [_part(mapping, "Ebs").get("VolumeSize") for mapping in mappings]
        return int(str(next((size for size in sizes if size), _DEFAULT_ROOT_GIB)))


class NodeGroups:
    """The managed node groups of a world. moto keeps them; their instances come from Auto Scaling."""

    def __init__(
        self, world: World, blocks: CapacityBlocks, scaling: AutoScaling, refusals: Mapping[str, Refusal]
    ) -> None:
        self._world = world
        self._blocks = blocks
        self._scaling = scaling
        self._refusals = refusals

    def create(self, request: Request) -> Nodegroup:
        """A new node group; its instances, if it has any, are there at once (the call is part of an operation)."""
        template = self._template(request.account_id, request.region, request.record("launchTemplate"))
        if request.text("capacityType") == "CAPACITY_BLOCK":
            self._check_block_group(request, template)
        if template and template.instance_type and request.texts("instanceTypes"):
            raise refuse(self._refusals["group_with_instance_types"])
        eks: EKSBackend = eks_backends[request.account_id][request.region]
        group = eks.create_nodegroup(
            cluster_name=request.text("clusterName"),
            node_role=request.text("nodeRole"),
            nodegroup_name=request.text("nodegroupName"),
            subnets=request.texts("subnets"),
            scaling_config=cast("dict[str, int]", request.record("scalingConfig")) or None,
            disk_size=request.number("diskSize"),
            instance_types=request.texts("instanceTypes") or ([] if template and template.instance_type else None),
            ami_type=request.text("amiType") or None,
            labels=cast("dict[str, str]", request.record("labels")),
            taints=cast("list[dict[str, str]]", request.records("taints")),
            tags=cast("dict[str, str]", request.record("tags")),
            launch_template=cast("dict[str, str]", request.record("launchTemplate")) or None,
            capacity_type=request.text("capacityType") or None,
            version=request.text("version") or eks.describe_cluster(request.text("clusterName")).version,
            release_version=request.text("releaseVersion") or None,
        )
        # moto drops the first two on the way from the request, and fills in what it was not given from another time.
        group.node_repair_config = request.record("nodeRepairConfig") or None
        group.update_config = request.record("updateConfig") or {"maxUnavailable": 1}
        group.health = {"issues": []}
        group.ami_type = request.text("amiType") or "AL2023_x86_64_STANDARD"
        group.release_version = request.text("releaseVersion") or f"{group.version}.0-20261001"
        # Shown only if it was given: pulumi-aws replaces a group whose remote access changes.
        group.remote_access = cast("dict[str, str]", request.parameters.get("remoteAccess"))
        if template and template.instance_type:
            group.instance_types = []
        self._give_instances(group, request.account_id)
        return group

    def scale(self, group: Nodegroup) -> None:
        """Bring the Auto Scaling group to the node group's scaling configuration."""
        sizes = group.scaling_config
        self._scaling.resize(
            self._behind(group), low=sizes["minSize"], high=sizes["maxSize"], desired=sizes["desiredSize"]
        )

    def delete(self, request: Request) -> Nodegroup:
        """Take the node group and all its instances away."""
        eks: EKSBackend = eks_backends[request.account_id][request.region]
        group = eks.delete_nodegroup(request.text("clusterName"), request.text("nodegroupName"))
        self._scaling.delete(self._behind(group))
        ec2: EC2Backend = ec2_backends[request.account_id][request.region]
        if (own := _own_template_name(group)) in ec2.launch_template_name_to_ids:
            ec2.delete_launch_template(own, None)
        return group

    def _behind(self, group: Nodegroup) -> ScalingGroup:
        return self._scaling.group(_scaling_group_name(group))

    def _give_instances(self, group: Nodegroup, account_id: str) -> None:
        name = f"eks-{group.nodegroup_name}-{uuid.uuid4()}"
        group.resources = {"autoScalingGroups": [{"name": name}]}
        if not group.launch_template:
            self._make_own_template(group, account_id)
        sizes = group.scaling_config
        scaling_group = self._scaling.create(
            name,
            self._launch_spec(group, name, account_id),
            _health(group),
            low=sizes["minSize"],
            high=sizes["maxSize"],
        )
        block = self._block_of(group, account_id)
        if block is None:
            self._scaling.fill_at_once(scaling_group, sizes["desiredSize"])
        else:
            self._scaling.set_desired(scaling_group, sizes["desiredSize"])
            self._world.at(block.end - SCALE_IN_LEAD, "eks-scale-in", lambda: self._scale_in(group, scaling_group))

    def _scale_in(self, group: Nodegroup, scaling_group: ScalingGroup) -> None:
        if not scaling_group.deleted:
            self._world.note("eks-scale-in", group=group.nodegroup_name)
            self._scaling.resize(scaling_group, low=0, high=scaling_group.face.max_size or 1, desired=0)
            group.scaling_config.update(minSize=0, desiredSize=0)

    def _launch_spec(self, group: Nodegroup, scaling_group: str, account_id: str) -> Callable[[], LaunchSpec]:
        """What the group launches at the time of asking: its template, labels and taints can change."""

        def spec() -> LaunchSpec:
            ec2: EC2Backend = ec2_backends[account_id][group.region]
            cluster: Cluster = eks_backends[account_id][group.region].describe_cluster(group.cluster_name)
            subnet = ec2.get_subnet(group.subnets[0])
            template = self._template(account_id, group.region, _template_of(group))
            assert template is not None, "every node group has a template, its own or one that EKS made"
            return LaunchSpec(
                cluster=group.cluster_name,
                node_group=group.nodegroup_name,
                auto_scaling_group=scaling_group,
                region=group.region,
                instance_type=template.instance_type or group.instance_types[0],
                zone=str(subnet.availability_zone),
                zone_id=str(subnet.availability_zone_id),
                subnet_id=subnet.id,
                security_group_ids=(cluster.resources_vpc_config["clusterSecurityGroupId"],),
                template={"LaunchTemplateId": template.template_id, "Version": template.version},
                root_volume_gib=template.root_volume_gib,
                labels=dict(group.labels),
                taints=tuple(
                    Taint(key=taint["key"], value=taint.get("value", ""), effect=_TAINT_EFFECTS[taint["effect"]])
                    for taint in group.taints
                ),
                reservation_id=template.reservation_id or None,
            )

        return spec

    def _make_own_template(self, group: Nodegroup, account_id: str) -> None:
        ebs = {"VolumeSize": int(group.disk_size), "VolumeType": "gp3"}
        data = {
            "InstanceType": group.instance_types[0],
            "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": ebs}],
        }
        ec2: EC2Backend = ec2_backends[account_id][group.region]
        ec2.create_launch_template(_own_template_name(group), "", data, {})

    def _check_block_group(self, request: Request, template: _Template | None) -> None:
        if template is None:
            raise refuse(self._refusals["group_without_template"])
        if template.market_type != "capacity-block":
            raise refuse(self._refusals["group_without_market_type"])
        if not template.reservation_id:
            raise refuse(self._refusals["group_without_reservation"])
        if not template.instance_type:
            raise refuse(self._refusals["group_without_instance_type"])
        block = self._blocks.reservation(template.reservation_id)
        if block is None:
            raise refuse(self._refusals["reservation_unknown"], reservation_id=template.reservation_id)
        if block.state == "payment-pending":
            raise refuse(
                self._refusals["group_for_payment_pending"], reservation_id=block.reservation_id, state=block.state
            )
        ec2: EC2Backend = ec2_backends[request.account_id][request.region]
        zones = {ec2.get_subnet(subnet).availability_zone for subnet in request.texts("subnets")}
        if zones != {block.zone}:
            raise refuse(self._refusals["group_in_other_zone"], zone=block.zone, reservation_id=block.reservation_id)

    def _block_of(self, group: Nodegroup, account_id: str) -> Reservation | None:
        template = self._template(account_id, group.region, _template_of(group))
        return self._blocks.reservation(template.reservation_id) if template else None

    def _template(self, account_id: str, region: str, named: Mapping[str, object]) -> _Template | None:
        if not named:
            return None
        ec2: EC2Backend = ec2_backends[account_id][region]
        found = (
            ec2.get_launch_template(str(named["id"]))
            if named.get("id")
            else ec2.get_launch_template_by_name(str(named["name"]))
        )
        version = found.get_version(named.get("version") or "$Default")
        return _Template(template_id=found.id, version=str(version.number), data=version.data)


def _template_of(group: Nodegroup) -> Mapping[str, object]:
    return cast("Mapping[str, object]", group.launch_template or {"name": _own_template_name(group)})


def _own_template_name(group: Nodegroup) -> str:
    """The template that EKS makes for a group without one; EKS's DescribeNodegroup does not show it."""
    return _scaling_group_name(group)


def _scaling_group_name(group: Nodegroup) -> str:
    return cast("list[dict[str, str]]", group.resources["autoScalingGroups"])[0]["name"]


def _health(group: Nodegroup) -> Callable[[str | None], None]:
    """A failed launch degrades a node group until one succeeds (aws/containers-roadmap issue 2326)."""

    def hear(failure: str | None) -> None:
        group.status = "ACTIVE" if failure is None else "DEGRADED"
        issue = {
            "code": "AsgInstanceLaunchFailures",
            "message": failure,
            "resourceIds": [_scaling_group_name(group)],
        }
        group.health = {"issues": [] if failure is None else [issue]}

    return hear


def _part(data: Mapping[str, object], name: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", data.get(name) or {})
