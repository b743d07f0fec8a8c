"""What a killed engine was making when it ended, found in AWS and put into the stack's state.

An engine that is killed has asked AWS for things that no state knows. The next `up` would ask again: AWS refuses a
second cluster or log group of the same name, for the rest of a paid block, and a second VPC would be left behind. So
what AWS has of the pending creations is adopted here, by its name or by the session's tag; what has no id that could be
told, as a route, is taken back and made anew. The rest can be asked for a second time without harm.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import WaiterError

from automation.aws_errors import aws_errors
from automation.errors import AwsSaysNo
from automation.target import Target
from components.names import SESSION_TAG

Inputs = Mapping[str, Any]

_NOT_THERE = frozenset(
    {
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidRoute.NotFound",
        "InvalidRouteTableID.NotFound",
        "NoSuchEntity",
        "NoSuchEntityException",
        "ResourceNotFoundException",
    }
)


# EKS does nothing more with it by itself.
_FAILED = frozenset({"FAILED", "CREATE_FAILED", "DELETE_FAILED"})


def adopt(target: Target, session: str, deployment: Mapping[str, Any]) -> dict[str, Any]:
    """The deployment (as `pulumi stack export` gives it) with those of its pending creations as resources that AWS has.

    Waits until a cluster, node group, add-on or NAT gateway that is still being made is ready, and deletes one of EKS's
    that failed. Raises as `aws_errors`.
    """
    resources = list(deployment.get("resources", []))
    claimed = {resource["id"] for resource in resources if resource.get("id")}
    pending = []
    for operation in deployment.get("pending_operations", []):
        resource = operation["resource"]
        found = _found(target, session, resource, claimed) if operation["type"] == "creating" else None
        if found is None:
            pending.append(operation)
        else:
            claimed.add(found)
            resources.append({**resource, "id": found})
    return {**deployment, "resources": resources, "pending_operations": pending}


def _found(target: Target, session: str, resource: Mapping[str, Any], claimed: Collection[str]) -> str | None:
    """The id of a resource as its provider gives it; None when AWS has none, or nobody here knows how to find it."""
    kind, inputs = resource["type"], resource.get("inputs", {})
    try:
        with aws_errors(f"looking for the {kind} that a killed engine was making"):
            if kind in _BY_NAME:
                return _BY_NAME[kind](target, inputs)
            if kind in _BY_TAG:
                ids = _by_tag(target, session, _BY_TAG[kind], inputs)
                return next((each for each in ids if each not in claimed), None)
            if kind in TAKEN_BACK:
                TAKEN_BACK[kind](target, inputs)
    except AwsSaysNo as error:
        if error.code not in _NOT_THERE:
            raise
    return None


def _cluster(target: Target, inputs: Inputs) -> str | None:
    name = str(inputs["name"])
    return name if _settled(target.client("eks"), "cluster", name=name) else None


def _node_group(target: Target, inputs: Inputs) -> str | None:
    cluster, name = str(inputs["clusterName"]), str(inputs["nodeGroupName"])
    made = _settled(target.client("eks"), "nodegroup", clusterName=cluster, nodegroupName=name)
    return f"{cluster}:{name}" if made else None


def _addon(target: Target, inputs: Inputs) -> str | None:
    cluster, name = str(inputs["clusterName"]), str(inputs["addonName"])
    made = _settled(target.client("eks"), "addon", clusterName=cluster, addonName=name)
    return f"{cluster}:{name}" if made else None


def _settled(eks: Any, kind: str, **which: str) -> bool:
    """Wait until EKS has made it. What EKS failed to make is deleted: with its name taken it could not be made anew,
    and adopted it would stay as it is."""
    getattr(eks, f"describe_{kind}")(**which)
    try:
        eks.get_waiter(f"{kind}_active").wait(**which)
    except WaiterError as error:
        shown: Any = error.last_response
        status = shown.get(kind, {}).get("status")
        if status in _FAILED:
            getattr(eks, f"delete_{kind}")(**which)
            eks.get_waiter(f"{kind}_deleted").wait(**which)
            return False
        # An add-on is that, for one reason, as long as it has no node to run on.
        if status != "DEGRADED":
            raise
    return True


def _log_group(target: Target, inputs: Inputs) -> str | None:
    name = str(inputs["name"])
    listed = target.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return name if name in {group["logGroupName"] for group in listed} else None


def _role(target: Target, inputs: Inputs) -> str:
    return target.client("iam").get_role(RoleName=inputs["name"])["Role"]["RoleName"]


def _role_policy(target: Target, inputs: Inputs) -> str:
    role, name = str(inputs["role"]), str(inputs["name"])
    target.client("iam").get_role_policy(RoleName=role, PolicyName=name)
    return f"{role}:{name}"


def _launch_template(target: Target, inputs: Inputs) -> str | None:
    found = target.client("ec2").describe_launch_templates(LaunchTemplateNames=[inputs["name"]])["LaunchTemplates"]
    return found[0]["LaunchTemplateId"] if found else None


def _nat_gateway(target: Target, inputs: Inputs) -> str | None:
    ec2 = target.client("ec2")
    found = ec2.describe_nat_gateways(
        Filters=[
            {"Name": "subnet-id", "Values": [inputs["subnetId"]]},
            {"Name": "state", "Values": ["pending", "available"]},
        ]
    )["NatGateways"]
    if not found:
        return None
    ec2.get_waiter("nat_gateway_available").wait(NatGatewayIds=[found[0]["NatGatewayId"]])
    return found[0]["NatGatewayId"]


_BY_NAME: Mapping[str, Callable[[Target, Inputs], str | None]] = {
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:ec2/launchTemplate:LaunchTemplate": _launch_template,
    "aws:ec2/natGateway:NatGateway": _nat_gateway,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:iam/role:Role": _role,
    "aws:iam/rolePolicy:RolePolicy": _role_policy,
}


@dataclass(frozen=True, kw_only=True)
class _Tagged:
    """How EC2 lists a kind of resource, and by which input (Pulumi's name: EC2's name) two of a session differ."""

    operation: str
    key: str
    id_key: str
    differ_by: tuple[str, str] | None = None


# Where two of a session differ by nothing, as route tables do before they hold a route, one is as good as the other.
_BY_TAG: Mapping[str, _Tagged] = {
    "aws:ec2/eip:Eip": _Tagged(operation="describe_addresses", key="Addresses", id_key="AllocationId"),
    "aws:ec2/internetGateway:InternetGateway": _Tagged(
        operation="describe_internet_gateways", key="InternetGateways", id_key="InternetGatewayId"
    ),
    "aws:ec2/routeTable:RouteTable": _Tagged(
        operation="describe_route_tables", key="RouteTables", id_key="RouteTableId"
    ),
    "aws:ec2/subnet:Subnet": _Tagged(
        operation="describe_subnets", key="Subnets", id_key="SubnetId", differ_by=("cidrBlock", "CidrBlock")
    ),
    "aws:ec2/vpc:Vpc": _Tagged(operation="describe_vpcs", key="Vpcs", id_key="VpcId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _Tagged(
        operation="describe_vpc_endpoints", key="VpcEndpoints", id_key="VpcEndpointId"
    ),
}


KINDS = frozenset({*_BY_NAME, *_BY_TAG})
"""The types, in Pulumi's words, that can be adopted."""


