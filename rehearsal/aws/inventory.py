"""What exists in the simulated cloud, asked from moto's own state and not from any log of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models import EC2Backend, ec2_backends
from moto.eks.models import EKSBackend, eks_backends
from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends
from moto.logs.models import logs_backends

BillableKind = Literal["eks_cluster", "nat_gateway", "public_ipv4", "ec2_instance", "ebs_gp3_gib"]


@dataclass(frozen=True, kw_only=True)
class Billable:
    """A thing that costs money while it exists. `detail`: the instance type; `quantity`: 1, or GiB of a volume."""

    kind: BillableKind
    resource_id: str
    region: str
    detail: str
    quantity: Decimal


@dataclass(frozen=True, kw_only=True)
class Existing:
    """A thing that exists: it costs money, or is in the way of other things."""

    kind: str
    resource_id: str
    region: str


def billables(account_id: str) -> Iterator[Billable]:
    """Everything that costs money by the hour, in all regions. A Capacity Block has paid for its instances."""
    for region, eks in _eks_regions(account_id):
        for name in eks.clusters:
            yield _billable("eks_cluster", name, region)
    for region, ec2 in _ec2_regions(account_id):
        for gateway in ec2.nat_gateways.values():
            if gateway.state != "deleted":
                yield _billable("nat_gateway", gateway.id, region)
        for address in ec2.addresses:
            yield _billable("public_ipv4", str(address.allocation_id), region)
        for instance in ec2.all_instances():
            if instance.state != "terminated" and not vars(instance).get("capacity_reservation_id"):
                yield _billable("ec2_instance", instance.id, region, detail=instance.instance_type)
        for volume in ec2.volumes.values():
            yield _billable("ebs_gp3_gib", volume.id, region, quantity=Decimal(volume.size))


def inventory(account_id: str) -> list[Existing]:
    """Everything that exists and bills or keeps other things from being deleted; without each region's default VPC."""
    return [
        *(Existing(kind=item.kind, resource_id=item.resource_id, region=item.region) for item in billables(account_id)),
        *_eks_parts(account_id),
        *_ec2_parts(account_id),
        *_other_parts(account_id),
    ]


def _eks_parts(account_id: str) -> Iterator[Existing]:
    for region, eks in _eks_regions(account_id):
        for cluster in eks.clusters.values():
            for name in cluster.nodegroups:
                yield _existing("eks_node_group", f"{cluster.name}/{name}", region)
    for region, scaling in _regions(autoscaling_backends[account_id]):
        for name in scaling.autoscaling_groups:  # type: ignore[attr-defined]
            yield _existing("auto_scaling_group", name, region)


def _ec2_parts(account_id: str) -> Iterator[Existing]:
    for region, ec2 in _ec2_regions(account_id):
        for instance in ec2.all_instances():
            if instance.state != "terminated" and vars(instance).get("capacity_reservation_id"):
                yield _existing("ec2_instance", instance.id, region)
        for interface in ec2.enis.values():
            yield _existing("network_interface", interface.id, region)
        for gateway in ec2.internet_gateways.values():
            yield _existing("internet_gateway", gateway.id, region)
        for endpoint in ec2.vpc_end_points.values():
            if endpoint.state != "deleted":
                yield _existing("vpc_endpoint", endpoint.id, region)
        for template_id in ec2.launch_templates:
            yield _existing("launch_template", template_id, region)
        yield from _vpcs(region, ec2)


def _vpcs(region: str, ec2: EC2Backend) -> Iterator[Existing]:
    own = {vpc.id for vpc in ec2.vpcs.values() if not vpc.is_default}
    for vpc_id in own:
        yield _existing("vpc", vpc_id, region)
        for group in ec2.groups[vpc_id].values():
            if group.name != "default":
                yield _existing("security_group", group.id, region)
    for subnets in ec2.subnets.values():
        for subnet in subnets.values():
            if subnet.vpc_id in own:
                yield _existing("subnet", subnet.id, region)


def _other_parts(account_id: str) -> Iterator[Existing]:
    for partition, iam in _regions(iam_backends[account_id]):
        for role in iam.roles.values():  # type: ignore[attr-defined]
            yield _existing("iam_role", role.name, partition)
        for arn in iam.open_id_providers:  # type: ignore[attr-defined]
            yield _existing("iam_oidc_provider", arn, partition)
    for backends in (elb_backends, elbv2_backends):
        for region, balancing in _regions(backends[account_id]):
            for name in balancing.load_balancers:  # type: ignore[attr-defined]
                yield _existing("load_balancer", name, region)
    for region, logs in _regions(logs_backends[account_id]):
        for name in logs.groups:  # type: ignore[attr-defined]
            yield _existing("log_group", name, region)


def _ec2_regions(account_id: str) -> Iterator[tuple[str, EC2Backend]]:
    yield from _regions(ec2_backends[account_id])  # type: ignore[misc]


def _eks_regions(account_id: str) -> Iterator[tuple[str, EKSBackend]]:
    yield from _regions(eks_backends[account_id])  # type: ignore[misc]


def _regions(backends: object) -> Iterator[tuple[str, object]]:
    """The regions that anyone has used: moto makes a backend only when it is asked for."""
    assert isinstance(backends, dict)
    yield from list(backends.items())


def _billable(
    kind: BillableKind, resource_id: str, region: str, detail: str = "", quantity: Decimal = Decimal(1)
) -> Billable:
    return Billable(kind=kind, resource_id=resource_id, region=region, detail=detail, quantity=quantity)


def _existing(kind: str, resource_id: str, region: str) -> Existing:
    return Existing(kind=kind, resource_id=resource_id, region=region)
