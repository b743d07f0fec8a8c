"""The network of one session: a VPC, one private subnet in the block's zone, one NAT gateway, an S3 endpoint.

EKS asks for subnets in two zones, so a second private subnet stands in another one; no node is ever placed there.
One NAT gateway is enough: if the block's zone fails, the block has failed. Staged weights do not pass through it.

A subnet keeps its zone for the whole life of the stack. AWS adds zones, and does not list an impaired zone: a subnet
that followed the list would be replaced in the middle of an incident, by a subnet with the same addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pulumi
import pulumi_aws as aws

from components.settings import SettingsError
from components.stack_file import Problem

VPC_CIDR = "10.0.0.0/16"
PUBLIC_CIDR = "10.0.0.0/24"
GPU_CIDR = "10.0.16.0/20"
SECOND_CIDR = "10.0.32.0/20"


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """Zones by id (`usw2-az2`): zone names differ between accounts, and AWS names a block's zone by its id.

    `second_zone_id` None: AWS did not list two zones, as `zone_problem` says. Only an existing stack can be updated.
    """

    region: str
    gpu_zone_id: str
    second_zone_id: str | None
    zone_problem: str


class Network(pulumi.ComponentResource):
    """See the module. `control_plane_subnet_ids` are the two private subnets.

    A node whose subnet has no way out yet never joins, so nodes are made after `ways_out`.
    """

    vpc_id: pulumi.Output[str]
    gpu_subnet_id: pulumi.Output[str]
    control_plane_subnet_ids: list[pulumi.Output[str]]
    ways_out: list[pulumi.Resource]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:network:Network", name, None, opts)
        self._name = name
        needs_zones: pulumi.ResourceHookBinding | None = None
        if args.second_zone_id is None:
            in_previews_too = pulumi.ResourceHookOptions(on_dry_run=True)
            refusal = pulumi.ResourceHook(f"{name}-zones", require_zones(args.zone_problem), in_previews_too)
            needs_zones = pulumi.ResourceHookBinding(before_create=[refusal])
        vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=VPC_CIDR,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags={"Name": name},
            # The first resource of a new stack: nothing is created if the second subnet cannot be.
            opts=self._child(hooks=needs_zones),
        )
        public = self._subnet("public", vpc.id, PUBLIC_CIDR, args.gpu_zone_id)
        gpu = self._subnet("gpu", vpc.id, GPU_CIDR, args.gpu_zone_id)
        second = self._subnet("second", vpc.id, SECOND_CIDR, args.second_zone_id, needs_zones)

        gateway = aws.ec2.InternetGateway(f"{name}-internet", vpc_id=vpc.id, opts=self._child())
        public_routes, _ = self._route_table("public", vpc.id, [public])
        to_internet = aws.ec2.Route(
            f"{name}-public-default",
            route_table_id=public_routes.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=self._child(),
        )
        address = aws.ec2.Eip(f"{name}-nat", domain="vpc", opts=self._child(depends_on=[gateway]))
        nat = aws.ec2.NatGateway(
            f"{name}-nat",
            allocation_id=address.id,
            subnet_id=public.id,
            opts=self._child(depends_on=[to_internet]),
        )
        private_routes, associations = self._route_table("private", vpc.id, [gpu, second])
        to_nat = aws.ec2.Route(
            f"{name}-private-default",
            route_table_id=private_routes.id,
            destination_cidr_block="0.0.0.0/0",
            nat_gateway_id=nat.id,
            opts=self._child(),
        )
        s3 = aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[private_routes.id],
            opts=self._child(),
        )
        self.vpc_id = vpc.id
        self.ways_out = [to_nat, s3, *associations]
        check = partial(same_zone, wanted=args.gpu_zone_id)
        self.gpu_subnet_id = pulumi.Output.all(gpu.id, gpu.availability_zone_id).apply(check)
        self.control_plane_subnet_ids = [gpu.id, second.id]
        self.register_outputs({"vpc_id": self.vpc_id, "gpu_subnet_id": self.gpu_subnet_id})

    def _child(
        self,
        depends_on: list[pulumi.Resource] | None = None,
        hooks: pulumi.ResourceHookBinding | None = None,
        ignore_changes: list[str] | None = None,
    ) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=depends_on, hooks=hooks, ignore_changes=ignore_changes)

    def _subnet(
        self,
        role: str,
        vpc_id: pulumi.Output[str],
        cidr: str,
        zone_id: str | None,
        hooks: pulumi.ResourceHookBinding | None = None,
    ) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            f"{self._name}-{role}",
            vpc_id=vpc_id,
            cidr_block=cidr,
            availability_zone_id=zone_id,
            map_public_ip_on_launch=False,
            tags={"Name": f"{self._name}-{role}"},
            # The path is the provider's, in camel case: the Python name is ignored in silence.
            opts=self._child(hooks=hooks, ignore_changes=["availabilityZoneId"]),
        )

    def _route_table(
        self, role: str, vpc_id: pulumi.Output[str], subnets: list[aws.ec2.Subnet]
    ) -> tuple[aws.ec2.RouteTable, list[aws.ec2.RouteTableAssociation]]:
        table = aws.ec2.RouteTable(f"{self._name}-{role}", vpc_id=vpc_id, opts=self._child())
        associations = [
            aws.ec2.RouteTableAssociation(
                f"{self._name}-{role}-{index}",
                route_table_id=table.id,
                subnet_id=subnet.id,
                opts=self._child(),
            )
            for index, subnet in enumerate(subnets)
        ]
        return table, associations


def require_zones(zone_problem: str) -> Callable[[pulumi.ResourceHookArgs], None]:
    """A hook for resources that a new network needs: it refuses their creation, in a preview too."""

    def refuse(_: pulumi.ResourceHookArgs) -> None:
        raise ValueError(f"The network cannot be created: {zone_problem}")

    return refuse


def same_zone(subnet: Sequence[str], *, wanted: str) -> str:
    """The id of the GPU subnet (id, zone id). Raises SettingsError if the stack's network is in another zone."""
    subnet_id, zone_id = subnet
    if zone_id != wanted:
        what = f"the network of this stack is in {zone_id}, and the GPUs are in {wanted}"
        remedy = "Use a new stack for them: pulumi stack init NAME"
        raise SettingsError([Problem(key="availabilityZoneId", what=what, remedy=remedy)])
    return subnet_id
