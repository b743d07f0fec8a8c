"""A simulated account, and what a session or a controller in its cluster would make there."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

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
    """An account, seen by one session."""

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
