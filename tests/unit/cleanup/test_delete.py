"""What a sweep still finds is deleted, whatever of it holds up the rest, and nothing of anybody else."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from automation.cleanup.delete import HOLD_A_NETWORK, KINDS, delete
from automation.cleanup.sweep import sweep
from automation.ledger.record import Residual
from automation.target import Target
from tests.unit.cleanup.account import LEFT, OTHER, ROLE, SESSION, Cloud, an_instance

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


def kinds(left: Iterable[Residual]) -> set[str]:
    return {each.kind for each in left}


def refuse(
    monkeypatch: pytest.MonkeyPatch,
    *operations: str,
    code: str = "UnauthorizedOperation",
    message: str = "Not allowed.",
) -> None:
    """Let AWS refuse some operations."""
    answer = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(client: Any, operation: str, parameters: Any) -> Any:
        if operation in operations:
            raise ClientError({"Error": {"Code": code, "Message": message}}, operation)
        return answer(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)


@pytest.mark.parametrize("kind", LEFT)
def test_each_kind_of_left_over_is_deleted_unless_it_may_hold_data(target: Target, kind: str) -> None:
    LEFT[kind](Cloud(target, SESSION))
    found = sweep(target, SESSION, SESSION)
    assert found
    # A claim's volume was made by a controller for a user; the others are the stack's or nobody's.
    assert kinds(delete_all(target)) == {each.kind for each in found if each.kept} == {"ebs_volume"} & {kind}


def test_what_belongs_to_another_session_stays(target: Target) -> None:
    for make in LEFT.values():
        make(Cloud(target, OTHER))
    before = sweep(target, OTHER, OTHER)
    for make in LEFT.values():
        make(Cloud(target, SESSION))
    assert kinds(delete_all(target)) == {"ebs_volume"}
    assert sweep(target, OTHER, OTHER) == before


def test_what_is_shared_with_the_cluster_is_not_the_sessions(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    shared = {"Key": f"kubernetes.io/cluster/{SESSION}", "Value": "shared"}
    tags = [{"ResourceType": "vpc", "Tags": [shared]}]
    cloud.ec2.create_vpc(CidrBlock="10.8.0.0/16", TagSpecifications=tags)
    assert sweep(target, SESSION, SESSION) == ()


def test_what_people_put_into_the_network_is_kept_and_keeps_it(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    vpc_id = cloud.vpc()
    image = cloud.ec2.register_image(Name="image")["ImageId"]
    cloud.ec2.run_instances(
        ImageId=image, InstanceType="m7i.large", MinCount=1, MaxCount=1, SubnetId=cloud.subnet(vpc_id)
    )
    cloud.client("logs").create_log_group(logGroupName=f"/aws/containerinsights/{SESSION}/application")
    left = delete_all(target)
    assert {each.kind for each in left if each.kept} == {"ec2_instance", "log_group"}
    assert {"vpc", "subnet", "network_interface"} <= kinds(left)
    [machine] = [each.told for each in left if each.kind == "ec2_instance"]
    assert "it may hold data of yours" in machine
    assert "US$" in machine


def test_a_volume_of_the_stack_goes(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    cloud.ec2.create_volume(AvailabilityZone="us-west-2a", Size=1, VolumeType="gp3", **cloud.tags("volume"))
    assert delete_all(target) == ()


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
    assert asked[0] == {"DeleteNatGateway", "DeleteLoadBalancer", "DeleteNodegroup", "ReleaseAddress"}
    order = [operation for each in passes for operation in each]
    for first, then in (
        ("DeleteNodegroup", "DeleteCluster"),
        ("DeleteCluster", "DeleteNetworkInterface"),
        ("ReleaseAddress", "DetachInternetGateway"),
        ("DeleteNetworkInterface", "DeleteSubnet"),
        ("DeleteNetworkInterface", "DeleteSecurityGroup"),
        ("DeleteSubnet", "DeleteVpc"),
    ):
        assert order.index(first) < order.index(then), order


def test_a_role_goes_with_its_policies_and_its_instance_profile(target: Target) -> None:
    iam = target.client("iam")
    LEFT["iam_role"](Cloud(target, SESSION))
    [role] = [known["RoleName"] for known in iam.list_roles()["Roles"] if known["RoleName"].startswith("session-")]
    policy = iam.create_policy(PolicyName="node", PolicyDocument=ALLOW)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName=role, PolicyArn=policy)
    iam.put_role_policy(RoleName=role, PolicyName="weights", PolicyDocument=ALLOW)
    iam.create_instance_profile(InstanceProfileName="eks-1")
    iam.add_role_to_instance_profile(InstanceProfileName="eks-1", RoleName=role)
    assert delete_all(target) == ()
    assert role not in {known["RoleName"] for known in iam.list_roles()["Roles"]}


def test_what_aws_refuses_says_why_and_keeps_nothing_else(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("nat_gateway", "launch_template", "log_group", "internet_gateway"):
        LEFT[kind](Cloud(target, SESSION))
    refuse(monkeypatch, "DeleteNatGateway")
    said = {left.kind: left.detail for left in delete(target, sweep(target, SESSION, SESSION))}
    assert said["nat_gateway"].endswith("AWS refused while deleting it: UnauthorizedOperation: Not allowed.")
    assert said["internet_gateway"] == "waits for nat_gateway"
    assert not any("refused" in said[kind] for kind in ("launch_template", "log_group"))
    # The gateway's own network is the account's: it is not the session's to lose.
    assert kinds(sweep(target, SESSION, SESSION)) == {"nat_gateway", "internet_gateway"}


def test_an_endpoint_that_ec2_refuses_in_the_midst_of_a_success_says_why(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    LEFT["vpc_endpoint"](Cloud(target, SESSION))
    found = sweep(target, SESSION, SESSION)
    error = {"Code": "InvalidParameter", "Message": "Operation is not allowed for requester-managed VPC endpoints."}
    answer = {"Unsuccessful": [{"ResourceId": found[0].resource_id, "Error": error}]}
    monkeypatch.setattr(BaseClient, "_make_api_call", lambda *_: answer)
    assert "requester-managed" in delete(target, found)[0].detail


def test_an_address_that_is_still_in_use_is_no_matter_of_credentials(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    LEFT["public_ipv4"](Cloud(target, SESSION))
    refuse(
        monkeypatch,
        "ReleaseAddress",
        code="AuthFailure",
        message="You do not have permission to access the specified resource.",
    )
    [address] = delete(target, sweep(target, SESSION, SESSION))
    assert "AWS refused while deleting it: AuthFailure" in address.detail


def test_a_node_group_that_eks_cannot_delete_keeps_no_machines(target: Target) -> None:
    def left(kind: str, detail: str = "") -> Residual:
        return Residual(kind=kind, resource_id="a/b", region="us-west-2", detail=detail, usd_per_day=Decimal(0))

    stuck = delete(target, (left("eks_node_group", "DELETE_FAILED"), left("auto_scaling_group")), frozenset())
    assert [each.detail for each in stuck] == ["DELETE_FAILED", ""]
    for status, waits in (("DELETING", True), ("DELETE_FAILED", False)):
        group = delete(target, (left("eks_node_group", status), left("auto_scaling_group")))[1]
        assert group.detail.startswith("waits for eks_node_group") is waits


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


def test_between_two_destroys_only_what_holds_the_network_goes(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    an_instance(cloud)
    cloud.ec2.create_network_interface(SubnetId=cloud.subnet(cloud.vpc()))
    for kind in ("nat_gateway", "load_balancer", "classic_load_balancer", "vpc_endpoint", "security_group"):
        LEFT[kind](cloud)
    for _ in range(DEEPEST):
        delete(target, sweep(target, SESSION, SESSION), HOLD_A_NETWORK)
    kept = kinds(sweep(target, SESSION, SESSION))
    assert {"ec2_instance", "nat_gateway", "subnet", "vpc"} <= kept
    assert not kept & {"load_balancer", "classic_load_balancer", "vpc_endpoint"}
    # They wait for the machine and the gateway, which the engine deletes.
    assert {"network_interface", "security_group"} <= kept


def test_whatever_a_sweep_finds_can_be_deleted() -> None:
    assert KINDS.keys() == {*LEFT, "eks_node_group"}
