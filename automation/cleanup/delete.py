"""Deletes what a sweep still finds when nothing else deletes it any more: what no stack knows, or no stack deleted.

One pass asks AWS for everything that can go now; what holds something else up goes in an earlier pass, as the rows say.
Deleting takes AWS minutes, so nothing is waited for: the next sweep sees what is still there, and asks again. What may
hold somebody's data is kept, for people to judge.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from ..aws_errors import aws_errors
from ..errors import AwsSaysNo, RentblockError
from ..ledger.record import Residual
from ..target import Target

_BALANCERS = frozenset({"load_balancer", "classic_load_balancer"})
# EKS's word for a group or cluster that it will not delete by itself any more: nothing waits for that.
_NOT_GOING = "DELETE_FAILED"

HOLD_A_NETWORK = _BALANCERS | {"network_interface", "security_group", "vpc_endpoint"}
"""The kinds that controllers in the cluster, and services of AWS, make in a VPC without asking: none of its subnets can
be deleted before them."""


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """How one kind is deleted by its id, and after which others: AWS refuses, or makes it anew, while they exist."""

    delete: Callable[[Target, str], object]
    after: frozenset[str] = frozenset()


def delete(
    target: Target, left: Iterable[Residual], kinds: Set[str] | None = None, *, spare: Set[str] = frozenset()
) -> tuple[Residual, ...]:
    """Ask AWS to delete what can go now of `left`; of `kinds` only, when they are given, and nothing of `spare` (ids).

    Gives `left` with the reason, in the detail, for each that was not asked to go or that AWS refused. Never raises.
    """
    seen, target = tuple(left), target.acting_as("sweep")
    standing = {each.kind for each in seen if _NOT_GOING not in each.detail}
    return tuple(
        _asked_to_go(target, each, standing)
        if each.kind in (KINDS.keys() if kinds is None else kinds) and each.resource_id not in spare
        else each
        for each in seen
    )


def _asked_to_go(target: Target, left: Residual, standing: Set[str]) -> Residual:
    # What could not be looked at has no id.
    if left.kept or not left.resource_id:
        return left
    before = sorted(KINDS[left.kind].after & standing)
    why = f"waits for {', '.join(before)}" if before else _refusal(target, left)
    return replace(left, detail="; ".join(part for part in (left.detail, why) if part))


def _refusal(target: Target, left: Residual) -> str | None:
    """Why AWS did not do it; None when it did, or when there is nothing there any more."""
    try:
        with aws_errors("deleting it"):
            KINDS[left.kind].delete(target, left.resource_id)
    except AwsSaysNo as answer:
        return None if "NotFound" in answer.code or answer.code.startswith("NoSuch") else answer.happened
    except RentblockError as error:
        return error.happened
    return None


def _load_balancing(target: Target, service: str) -> Any:
    """A client of "elb" or "elbv2", which the boto3 stubs of this project do not cover."""
    make: Callable[..., Any] = target.client
    return make(service)


def _node_group(target: Target, resource_id: str) -> None:
    cluster, name = resource_id.split("/")
    target.client("eks").delete_nodegroup(clusterName=cluster, nodegroupName=name)


def _role(target: Target, name: str) -> None:
    iam = target.client("iam")
    for profile in iam.list_instance_profiles_for_role(RoleName=name)["InstanceProfiles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=name)
    for attached in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=name, PolicyArn=attached["PolicyArn"])
    for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    iam.delete_role(RoleName=name)


def _vpc_endpoint(target: Target, endpoint_id: str) -> None:
    """EC2 answers this call with success and tells in the answer what it refused."""
    for refused in target.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[endpoint_id])["Unsuccessful"]:
        said = refused["Error"]
        code, text = said.get("Code", "Unknown"), said.get("Message", "")
        raise AwsSaysNo(
            happened=f"AWS refused while deleting it: {code}: {text}", code=code, remedy="Delete it by hand."
        )


def _security_group(target: Target, group_id: str) -> None:
    """Of two that name each other in their rules, the first is refused until the next pass: the other has gone then."""
    ec2 = target.client("ec2")
    rules = ec2.get_paginator("describe_security_group_rules")
    for page in rules.paginate(Filters=[{"Name": "group-id", "Values": [group_id]}]):
        for rule in page["SecurityGroupRules"]:
            revoke = ec2.revoke_security_group_egress if rule["IsEgress"] else ec2.revoke_security_group_ingress
            revoke(GroupId=group_id, SecurityGroupRuleIds=[rule["SecurityGroupRuleId"]])
    ec2.delete_security_group(GroupId=group_id)


def _internet_gateway(target: Target, gateway_id: str) -> None:
    ec2 = target.client("ec2")
    (gateway,) = ec2.describe_internet_gateways(InternetGatewayIds=[gateway_id])["InternetGateways"]
    for attachment in gateway["Attachments"]:
        ec2.detach_internet_gateway(InternetGatewayId=gateway_id, VpcId=attachment["VpcId"])
    ec2.delete_internet_gateway(InternetGatewayId=gateway_id)


def _vpc(target: Target, vpc_id: str) -> None:
    """Route tables cost nothing and are looked for by nobody; but for the main one they keep the VPC."""
    ec2 = target.client("ec2")
    for table in ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["RouteTables"]:
        if not any(association.get("Main") for association in table["Associations"]):
            for association in table["Associations"]:
                ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
            ec2.delete_route_table(RouteTableId=table["RouteTableId"])
    ec2.delete_vpc(VpcId=vpc_id)


KINDS: Mapping[str, _Kind] = {
    "load_balancer": _Kind(
        delete=lambda aws, arn: _load_balancing(aws, "elbv2").delete_load_balancer(LoadBalancerArn=arn)
    ),
    "classic_load_balancer": _Kind(
        delete=lambda aws, name: _load_balancing(aws, "elb").delete_load_balancer(LoadBalancerName=name)
    ),
    "eks_node_group": _Kind(delete=_node_group),
    "auto_scaling_group": _Kind(
        delete=lambda aws, name: aws.client("autoscaling").delete_auto_scaling_group(
            AutoScalingGroupName=name, ForceDelete=True
        ),
        after=frozenset({"eks_node_group"}),
    ),
    "eks_cluster": _Kind(
        delete=lambda aws, name: aws.client("eks").delete_cluster(name=name), after=frozenset({"eks_node_group"})
    ),
    # Its group would start another one.
    "ec2_instance": _Kind(
        delete=lambda aws, one: aws.client("ec2").terminate_instances(InstanceIds=[one]),
        after=frozenset({"eks_node_group", "auto_scaling_group"}),
    ),
    "nat_gateway": _Kind(delete=lambda aws, one: aws.client("ec2").delete_nat_gateway(NatGatewayId=one)),
    "vpc_endpoint": _Kind(delete=_vpc_endpoint),
    # These two bill and hold nothing up: AWS itself refuses while they are in use, and one that is keeps no other.
    "ebs_volume": _Kind(delete=lambda aws, one: aws.client("ec2").delete_volume(VolumeId=one)),
    "public_ipv4": _Kind(delete=lambda aws, one: aws.client("ec2").release_address(AllocationId=one)),
    "launch_template": _Kind(
        delete=lambda aws, one: aws.client("ec2").delete_launch_template(LaunchTemplateId=one),
        after=frozenset({"eks_node_group", "auto_scaling_group"}),
    ),
    "network_interface": _Kind(
        delete=lambda aws, one: aws.client("ec2").delete_network_interface(NetworkInterfaceId=one),
        after=_BALANCERS | {"nat_gateway", "vpc_endpoint", "ec2_instance", "eks_cluster"},
    ),
    "security_group": _Kind(
        delete=_security_group, after=_BALANCERS | {"vpc_endpoint", "network_interface", "eks_cluster"}
    ),
    "internet_gateway": _Kind(
        delete=_internet_gateway, after=_BALANCERS | {"nat_gateway", "public_ipv4", "ec2_instance"}
    ),
    "subnet": _Kind(
        delete=lambda aws, one: aws.client("ec2").delete_subnet(SubnetId=one), after=frozenset({"network_interface"})
    ),
    "vpc": _Kind(delete=_vpc, after=frozenset({"vpc_endpoint", "security_group", "internet_gateway", "subnet"})),
    # EKS writes to it until the cluster is gone, and would make it anew.
    "log_group": _Kind(
        delete=lambda aws, name: aws.client("logs").delete_log_group(logGroupName=name),
        after=frozenset({"eks_cluster"}),
    ),
    "iam_role": _Kind(delete=_role, after=frozenset({"eks_node_group", "eks_cluster"})),
}
"""Every kind that a sweep looks for, and how it goes."""
