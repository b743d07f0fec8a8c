"""Deletes what a sweep still finds when nothing else deletes it any more: what no stack knows, or no stack deleted.

One pass asks AWS for everything that can go now; what holds something else up goes in an earlier pass, as the rows say.
Deleting takes AWS minutes, so nothing is waited for: the next sweep sees what is still there, and asks again.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..aws_errors import aws_errors
from ..errors import AwsSaysNo, RentblockError
from ..session.record import Residual
from ..target import Target

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_logs import CloudWatchLogsClient

CONTROLLERS_MAKE = frozenset({"load_balancer", "classic_load_balancer", "network_interface"})
"""The kinds that the stack never makes, and that keep its network from being deleted."""


class _Aws:
    """The clients of one pass, each made once and only when it is asked for."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @cached_property
    def autoscaling(self) -> "AutoScalingClient":
        return self._target.client("autoscaling")

    @cached_property
    def ec2(self) -> "EC2Client":
        return self._target.client("ec2")

    @cached_property
    def eks(self) -> "EKSClient":
        return self._target.client("eks")

    @cached_property
    def iam(self) -> "IAMClient":
        return self._target.client("iam")

    @cached_property
    def logs(self) -> "CloudWatchLogsClient":
        return self._target.client("logs")

    def load_balancing(self, service: str) -> Any:
        """Elastic Load Balancing ("elb", "elbv2"), which the boto3 stubs of this project do not cover."""
        make: Callable[..., Any] = self._target.client
        return make(service)


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """How one kind is deleted by its id, and after which others: AWS refuses, or makes it anew, while they exist.
    `loosen` is asked of all before the first is deleted."""

    delete: Callable[[_Aws, str], object]
    after: frozenset[str] = frozenset()
    loosen: Callable[[_Aws, str], object] = lambda aws, resource_id: None


def delete(target: Target, left: Iterable[Residual], kinds: Set[str] | None = None) -> tuple[Residual, ...]:
    """Ask AWS to delete what can go now of `left` (of `kinds` only, when given).

    Gives `left` as it was; what AWS refused to delete says so in its detail. Never raises.
    """
    seen = tuple(left)
    standing = {each.kind for each in seen}
    ready = {kind for kind in standing & (kinds or KINDS.keys()) if KINDS[kind].after.isdisjoint(standing)}
    # What could not be looked at has no id.
    going = [each for each in seen if each.kind in ready and each.resource_id]
    aws = _Aws(target)
    for each in going:
        _refusal(aws, each, KINDS[each.kind].loosen)
    refused = {each: why for each in going if (why := _refusal(aws, each, KINDS[each.kind].delete))}
    return tuple(replace(each, detail=_sentences(each.detail, refused.get(each))) for each in seen)


def _sentences(*said: str | None) -> str:
    return "; ".join(part for part in said if part)


def _refusal(aws: _Aws, left: Residual, act: Callable[[_Aws, str], object]) -> str | None:
    """Why AWS did not do it; None when it did, or when there is nothing there any more."""
    try:
        with aws_errors(f"deleting {left.kind} {left.resource_id}"):
            act(aws, left.resource_id)
    except AwsSaysNo as answer:
        return None if "NotFound" in answer.code or answer.code.startswith("NoSuch") else answer.happened
    except RentblockError as error:
        return error.happened
    return None


def _node_group(aws: _Aws, resource_id: str) -> None:
    cluster, name = resource_id.split("/")
    aws.eks.delete_nodegroup(clusterName=cluster, nodegroupName=name)


def _role(aws: _Aws, name: str) -> None:
    iam = aws.iam
    for profile in iam.list_instance_profiles_for_role(RoleName=name)["InstanceProfiles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=name)
    for attached in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=name, PolicyArn=attached["PolicyArn"])
    for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    iam.delete_role(RoleName=name)


def _revoke_all(aws: _Aws, group_id: str) -> None:
    """A group that a rule of another one names is not deleted."""
    ec2 = aws.ec2
    (group,) = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    if group["IpPermissions"]:
        ec2.revoke_security_group_ingress(GroupId=group_id, IpPermissions=group["IpPermissions"])
    if group["IpPermissionsEgress"]:
        ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=group["IpPermissionsEgress"])


