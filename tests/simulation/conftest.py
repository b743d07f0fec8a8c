"""A world with a simulated AWS in it, asked with boto3 over HTTP, and a small stack to start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.config import Config

from rehearsal.aws.capacity_blocks import HELD_RESERVATION_ID
from rehearsal.aws.server import SimulatedAws, start_aws
from rehearsal.delays import Constants, load_constants
from rehearsal.nodes import NodeSpec
from rehearsal.world import DEFAULT_START, World

BLOCK_START = datetime(2027, 1, 5, 11, 30, tzinfo=UTC)
BLOCK_END = datetime(2027, 1, 6, 11, 30, tzinfo=UTC)

Client = Callable[..., Any]


@dataclass
class Listener:
    """Remembers which nodes joined and which are gone, and when."""

    world: World
    joins: list[tuple[datetime, NodeSpec]] = field(default_factory=list)
    ends: list[tuple[datetime, str]] = field(default_factory=list)

    def joined(self, node: NodeSpec) -> None:
        self.joins.append((self.world.now, node))

    def gone(self, name: str) -> None:
        self.ends.append((self.world.now, name))


@dataclass
class Cloud:
    """One world with its AWS, and clients that speak as Pulumi does. The held block runs from `start` to `end`."""

    start = BLOCK_START
    end = BLOCK_END

    world: World
    aws: SimulatedAws
    listener: Listener
    client: Client

    def network(self) -> Network:
        return Network(self)

    def serve_from_the_block(self, **changes: Any) -> str:
        """A cluster whose GPU group is asked for one node at the block's start; returns the Auto Scaling group."""
        network = self.network()
        network.cluster()
        group = network.gpu_group(network.template(), **changes)
        self.world.advance(self.start)
        self.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
        return group


class Network:
    """A VPC with a public subnet and NAT gateway, and a private subnet in the zone of the held reservation."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.ec2, self.eks = cloud.client("ec2"), cloud.client("eks")
        role = cloud.client("iam").create_role(RoleName="nodes", AssumeRolePolicyDocument="{}")
        self.role_arn = role["Role"]["Arn"]
        self.vpc_id = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.private = self._subnet("10.0.1.0/24", "usw2-az2")
        self.public = self._subnet("10.0.2.0/24", "usw2-az1")
        self.gateway_id = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=self.gateway_id, VpcId=self.vpc_id)
        self.allocation_id = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        nat = self.ec2.create_nat_gateway(SubnetId=self.public, AllocationId=self.allocation_id)
        self.nat_id = nat["NatGateway"]["NatGatewayId"]

    def cluster(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.eks.create_cluster(
            name="c",
            roleArn=self.role_arn,
            version="1.35",
            resourcesVpcConfig={"subnetIds": [self.private, self.public], "publicAccessCidrs": ["192.0.2.0/24"]},
            accessConfig={"authenticationMode": "API"},
            upgradePolicy={"supportType": "STANDARD"},
        )["cluster"]
        return answer

    def template(self, **changes: Any) -> str:
        target = {"CapacityReservationTarget": {"CapacityReservationId": HELD_RESERVATION_ID}}
        data = {
            "InstanceType": "p6-b300.48xlarge",
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": target,
            "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}],
            "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "llm"}]}],
        } | changes
        data = {key: value for key, value in data.items() if value is not None}
        made = self.ec2.create_launch_template(LaunchTemplateName="gpu", LaunchTemplateData=data)
        template_id: str = made["LaunchTemplate"]["LaunchTemplateId"]
        return template_id

    def gpu_group(self, template_id: str, **changes: Any) -> str:
        request = {
            "clusterName": "c",
            "nodegroupName": "gpu",
            "subnets": [self.private],
            "nodeRole": self.role_arn,
            "capacityType": "CAPACITY_BLOCK",
            "launchTemplate": {"id": template_id, "version": "1"},
            "scalingConfig": {"minSize": 0, "maxSize": 1, "desiredSize": 0},
            "nodeRepairConfig": {"enabled": False},
            "labels": {"rent-the-block/role": "gpu"},
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        } | changes
        group = self.eks.create_nodegroup(**request)["nodegroup"]
        name: str = group["resources"]["autoScalingGroups"][0]["name"]
        return name

    def system_group(self) -> None:
        self.eks.create_nodegroup(
            clusterName="c",
            nodegroupName="system",
            subnets=[self.private],
            nodeRole=self.role_arn,
            instanceTypes=["m7i.large"],
            scalingConfig={"minSize": 2, "maxSize": 2, "desiredSize": 2},
        )

    def destroy(self) -> None:
        """Everything but the role, in the order in which Pulumi deletes it."""
        for group in self.eks.list_nodegroups(clusterName="c")["nodegroups"]:
            self.eks.delete_nodegroup(clusterName="c", nodegroupName=group)
        self.eks.delete_cluster(name="c")
        for template in self.ec2.describe_launch_templates()["LaunchTemplates"]:
            self.ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
        self.ec2.delete_nat_gateway(NatGatewayId=self.nat_id)
        self.ec2.release_address(AllocationId=self.allocation_id)
        self.ec2.detach_internet_gateway(InternetGatewayId=self.gateway_id, VpcId=self.vpc_id)
        self.ec2.delete_internet_gateway(InternetGatewayId=self.gateway_id)
        self.ec2.delete_subnet(SubnetId=self.private)
        self.ec2.delete_subnet(SubnetId=self.public)
        self.ec2.delete_vpc(VpcId=self.vpc_id)

    def _subnet(self, cidr: str, zone_id: str) -> str:
        made = self.ec2.create_subnet(VpcId=self.vpc_id, CidrBlock=cidr, AvailabilityZoneId=zone_id)
        subnet_id: str = made["Subnet"]["SubnetId"]
        return subnet_id


@pytest.fixture
def new_cloud() -> Iterator[Callable[..., Cloud]]:
    """Makes a world with its AWS; the one made before it in the same test is stopped first."""
    with ExitStack() as stack:
        yield lambda **options: _cloud(stack, **options)


@pytest.fixture
def cloud(new_cloud: Callable[..., Cloud]) -> Cloud:
    return new_cloud()


def _cloud(stack: ExitStack, *, seed: int = 1, constants: Constants | None = None) -> Cloud:
    stack.close()
    constants = constants or load_constants()
    world = World(DEFAULT_START, seed, constants.delays)
    aws = start_aws(world, constants=constants)
    stack.callback(aws.stop)
    listener = Listener(world)
    aws.fleet.listener = listener

    def client(service: str, *, agent: str = "pulumi", region: str = "us-west-2") -> Any:
        made = boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=aws.url,
            region_name=region,
            aws_access_key_id="rehearsal",
            aws_secret_access_key="rehearsal",
            config=Config(user_agent_extra=agent, retries={"total_max_attempts": 1}),
        )
        stack.callback(made.close)
        return made

    return Cloud(world=world, aws=aws, listener=listener, client=client)
