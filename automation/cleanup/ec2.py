"""What is left in EC2 and VPC: one row for each kind of resource, all asked in the same way."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from planning.catalogue import Catalogue

from . import prices
from .scope import NOTHING, Found, Item, Scope


@dataclass(frozen=True, kw_only=True)
class Ec2Kind:
    """How one kind of EC2 resource is asked for: `vpc_filter` finds those of a VPC, `gone` are states that bill nothing
    and block nothing, `items` takes the resources out of one page of the answer. `kept` are those that may hold data
    of people: the session only found them in its place."""

    operation: str
    items: Callable[[Item], Iterable[Item]]
    id_key: str
    vpc_filter: str | None = "vpc-id"
    filters_parameter: str = "Filters"
    state: Callable[[Item], str] = lambda item: str(item.get("State", item.get("Status", "")))
    gone: frozenset[str] = frozenset({"deleted"})
    detail: Callable[[Item], str] = lambda item: ""
    usd_per_day: Callable[[Catalogue, Item], Decimal] = lambda catalogue, item: NOTHING
    skip: Callable[[Item], bool] = lambda item: False
    kept: Callable[[Scope, Item], bool] = lambda scope, item: False


def _key(name: str) -> Callable[[Item], Iterable[Item]]:
    return lambda page: page[name]


def _hourly(constant: str) -> Callable[[Catalogue, Item], Decimal]:
    return lambda catalogue, item: prices.per_hour(catalogue, constant)


def _instance_usd(catalogue: Catalogue, instance: Item) -> Decimal:
    if instance.get("InstanceLifecycle") == "capacity-block":
        return NOTHING
    return prices.per_hour(catalogue, f"{instance['InstanceType']}.on_demand_usd_per_hour")


def _tags(item: Item) -> Iterable[Mapping[str, str]]:
    tags: Iterable[Mapping[str, str]] = item.get("Tags", item.get("TagSet", ()))
    return tags


KINDS: Mapping[str, Ec2Kind] = {
    "ec2_instance": Ec2Kind(
        operation="describe_instances",
        items=lambda page: (item for reservation in page["Reservations"] for item in reservation["Instances"]),
        id_key="InstanceId",
        state=lambda item: str(item["State"]["Name"]),
        gone=frozenset({"terminated"}),
        detail=lambda item: str(item["InstanceType"]),
        usd_per_day=_instance_usd,
        # A machine that somebody has put into the session's VPC by hand; nodes bear the tags of their cluster.
        kept=lambda scope, item: not scope.owns(_tags(item)),
    ),
    "ebs_volume": Ec2Kind(
        operation="describe_volumes",
        items=_key("Volumes"),
        id_key="VolumeId",
        vpc_filter=None,
        detail=lambda item: f"{item['Size']} GiB",
        usd_per_day=lambda catalogue, item: prices.gp3(catalogue, Decimal(item["Size"])),
        # A persistent volume of a user's own: the storage class says whether it goes with its claim, and it has stayed.
        kept=lambda scope, item: not scope.made_by_the_stack(_tags(item)),
    ),
    "network_interface": Ec2Kind(
        operation="describe_network_interfaces",
        items=_key("NetworkInterfaces"),
        id_key="NetworkInterfaceId",
        detail=lambda item: str(item.get("Description", "")),
    ),
    "public_ipv4": Ec2Kind(
        operation="describe_addresses",
        items=_key("Addresses"),
        id_key="AllocationId",
        vpc_filter=None,
        detail=lambda item: str(item["PublicIp"]),
        usd_per_day=_hourly("public_ipv4_usd_per_hour"),
    ),
    "nat_gateway": Ec2Kind(
        operation="describe_nat_gateways",
        items=_key("NatGateways"),
        id_key="NatGatewayId",
        filters_parameter="Filter",
        usd_per_day=_hourly("nat_gateway_usd_per_started_hour"),
    ),
    "vpc_endpoint": Ec2Kind(
        operation="describe_vpc_endpoints",
        items=_key("VpcEndpoints"),
        id_key="VpcEndpointId",
        detail=lambda item: str(item["ServiceName"]),
    ),
    "launch_template": Ec2Kind(
        operation="describe_launch_templates",
        items=_key("LaunchTemplates"),
        id_key="LaunchTemplateId",
        vpc_filter=None,
        detail=lambda item: str(item["LaunchTemplateName"]),
    ),
    "security_group": Ec2Kind(
        operation="describe_security_groups",
        items=_key("SecurityGroups"),
        id_key="GroupId",
        detail=lambda item: str(item["GroupName"]),
        # Every VPC has one that cannot be deleted and goes with it.
        skip=lambda item: item["GroupName"] == "default",
    ),
    "subnet": Ec2Kind(operation="describe_subnets", items=_key("Subnets"), id_key="SubnetId"),
    "internet_gateway": Ec2Kind(
        operation="describe_internet_gateways",
        items=_key("InternetGateways"),
        id_key="InternetGatewayId",
        vpc_filter="attachment.vpc-id",
    ),
    "vpc": Ec2Kind(operation="describe_vpcs", items=_key("Vpcs"), id_key="VpcId"),
}


def left(scope: Scope, kind: str) -> Iterator[Found]:
    """What exists of a kind of KINDS: by each tag filter, and in the session's VPC."""
    row = KINDS[kind]
    found = {item[row.id_key]: item for item in _asked(scope, row) if row.state(item) not in row.gone}
    for resource_id, item in found.items():
        detail = " ".join(part for part in (row.detail(item), row.state(item)) if part)
        yield Found(
            resource_id=resource_id,
            detail=detail,
            usd_per_day=row.usd_per_day(scope.catalogue, item),
            kept=row.kept(scope, item),
        )


def _asked(scope: Scope, row: Ec2Kind) -> Iterator[Item]:
    for one in scope.tag_filters:
        # Looked at again here: a stand-in for EC2 may pass over a filter that it does not know.
        yield from (item for item in _listed(scope, row, one) if scope.owns(_tags(item)))
    if row.vpc_filter and scope.vpc_ids:
        yield from _listed(scope, row, {"Name": row.vpc_filter, "Values": list(scope.vpc_ids)})


def _listed(scope: Scope, row: Ec2Kind, one: Mapping[str, object]) -> Iterator[Item]:
    for page in scope.pages("ec2", row.operation, **{row.filters_parameter: [one]}):
        yield from (item for item in row.items(page) if not row.skip(item))
