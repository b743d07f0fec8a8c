"""What is left in the other services: EKS, Auto Scaling, load balancers, logs and IAM."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice

from ..aws_errors import aws_errors
from ..errors import AwsSaysNo
from . import prices
from .scope import Found, Scope

# The program's ComponentResource is called "session", so the roles that it and pulumi-eks make are called so too.
# IAM has no filter by tag: of the account's roles only these are asked for theirs.
_ROLE_PREFIX = "session-"
_LOAD_BALANCERS_A_CALL = 20


def clusters(scope: Scope) -> Iterator[Found]:
    try:
        with aws_errors("looking for the cluster"):
            cluster = scope.target.client("eks").describe_cluster(name=scope.cluster_name)["cluster"]
    except AwsSaysNo as answer:
        if answer.code == "ResourceNotFoundException":
            return
        raise
    usd = prices.per_hour(scope.catalogue, "eks_cluster_usd_per_hour")
    yield Found(resource_id=scope.cluster_name, detail=cluster.get("status", ""), usd_per_day=usd)


def node_groups(scope: Scope) -> Iterator[Found]:
    """None outlives its cluster, and AWS refuses to list those of a cluster that is gone."""
    for cluster in clusters(scope):
        for page in scope.pages("eks", "list_nodegroups", clusterName=cluster.resource_id):
            for name in page["nodegroups"]:
                group = scope.target.client("eks").describe_nodegroup(
                    clusterName=cluster.resource_id, nodegroupName=name
                )["nodegroup"]
                yield Found(resource_id=f"{cluster.resource_id}/{name}", detail=group.get("status", ""))


def scaling_groups(scope: Scope) -> Iterator[Found]:
    groups = {
        group["AutoScalingGroupName"]: group
        for one in scope.tag_filters
        for page in scope.pages("autoscaling", "describe_auto_scaling_groups", Filters=[one])
        for group in page["AutoScalingGroups"]
    }
    for name, group in groups.items():
        detail = f"{len(group.get('Instances', []))} instance(s), desired {group['DesiredCapacity']}"
        yield Found(resource_id=name, detail=detail)


def load_balancers(scope: Scope) -> Iterator[Found]:
    """Application, network and gateway load balancers."""
    balancers = {
        item["LoadBalancerArn"]: item
        for page in scope.pages("elbv2", "describe_load_balancers")
        for item in page["LoadBalancers"]
    }
    in_vpc = {arn for arn, item in balancers.items() if item.get("VpcId") in scope.vpc_ids}
    tagged = _tagged(scope, "elbv2", "ResourceArns", "ResourceArn", balancers)
    for arn in sorted(in_vpc | tagged):
        detail = f"{balancers[arn]['Type']} {balancers[arn]['LoadBalancerName']}"
        yield Found(resource_id=arn, detail=detail, usd_per_day=_load_balancer_usd(scope))


def classic_load_balancers(scope: Scope) -> Iterator[Found]:
    """What a Service of type LoadBalancer makes where no controller of AWS runs."""
    balancers = {
        item["LoadBalancerName"]: item
        for page in scope.pages("elb", "describe_load_balancers")
        for item in page["LoadBalancerDescriptions"]
    }
    in_vpc = {name for name, item in balancers.items() if item.get("VPCId") in scope.vpc_ids}
    for name in sorted(in_vpc | _tagged(scope, "elb", "LoadBalancerNames", "LoadBalancerName", balancers)):
        yield Found(resource_id=name, usd_per_day=_load_balancer_usd(scope))


def log_groups(scope: Scope) -> Iterator[Found]:
    # EKS's own goes; the other is of an agent that a user has put into the cluster.
    for prefix, kept in (
        (f"/aws/eks/{scope.cluster_name}/", False),
        (f"/aws/containerinsights/{scope.cluster_name}/", True),
    ):
        for page in scope.pages("logs", "describe_log_groups", logGroupNamePrefix=prefix):
            for group in page["logGroups"]:
                stored = int(group.get("storedBytes", 0))
                usd = prices.log_storage(scope.catalogue, stored)
                yield Found(resource_id=group["logGroupName"], detail=f"{stored} bytes", usd_per_day=usd, kept=kept)


def roles(scope: Scope) -> Iterator[Found]:
    names = [role["RoleName"] for page in scope.pages("iam", "list_roles") for role in page["Roles"]]
    for name in names:
        if name.startswith(_ROLE_PREFIX) and scope.owns(_role_tags(scope, name)):
            yield Found(resource_id=name)


def _role_tags(scope: Scope, name: str) -> list[Mapping[str, str]]:
    return [tag for page in scope.pages("iam", "list_role_tags", RoleName=name) for tag in page["Tags"]]


def _tagged(scope: Scope, service: str, names_parameter: str, name_key: str, names: Iterable[str]) -> set[str]:
    return {
        described[name_key]
        for chunk in _chunks(names)
        for page in scope.pages(service, "describe_tags", **{names_parameter: chunk})
        for described in page["TagDescriptions"]
        if scope.owns(described["Tags"])
    }


def _load_balancer_usd(scope: Scope) -> Decimal:
    return prices.per_hour(scope.catalogue, "load_balancer_usd_per_hour")


def _chunks(names: Iterable[str]) -> Iterator[Sequence[str]]:
    """Tags of load balancers are told for 20 at a time."""
    left = iter(names)
    while chunk := list(islice(left, _LOAD_BALANCERS_A_CALL)):
        yield chunk