def _internet_gateway(aws: _Aws, gateway_id: str) -> None:
    ec2 = aws.ec2
    (gateway,) = ec2.describe_internet_gateways(InternetGatewayIds=[gateway_id])["InternetGateways"]
    for attachment in gateway["Attachments"]:
        ec2.detach_internet_gateway(InternetGatewayId=gateway_id, VpcId=attachment["VpcId"])
    ec2.delete_internet_gateway(InternetGatewayId=gateway_id)


def _vpc(aws: _Aws, vpc_id: str) -> None:
    """Route tables cost nothing and are looked for by nobody; but for the main one they keep the VPC."""
    ec2 = aws.ec2
    for table in ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["RouteTables"]:
        if not any(association.get("Main") for association in table["Associations"]):
            for association in table["Associations"]:
                ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
            ec2.delete_route_table(RouteTableId=table["RouteTableId"])
    ec2.delete_vpc(VpcId=vpc_id)


_BALANCERS = frozenset({"load_balancer", "classic_load_balancer"})

KINDS: Mapping[str, _Kind] = {
    "load_balancer": _Kind(
        delete=lambda aws, arn: aws.load_balancing("elbv2").delete_load_balancer(LoadBalancerArn=arn)
    ),
    "classic_load_balancer": _Kind(
        delete=lambda aws, name: aws.load_balancing("elb").delete_load_balancer(LoadBalancerName=name)
    ),
    "eks_node_group": _Kind(delete=_node_group),
    # It would start the instances anew, and EKS the group.
    "auto_scaling_group": _Kind(
        delete=lambda aws, name: aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True),
        after=frozenset({"eks_node_group"}),
    ),
    "eks_cluster": _Kind(
        delete=lambda aws, name: aws.eks.delete_cluster(name=name), after=frozenset({"eks_node_group"})
    ),
    "ec2_instance": _Kind(
        delete=lambda aws, one: aws.ec2.terminate_instances(InstanceIds=[one]),
        after=frozenset({"eks_node_group", "auto_scaling_group"}),
    ),
    "nat_gateway": _Kind(delete=lambda aws, one: aws.ec2.delete_nat_gateway(NatGatewayId=one)),
    "vpc_endpoint": _Kind(delete=lambda aws, one: aws.ec2.delete_vpc_endpoints(VpcEndpointIds=[one])),
    "ebs_volume": _Kind(delete=lambda aws, one: aws.ec2.delete_volume(VolumeId=one), after=frozenset({"ec2_instance"})),
    "public_ipv4": _Kind(
        delete=lambda aws, one: aws.ec2.release_address(AllocationId=one),
        after=frozenset({"nat_gateway", "ec2_instance"}),
    ),
    "launch_template": _Kind(
        delete=lambda aws, one: aws.ec2.delete_launch_template(LaunchTemplateId=one),
        after=frozenset({"eks_node_group", "auto_scaling_group"}),
    ),
    "network_interface": _Kind(
        delete=lambda aws, one: aws.ec2.delete_network_interface(NetworkInterfaceId=one),
        after=_BALANCERS | {"nat_gateway", "vpc_endpoint", "ec2_instance", "eks_cluster"},
    ),
    "security_group": _Kind(
        delete=lambda aws, one: aws.ec2.delete_security_group(GroupId=one),
        after=_BALANCERS | {"network_interface", "eks_cluster"},
        loosen=_revoke_all,
    ),
    "internet_gateway": _Kind(
        delete=_internet_gateway, after=_BALANCERS | {"nat_gateway", "public_ipv4", "ec2_instance"}
    ),
    "subnet": _Kind(
        delete=lambda aws, one: aws.ec2.delete_subnet(SubnetId=one), after=frozenset({"network_interface"})
    ),
    "vpc": _Kind(delete=_vpc, after=frozenset({"vpc_endpoint", "security_group", "internet_gateway", "subnet"})),
    # EKS writes to it until the cluster is gone, and would make it anew.
    "log_group": _Kind(
        delete=lambda aws, name: aws.logs.delete_log_group(logGroupName=name),
        after=frozenset({"eks_cluster"}),
    ),
    "iam_role": _Kind(delete=_role, after=frozenset({"eks_node_group", "eks_cluster", "ec2_instance"})),
}
"""Every kind that a sweep looks for, and how it goes."""
