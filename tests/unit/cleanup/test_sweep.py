"""The sweep finds each kind of left-over, nothing of anybody else, and takes silence for no proof."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from automation.cleanup.sweep import sweep
from automation.session.record import Residual
from automation.target import Target

SESSION = "rtb-20261201-a1b2"
OTHER = "rtb-20261201-z9y8"
ROLE = "arn:aws:iam::123456789012:role/r"
ASSUME = json.dumps({"Version": "2012-10-17", "Statement": []})

Make = Callable[["Cloud"], None]


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 12, 2, 12, tzinfo=UTC)

    def wait(self, until: datetime, operation: object = None) -> None:
        raise AssertionError("a sweep does not wait")


class Cloud:
    """A simulated account, and what a session or a controller in its cluster would make there."""

    def __init__(self, target: Target, session: str) -> None:
        self.target, self.session = target, session
        self.ec2 = self.client("ec2")

    def client(self, service: str) -> Any:
        return self.target.client(service)

    def tags(self, kind: str) -> dict[str, Any]:
        """Tagged as the stack tags."""
        return self._tagged(kind, "rent-the-block:session", self.session)

    def cluster_tags(self, kind: str) -> dict[str, Any]:
        """Tagged as a controller in the cluster tags."""
        return self._tagged(kind, f"kubernetes.io/cluster/{self.session}", "owned")

    def vpc(self) -> str:
        return self.ec2.create_vpc(CidrBlock="10.9.0.0/16", **self.tags("vpc"))["Vpc"]["VpcId"]

    def subnet(self, vpc_id: str, zone: str = "a", cidr: str = "10.9.0.0/24") -> str:
        made = self.ec2.create_subnet(VpcId=vpc_id, CidrBlock=cidr, AvailabilityZone=f"us-west-2{zone}")
        return made["Subnet"]["SubnetId"]

    def default_subnets(self) -> list[str]:
        return [subnet["SubnetId"] for subnet in self.ec2.describe_subnets()["Subnets"]][:2]

    @staticmethod
    def _tagged(kind: str, key: str, value: str) -> dict[str, Any]:
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value}]}]}


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    # moto would first load hundreds of machine images that nothing here uses.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield Target(
            mode="aws",
            account_id="123456789012",
            region="us-west-2",
            boto_session=boto3.Session(region_name="us-west-2"),
            endpoint_url=None,
            clock=StillClock(),
            home=tmp_path,
            engine_environment={},
        )


def look(target: Target) -> tuple[Residual, ...]:
    return sweep(target, SESSION, SESSION)


def an_instance(cloud: Cloud) -> None:
    cloud.ec2.run_instances(
        ImageId=cloud.ec2.register_image(Name="image")["ImageId"],
        InstanceType="g6.xlarge",
        MinCount=1,
        MaxCount=1,
        **cloud.tags("instance"),
    )


def a_volume(cloud: Cloud) -> None:
    cloud.ec2.create_volume(AvailabilityZone="us-west-2a", Size=730, VolumeType="gp3", **cloud.cluster_tags("volume"))


def an_interface(cloud: Cloud) -> None:
    cni = {"Key": "cluster.k8s.amazonaws.com/name", "Value": cloud.session}
    cloud.ec2.create_network_interface(
        SubnetId=cloud.default_subnets()[0],
        TagSpecifications=[{"ResourceType": "network-interface", "Tags": [cni]}],
    )


def an_address(cloud: Cloud) -> None:
    cloud.ec2.allocate_address(Domain="vpc", **cloud.tags("elastic-ip"))


def a_nat_gateway(cloud: Cloud) -> None:
    cloud.ec2.create_nat_gateway(
        SubnetId=cloud.default_subnets()[0], ConnectivityType="private", **cloud.tags("natgateway")
    )


def an_endpoint(cloud: Cloud) -> None:
    vpc_id = cloud.ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    cloud.ec2.create_vpc_endpoint(
        VpcId=vpc_id, ServiceName="com.amazonaws.us-west-2.s3", VpcEndpointType="Gateway", **cloud.tags("vpc-endpoint")
    )


def a_launch_template(cloud: Cloud) -> None:
    cloud.ec2.create_launch_template(
        LaunchTemplateName=f"lt-{cloud.session}", LaunchTemplateData={}, **cloud.tags("launch-template")
    )


def a_security_group(cloud: Cloud) -> None:
    cloud.ec2.create_security_group(
        GroupName=f"k8s-{cloud.session}", Description="by a controller", **cloud.cluster_tags("security-group")
    )


def an_internet_gateway(cloud: Cloud) -> None:
    cloud.ec2.create_internet_gateway(**cloud.tags("internet-gateway"))


def a_subnet(cloud: Cloud) -> None:
    cloud.ec2.create_subnet(
        VpcId=cloud.ec2.describe_vpcs()["Vpcs"][0]["VpcId"],
        CidrBlock="172.31.200.0/24" if cloud.session == SESSION else "172.31.201.0/24",
        **cloud.tags("subnet"),
    )


def a_vpc(cloud: Cloud) -> None:
    cloud.vpc()


def a_cluster(cloud: Cloud) -> None:
    cloud.client("eks").create_cluster(
        name=cloud.session, roleArn=ROLE, resourcesVpcConfig={"subnetIds": cloud.default_subnets()}
    )


def a_scaling_group(cloud: Cloud) -> None:
    scaling, name = cloud.client("autoscaling"), f"eks-{cloud.session}"
    image = cloud.ec2.register_image(Name="image")["ImageId"]
    scaling.create_launch_configuration(LaunchConfigurationName=name, ImageId=image, InstanceType="m7i.large")
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchConfigurationName=name,
        MinSize=0,
        MaxSize=1,
        DesiredCapacity=0,
        VPCZoneIdentifier=cloud.default_subnets()[0],
        Tags=[{"Key": "eks:cluster-name", "Value": cloud.session, "PropagateAtLaunch": True}],
    )


def a_load_balancer(cloud: Cloud) -> None:
    cloud.client("elbv2").create_load_balancer(
        Name=f"lb-{cloud.session}",
        Subnets=cloud.default_subnets(),
        Tags=[{"Key": "elbv2.k8s.aws/cluster", "Value": cloud.session}],
    )


def a_classic_load_balancer(cloud: Cloud) -> None:
    cloud.client("elb").create_load_balancer(
        LoadBalancerName=f"c-{cloud.session}",
        Listeners=[{"Protocol": "tcp", "LoadBalancerPort": 80, "InstancePort": 80}],
        Subnets=cloud.default_subnets()[:1],
        Tags=[{"Key": f"kubernetes.io/cluster/{cloud.session}", "Value": "owned"}],
    )


def a_log_group(cloud: Cloud) -> None:
    cloud.client("logs").create_log_group(logGroupName=f"/aws/eks/{cloud.session}/cluster")


def a_role(cloud: Cloud) -> None:
    cloud.client("iam").create_role(
        RoleName=f"session-nodes-node-{cloud.session[-4:]}",
        AssumeRolePolicyDocument=ASSUME,
        Tags=[{"Key": "rent-the-block:session", "Value": cloud.session}],
    )


LEFT: dict[str, Make] = {
    "ec2_instance": an_instance,
    "ebs_volume": a_volume,
    "network_interface": an_interface,
    "public_ipv4": an_address,
    "nat_gateway": a_nat_gateway,
    "vpc_endpoint": an_endpoint,
    "launch_template": a_launch_template,
    "security_group": a_security_group,
    "internet_gateway": an_internet_gateway,
    "subnet": a_subnet,
    "vpc": a_vpc,
    "eks_cluster": a_cluster,
    "auto_scaling_group": a_scaling_group,
    "load_balancer": a_load_balancer,
    "classic_load_balancer": a_classic_load_balancer,
    "log_group": a_log_group,
    "iam_role": a_role,
}


@pytest.mark.parametrize("kind", LEFT)
def test_each_kind_of_left_over_is_found(target: Target, kind: str) -> None:
    LEFT[kind](Cloud(target, SESSION))
    found = look(target)
    # Some bring others along: a VPC its groups, an instance its volume.
    assert kind in {residual.kind for residual in found}
    assert all(residual.resource_id and residual.region == "us-west-2" for residual in found)


def test_what_belongs_to_another_session_is_not_ours(target: Target) -> None:
    for make in LEFT.values():
        make(Cloud(target, OTHER))
    assert look(target) == ()


def test_an_untouched_account_is_empty(target: Target) -> None:
    assert look(target) == ()


def test_everything_in_the_sessions_vpc_is_found_without_a_tag(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    vpc_id = cloud.vpc()
    subnet = cloud.subnet(vpc_id)
    cloud.ec2.create_security_group(GroupName="by hand", Description="-", VpcId=vpc_id)
    cloud.ec2.create_network_interface(SubnetId=subnet)
    cloud.ec2.create_nat_gateway(SubnetId=subnet, ConnectivityType="private")
    cloud.client("elbv2").create_load_balancer(
        Name="by-hand", Subnets=[subnet, cloud.subnet(vpc_id, "b", "10.9.1.0/24")]
    )
    found = {residual.kind for residual in look(target)}
    assert found >= {"vpc", "subnet", "security_group", "network_interface", "nat_gateway", "load_balancer"}


def test_a_node_group_is_found_with_its_cluster(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    a_cluster(cloud)
    cloud.client("eks").create_nodegroup(
        clusterName=SESSION, nodegroupName="gpu", nodeRole=ROLE, subnets=cloud.default_subnets()
    )
    assert f"{SESSION}/gpu" in {residual.resource_id for residual in look(target) if residual.kind == "eks_node_group"}


def test_what_has_ended_is_not_left(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    an_instance(cloud)
    a_nat_gateway(cloud)
    (reservation,) = cloud.ec2.describe_instances()["Reservations"]
    cloud.ec2.terminate_instances(InstanceIds=[reservation["Instances"][0]["InstanceId"]])
    (gateway,) = cloud.ec2.describe_nat_gateways()["NatGateways"]
    cloud.ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
    assert {residual.kind for residual in look(target)} <= {"ebs_volume"}


def test_a_left_over_says_what_it_costs_a_day(target: Target) -> None:
    for kind in ("nat_gateway", "eks_cluster", "public_ipv4", "ebs_volume", "launch_template"):
        LEFT[kind](Cloud(target, SESSION))
    assert {residual.kind: str(residual.usd_per_day) for residual in look(target)} == {
        "nat_gateway": "1.08",
        "eks_cluster": "2.40",
        "public_ipv4": "0.12",
        "ebs_volume": "1.92",
        "launch_template": "0.00",
    }


def test_a_service_that_does_not_answer_is_a_finding(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, operation: str, parameters: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not allowed"}}, operation)

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", refuse)
    found = look(target)
    assert {residual.kind for residual in found} == {*LEFT, "eks_node_group"}
    assert all("could not look" in residual.detail and "AccessDenied" in residual.detail for residual in found)
    assert not any(residual.resource_id for residual in found)