def _take_back_route(target: Target, inputs: Inputs) -> None:
    target.client("ec2").delete_route(
        RouteTableId=inputs["routeTableId"], DestinationCidrBlock=inputs["destinationCidrBlock"]
    )


def _take_back_route_table_association(target: Target, inputs: Inputs) -> None:
    ec2 = target.client("ec2")
    for table in ec2.describe_route_tables(RouteTableIds=[inputs["routeTableId"]])["RouteTables"]:
        for association in table.get("Associations", []):
            if association.get("SubnetId") == inputs["subnetId"]:
                ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])


def _take_back_pod_identity(target: Target, inputs: Inputs) -> None:
    eks, cluster = target.client("eks"), str(inputs["clusterName"])
    found = eks.list_pod_identity_associations(
        clusterName=cluster, namespace=inputs["namespace"], serviceAccount=inputs["serviceAccount"]
    )["associations"]
    for association in found:
        eks.delete_pod_identity_association(clusterName=cluster, associationId=association["associationId"])


# What is made within a moment, holds nothing, and has an id that only its provider can tell.
TAKEN_BACK: Mapping[str, Callable[[Target, Inputs], None]] = {
    "aws:ec2/route:Route": _take_back_route,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _take_back_route_table_association,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _take_back_pod_identity,
}


def _by_tag(target: Target, session: str, row: _Tagged, inputs: Inputs) -> Iterator[str]:
    list_them = getattr(target.client("ec2"), row.operation)
    for item in list_them(Filters=[{"Name": f"tag:{SESSION_TAG}", "Values": [session]}])[row.key]:
        if row.differ_by is None or inputs.get(row.differ_by[0]) == item[row.differ_by[1]]:
            yield str(item[row.id_key])
