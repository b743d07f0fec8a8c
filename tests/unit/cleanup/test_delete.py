"""What a sweep still finds is deleted, whatever of it holds up the rest, and nothing of anybody else."""

import json
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from automation.cleanup.delete import CONTROLLERS_MAKE, KINDS, delete
from automation.cleanup.sweep import sweep
from automation.session.record import Residual
from automation.target import Target
from tests.unit.cleanup.account import ASSUME, LEFT, OTHER, ROLE, SESSION, Cloud, a_cluster, an_instance

ALLOW = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}]}
)
# From a node group to the network that its cluster stood in.
DEEPEST = 7


def delete_all(target: Target) -> tuple[Residual, ...]:
    """As many passes as the deepest dependency needs; gives what is left then."""
    left = sweep(target, SESSION, SESSION)
    for _ in range(DEEPEST):
        if left:
            delete(target, left)
            left = sweep(target, SESSION, SESSION)
    return left


def refuse(monkeypatch: pytest.MonkeyPatch, *operations: str) -> None:
    """Let AWS refuse some operations."""
    answer = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Any) -> Any:
        if operation in operations:
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "Not allowed."}}, operation)
        return answer(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)


@pytest.mark.parametrize("kind", LEFT)
def test_each_kind_of_left_over_is_deleted(target: Target, kind: str) -> None:
    LEFT[kind](Cloud(target, SESSION))
    assert sweep(target, SESSION, SESSION)
    assert delete_all(target) == ()


def test_what_belongs_to_another_session_stays(target: Target) -> None:
    for make in LEFT.values():
        make(Cloud(target, OTHER))
    before = sweep(target, OTHER, OTHER)
    for make in LEFT.values():
        make(Cloud(target, SESSION))
    assert delete_all(target) == ()
    assert sweep(target, OTHER, OTHER) == before


def a_whole_network(cloud: Cloud) -> str:
    """A VPC with all that keeps it from being deleted; gives its id."""
    ec2, vpc_id = cloud.ec2, cloud.vpc()
    subnets = [cloud.subnet(vpc_id), cloud.subnet(vpc_id, "b", "10.9.1.0/24")]
    gateway = ec2.create_internet_gateway(**cloud.tags("internet-gateway"))["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc_id)
    table = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnets[0])
    address = ec2.allocate_address(Domain="vpc", **cloud.tags("elastic-ip"))["AllocationId"]
    ec2.create_nat_gateway(SubnetId=subnets[0], AllocationId=address, **cloud.tags("natgateway"))
    groups = [
        ec2.create_security_group(GroupName=name, Description="-", VpcId=vpc_id)["GroupId"] for name in ("nodes", "lb")
    ]
    for group, other in (groups, reversed(groups)):
        peer = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[peer])
    ec2.create_network_interface(SubnetId=subnets[0], Groups=groups)
    cloud.client("elbv2").create_load_balancer(Name="by-a-controller", Subnets=subnets, SecurityGroups=groups)
    cloud.client("eks").create_cluster(name=cloud.session, roleArn=ROLE, resourcesVpcConfig={"subnetIds": subnets})
    cloud.client("eks").create_nodegroup(clusterName=cloud.session, nodegroupName="gpu", nodeRole=ROLE, subnets=subnets)
    return vpc_id


def test_a_network_goes_with_all_that_it_holds(target: Target) -> None:
    vpc_id = a_whole_network(Cloud(target, SESSION))
    assert delete_all(target) == ()
    assert vpc_id not in {vpc["VpcId"] for vpc in target.client("ec2").describe_vpcs()["Vpcs"]}


def test_nothing_is_asked_to_go_before_what_holds_it_up(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    a_whole_network(Cloud(target, SESSION))
    passes: list[list[str]] = []
    answer = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Any) -> Any:
        if operation.startswith(("Delete", "Detach", "Release", "Terminate")):
            passes[-1].append(operation)
        return answer(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    for _ in range(DEEPEST):
        passes.append([])
        delete(target, sweep(target, SESSION, SESSION))
    asked = [{*each} for each in passes if each]
    assert asked[0] == {"DeleteNatGateway", "DeleteLoadBalancer", "DeleteNodegroup"}
    order = [operation for each in passes for operation in each]
    for first, then in (
        ("DeleteNodegroup", "DeleteCluster"),
        ("DeleteNatGateway", "ReleaseAddress"),
        ("DeleteCluster", "DeleteNetworkInterface"),
        ("ReleaseAddress", "DetachInternetGateway"),
        ("DeleteNetworkInterface", "DeleteSubnet"),
        ("DeleteNetworkInterface", "DeleteSecurityGroup"),
        ("DeleteSubnet", "DeleteVpc"),
    ):
        assert order.index(first) < order.index(then), order


def test_a_role_goes_with_its_policies_and_its_instance_profile(target: Target) -> None:
    iam, name = target.client("iam"), f"{SESSION}-node"
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=ASSUME)["Role"]["RoleName"]
    policy = iam.create_policy(PolicyName="node", PolicyDocument=ALLOW)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName=role, PolicyArn=policy)
    iam.put_role_policy(RoleName=role, PolicyName="weights", PolicyDocument=ALLOW)
    iam.create_instance_profile(InstanceProfileName="eks-1")
    iam.add_role_to_instance_profile(InstanceProfileName="eks-1", RoleName=role)
    assert delete_all(target) == ()
    assert name not in {known["RoleName"] for known in iam.list_roles()["Roles"]}


def test_what_aws_refuses_says_why_and_keeps_nothing_else(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("nat_gateway", "launch_template", "log_group"):
        LEFT[kind](Cloud(target, SESSION))
    refuse(monkeypatch, "DeleteNatGateway")
    said = {left.kind: left.detail for left in delete(target, sweep(target, SESSION, SESSION))}
    assert "UnauthorizedOperation: Not allowed." in said["nat_gateway"]
    assert not any("refused" in said[kind] for kind in ("launch_template", "log_group"))
    # The gateway's own network is the account's: it is not the session's to lose.
    assert {left.kind for left in sweep(target, SESSION, SESSION)} == {"nat_gateway"}


def test_what_could_not_be_looked_at_is_not_deleted_and_holds_up_only_what_may_depend_on_it(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_whole_network(Cloud(target, SESSION))
    refuse(monkeypatch, "DescribeLoadBalancers")
    kept = {left.kind for left in delete_all(target)}
    assert kept == {
        "load_balancer",
        "classic_load_balancer",
        "network_interface",
        "security_group",
        "internet_gateway",
        "subnet",
        "vpc",
    }


def test_what_is_gone_meanwhile_is_no_refusal(target: Target) -> None:
    LEFT["launch_template"](Cloud(target, SESSION))
    LEFT["iam_role"](Cloud(target, SESSION))
    LEFT["log_group"](Cloud(target, SESSION))
    found = sweep(target, SESSION, SESSION)
    delete(target, found)
    assert delete(target, found) == found


def test_between_two_destroys_only_what_controllers_made_goes(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    a_cluster(cloud)
    an_instance(cloud)
    LEFT["load_balancer"](cloud)
    LEFT["classic_load_balancer"](cloud)
    delete(target, sweep(target, SESSION, SESSION), CONTROLLERS_MAKE)
    kept = {left.kind for left in sweep(target, SESSION, SESSION)}
    assert {"eks_cluster", "ec2_instance"} <= kept
    assert not kept & {"load_balancer", "classic_load_balancer"}


def test_whatever_a_sweep_finds_can_be_deleted() -> None:
    assert KINDS.keys() == {*LEFT, "eks_node_group"}
