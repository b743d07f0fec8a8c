"""A whole EKS stack with the real engine, by both providers: it comes up, stays as it is, takes its time, and goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pytest
from moto.eks.models import eks_backends
from pulumi import automation

from rehearsal.aws.server import ACCOUNT_ID

pytestmark = [
    pytest.mark.engine,
    # Pulumi's SDK leaves the event loop of a program open when its operation has failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REGION = "us-west-2"
ASSUME = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    },
    indent=4,
)


class Everything(pulumi.ComponentResource):
    """Every resource type of the table, wired as the product's own program does it."""

    def __init__(self, **cluster: Any) -> None:
        providers = [aws.Provider("aws", region=REGION, default_tags={"tags": {"team": "blue"}}), eks.Provider("eks")]
        super().__init__("test:index:Everything", "all", None, pulumi.ResourceOptions(providers=providers))
        zones = aws.get_availability_zones(state="available", opts=pulumi.InvokeOptions(parent=self))
        self.vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, opts=self.own())
        self.subnets = [
            aws.ec2.Subnet(
                f"subnet-{index}",
                vpc_id=self.vpc.id,
                cidr_block=f"10.0.{index}.0/24",
                availability_zone_id=zones.zone_ids[index % 2],
                map_public_ip_on_launch=index == 2,
                opts=self.own(),
            )
            for index in range(3)
        ]
        self.way_out()
        self.cluster = self.control_plane(**cluster)
        self.nodes()
        self.register_outputs({})

    def own(self, *depends_on: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=list(depends_on))

    def way_out(self) -> None:
        gateway = aws.ec2.InternetGateway("gateway", vpc_id=self.vpc.id, opts=self.own())
        everywhere = "0.0.0.0/0"
        public, private = (
            aws.ec2.RouteTable(name, vpc_id=self.vpc.id, opts=self.own()) for name in ("public", "private")
        )
        for table, subnets in ((public, self.subnets[2:]), (private, self.subnets[:2])):
            for index, subnet in enumerate(subnets):
                name = f"{table._name}-{index}"
                aws.ec2.RouteTableAssociation(name, route_table_id=table.id, subnet_id=subnet.id, opts=self.own())
        out = aws.ec2.Route(
            "out", route_table_id=public.id, destination_cidr_block=everywhere, gateway_id=gateway.id, opts=self.own()
        )
        address = aws.ec2.Eip("nat", domain="vpc", opts=self.own(gateway))
        nat = aws.ec2.NatGateway("nat", allocation_id=address.id, subnet_id=self.subnets[2].id, opts=self.own(out))
        aws.ec2.Route(
            "nat", route_table_id=private.id, destination_cidr_block=everywhere, nat_gateway_id=nat.id, opts=self.own()
        )
        aws.ec2.VpcEndpoint(
            "s3",
            vpc_id=self.vpc.id,
            service_name=f"com.amazonaws.{REGION}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[private.id],
            opts=self.own(),
        )

    def control_plane(self, **changes: Any) -> eks.Cluster:
        logs = aws.cloudwatch.LogGroup("logs", name="/aws/eks/k1/cluster", retention_in_days=7, opts=self.own())
        arguments: dict[str, Any] = {
            "name": "k1",
            "version": "1.35",
            "vpc_id": self.vpc.id,
            "subnet_ids": [subnet.id for subnet in self.subnets[:2]],
            "authentication_mode": eks.AuthenticationMode.API,
            "upgrade_policy": aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            "endpoint_private_access": True,
            "endpoint_public_access": True,
            "public_access_cidrs": ["203.0.113.0/24", "192.0.2.0/24"],
            "enabled_cluster_log_types": ["audit", "api"],
            "skip_default_node_group": True,
            "skip_default_security_groups": True,
            "create_instance_role": False,
            "bootstrap_self_managed_addons": False,
            "kube_proxy_addon_options": eks.KubeProxyAddonOptionsArgs(version="v1.35.0-eksbuild.2"),
            "vpc_cni_options": eks.VpcCniOptionsArgs(addon_version="v1.20.4-eksbuild.2"),
            "coredns_addon_options": eks.CoreDnsAddonOptionsArgs(enabled=False),
        }
        return eks.Cluster("control-plane", **(arguments | changes), opts=self.own(logs))

    def nodes(self) -> None:
        role = aws.iam.Role("node", assume_role_policy=ASSUME, opts=self.own())
        policy = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
        attached = aws.iam.RolePolicyAttachment("node", role=role.name, policy_arn=policy, opts=self.own())
        read = (
            '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}'
        )
        aws.iam.RolePolicy("read", role=role.name, policy=read, opts=self.own())
        template = aws.ec2.LaunchTemplate(
            "system",
            instance_type="m7i.large",
            metadata_options={"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1},
            block_device_mappings=[
                {"device_name": "/dev/xvda", "ebs": {"volume_size": 50, "volume_type": "gp3", "encrypted": "true"}}
            ],
            tag_specifications=[{"resource_type": "instance", "tags": {"team": "blue"}}],
            opts=self.own(),
        )
        cluster_name = self.cluster.eks_cluster.name
        nodes = aws.eks.NodeGroup(
            "system",
            cluster_name=cluster_name,
            node_group_name="system",
            node_role_arn=role.arn,
            subnet_ids=[self.subnets[0].id],
            ami_type="AL2023_x86_64_STANDARD",
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            scaling_config={"min_size": 1, "desired_size": 1, "max_size": 2},
            labels={"role": "system"},
            taints=[{"key": "a", "value": "b", "effect": "NO_SCHEDULE"}],
            opts=self.own(attached),
        )
        aws.eks.Addon(
            "coredns",
            cluster_name=cluster_name,
            addon_name="coredns",
            addon_version="v1.12.4-eksbuild.1",
            resolve_conflicts_on_create="OVERWRITE",
            opts=self.own(nodes),
        )
        aws.eks.PodIdentityAssociation(
            "vllm",
            cluster_name=cluster_name,
            namespace="vllm",
            service_account="vllm",
            role_arn=role.arn,
            opts=self.own(),
        )


def program() -> None:
    built = Everything()
    pulumi.export("kubeconfig", built.cluster.kubeconfig_json)
    pulumi.export("name", built.cluster.eks_cluster.name)
    pulumi.export("group", built.cluster.cluster_security_group_id)


def changes(summary: automation.UpdateSummary) -> dict[str, int]:
    return {str(getattr(kind, "value", kind)): count for kind, count in (summary.resource_changes or {}).items()}


def test_a_stack_comes_up_stays_as_it_is_and_goes(place: Any) -> None:
    stack = place.stack(program)
    foreseen = {getattr(kind, "value", kind): count for kind, count in stack.preview().change_summary.items()}
    assert place.aws.inventory() == []
    made = stack.up()
    assert changes(made.summary) == foreseen
    everything = {"same": foreseen["create"]}
    assert changes(stack.up().summary) == everything
    assert changes(stack.refresh().summary) == everything
    assert changes(stack.up().summary) == everything

    assert json.loads(made.outputs["kubeconfig"].value)["kind"] == "Config"
    assert made.outputs["kubeconfig"].secret
    assert "hush-kubeconfig" not in place.state
    cluster = place.client("eks").describe_cluster(name="k1")["cluster"]
    assert made.outputs["group"].value == cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert cluster["accessConfig"]["authenticationMode"] == "API"
    assert sorted(place.client("eks").list_addons(clusterName="k1")["addons"]) == ["coredns", "kube-proxy", "vpc-cni"]

    assert changes(stack.destroy().summary) == {"delete": foreseen["create"]}
    assert place.aws.inventory() == []


def test_an_operation_takes_its_critical_path_whatever_the_parallelism(new_place: Callable[[int], Any]) -> None:
    took = []
    for parallel in (2, 64):
        place = new_place(7)
        stack = place.stack(program)
        stack.up(parallel=parallel)
        up = place.settle()
        assert place.settle() == timedelta()
        stack.destroy(parallel=parallel)
        took.append((up, place.settle()))
    assert took[0] == took[1]
    delays = place.world.delays.by_name
    chain = ("eks_cluster_create", "node_group_create", "eks_addon_create")
    assert took[0][0] >= timedelta(seconds=sum(delays[name].low_s for name in chain))
    assert took[0][0] <= timedelta(seconds=sum(delays[name].high_s for name in (*chain, *["aws_call"] * 12)))
    assert took[0][1] >= timedelta(seconds=delays["eks_cluster_delete"].low_s + delays["node_group_delete"].low_s)


def test_what_is_not_simulated_of_a_cluster_is_refused_before_anything_of_it_is_there(place: Any) -> None:
    def typo() -> None:
        Everything(create_oidc_provider=True, vpc_cni_options=eks.VpcCniOptionsArgs(log_level="DEBUG"))

    with pytest.raises(automation.CommandError) as failure:
        place.stack(typo).up()
    assert "eks.Cluster has no simulated input createOidcProvider: see rehearsal/providers/eks.py" in str(failure.value)
    assert "vpcCniOptions.logLevel" in str(failure.value)
    assert place.client("eks").list_clusters()["clusters"] == []


def test_the_provider_does_not_see_that_a_node_group_is_degraded(place: Any) -> None:
    """So the session must look at EKS itself before it starts nodes."""
    stack = place.stack(program)
    stack.up()
    group = eks_backends[ACCOUNT_ID][REGION].clusters["k1"].nodegroups["system"]
    group.status = "DEGRADED"
    assert set(changes(stack.refresh().summary)) == {"same"}
    assert set(changes(stack.up().summary)) == {"same"}


def test_a_size_that_another_hand_set_is_left_alone_when_the_program_says_so(place: Any) -> None:
    def ignoring() -> None:
        def keep(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
            if args.type_ != "aws:eks/nodeGroup:NodeGroup":
                return None
            args.opts.ignore_changes = ["scalingConfig.desiredSize"]
            return pulumi.ResourceTransformResult(args.props, args.opts)

        pulumi.runtime.register_stack_transform(keep)
        program()

    stack = place.stack(ignoring)
    stack.up()
    sizes = {"minSize": 1, "maxSize": 2, "desiredSize": 2}
    place.client("eks").update_nodegroup_config(clusterName="k1", nodegroupName="system", scalingConfig=sizes)
    assert set(changes(stack.up().summary)) == {"same"}
    stack.refresh()
    assert set(changes(stack.up().summary)) == {"same"}
    described = place.client("eks").describe_nodegroup(clusterName="k1", nodegroupName="system")
    assert described["nodegroup"]["scalingConfig"]["desiredSize"] == 2


def test_the_held_reservation_is_read_from_aws(place: Any) -> None:
    reservation = place.aws.blocks.reservations[0]

    def read() -> None:
        own = aws.Provider("aws", region=REGION)
        invoke = pulumi.InvokeOptions(provider=own)
        found = aws.ec2.get_capacity_block_reservation(id=reservation.reservation_id, opts=invoke)
        pulumi.export("type", found.instance_type)
        pulumi.export("zone", found.availability_zone)
        pulumi.export("state", found.state)
        pulumi.export("account", aws.get_caller_identity(opts=invoke).account_id)
        pulumi.export("region", aws.get_region(opts=invoke).region)
        pulumi.export("partition", aws.get_partition(opts=invoke).partition)

    outputs = {name: output.value for name, output in place.stack(read).up().outputs.items()}
    assert outputs == {
        "type": "p6-b300.48xlarge",
        "zone": reservation.zone,
        "state": reservation.state,
        "account": ACCOUNT_ID,
        "region": REGION,
        "partition": "aws",
    }
