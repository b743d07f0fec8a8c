"""What EC2 refuses to delete while something depends on it, and what goes away with a NAT gateway.

moto deletes these things at once, whatever still uses them; a rehearsal of a teardown would then prove nothing.
Rules: EC2 API reference, DependencyViolation; VPC user guide, "Delete your VPC".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.elastic_network_interfaces import NetworkInterface

from rehearsal.aws.operations import AwsError, Request, refuse
from rehearsal.delays import Refusal


class NetworkGuards:
    """Each public method runs before moto's operation of that name and may refuse."""

    def __init__(self, refusals: Mapping[str, Refusal]) -> None:
        self._refusals = refusals

    def delete_subnet(self, request: Request) -> None:
        subnet_id = request.text("SubnetId")
        if any(interface.subnet.id == subnet_id for interface in _interfaces(request)):
            raise self._dependency("subnet", subnet_id)

    def delete_vpc(self, request: Request) -> None:
        ec2, vpc_id = _ec2(request), request.text("VpcId")
        groups = (group for group in ec2.groups[vpc_id].values() if group.name != "default")
        attached = (gateway for gateway in ec2.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id)
        endpoints = (
            endpoint
            for endpoint in ec2.vpc_end_points.values()
            if endpoint.vpc_id == vpc_id and endpoint.state != "deleted"
        )
        if any(groups) or any(attached) or any(endpoints) or _in_vpc(request, vpc_id):
            raise self._dependency("vpc", vpc_id)

    def delete_security_group(self, request: Request) -> None:
        ec2, group_id = _ec2(request), request.text("GroupId")
        used = any(group.id == group_id for interface in _interfaces(request) for group in interface.group_set)
        others = (group for groups in ec2.groups.values() for group in groups.values() if group.id != group_id)
        rules = (rule for group in others for rule in [*group.ingress_rules, *group.egress_rules])
        referenced = any(rule.source_group.get("GroupId") == group_id for rule in rules)
        if used or referenced:
            raise self._dependency("security group", group_id)

    def detach_internet_gateway(self, request: Request) -> None:
        vpc_id = request.text("VpcId")
        if any(interface.public_ip for interface in _in_vpc(request, vpc_id)):
            raise self._dependency("network", vpc_id)

    def delete_nat_gateway(self, request: Request) -> None:
        ec2, gateway_id = _ec2(request), request.text("NatGatewayId")
        gateway = ec2.nat_gateways.get(gateway_id)
        if gateway is None:
            raise refuse(self._refusals["nat_gateway_unknown"], resource_id=gateway_id)
        if gateway.state == "deleted":
            return
        for address in [address for address in ec2.addresses if address.eni is gateway._eni]:
            ec2.disassociate_address(association_id=address.association_id)
        ec2.enis.pop(gateway._eni.id, None)

    def release_address(self, request: Request) -> None:
        allocation_id = request.text("AllocationId")
        for address in _ec2(request).addresses:
            if address.allocation_id == allocation_id and address.association_id:
                raise refuse(self._refusals["address_in_use"], address=address.public_ip)

    def _dependency(self, kind: str, resource_id: str) -> AwsError:
        return refuse(self._refusals["dependency"], kind=kind, resource_id=resource_id)


def _ec2(request: Request) -> EC2Backend:
    return ec2_backends[request.account_id][request.region]


def _interfaces(request: Request) -> Iterator[NetworkInterface]:
    return iter(_ec2(request).enis.values())


def _in_vpc(request: Request, vpc_id: str) -> list[NetworkInterface]:
    return [interface for interface in _interfaces(request) if interface.subnet.vpc_id == vpc_id]
