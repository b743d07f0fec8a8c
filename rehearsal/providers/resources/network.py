"""VPC, subnets, gateways, routes, addresses and endpoints."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.ec2 import Ec2Row, set_attributes
from rehearsal.providers.resources.row import Api, Field, Row, from_aws, pascal, to_aws


@dataclass(frozen=True, kw_only=True)
class _Vpc(Ec2Row):
    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        fields = [field for field in self.fields if field.name in changed]
        set_attributes(api, "modify_vpc_attribute", {"VpcId": resource_id}, fields, new)

    def shows(self, api: Api, resource_id: str, found: Properties) -> Properties:
        properties = super().shows(api, resource_id, found)
        for field in self.fields:
            if field.later:
                attribute = field.name
                answer = api("describe_vpc_attribute", VpcId=resource_id, Attribute=attribute)
                properties[attribute] = answer[field.aws]["Value"]
        own = [{"Name": "vpc-id", "Values": [resource_id]}]
        groups = api("describe_security_groups", Filters=[*own, {"Name": "group-name", "Values": ["default"]}])
        tables = api("describe_route_tables", Filters=[*own, {"Name": "association.main", "Values": ["true"]}])
        properties["defaultSecurityGroupId"] = next((one["GroupId"] for one in groups["SecurityGroups"]), None)
        main = next((one["RouteTableId"] for one in tables["RouteTables"]), None)
        return properties | {"mainRouteTableId": main, "defaultRouteTableId": main}


@dataclass(frozen=True, kw_only=True)
class _Subnet(Ec2Row):
    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        fields = [field for field in self.fields if field.name in changed]
        set_attributes(api, "modify_subnet_attribute", {"SubnetId": resource_id}, fields, new)


@dataclass(frozen=True, kw_only=True)
class _InternetGateway(Ec2Row):
    def create(self, api: Api, inputs: Properties) -> str:
        made = api("create_internet_gateway", **self.tagged(inputs))
        resource_id: str = made["InternetGateway"]["InternetGatewayId"]
        return resource_id

    def complete(self, api: Api, resource_id: str, inputs: Properties) -> None:
        api("attach_internet_gateway", InternetGatewayId=resource_id, VpcId=inputs["vpcId"])

    def shows(self, api: Api, resource_id: str, found: Properties) -> Properties:
        attached = [one["VpcId"] for one in found.get("Attachments", [])]
        return super().shows(api, resource_id, found | ({"VpcId": attached[0]} if attached else {}))

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        if "vpcId" in known:
            api("detach_internet_gateway", InternetGatewayId=resource_id, VpcId=known["vpcId"])
        api("delete_internet_gateway", InternetGatewayId=resource_id)


@dataclass(frozen=True, kw_only=True)
class _Eip(Ec2Row):
    def create(self, api: Api, inputs: Properties) -> str:
        allocation_id: str = api("allocate_address", Domain=inputs.get("domain", "vpc"), **self.tagged(inputs))[
            "AllocationId"
        ]
        return allocation_id

    def find(self, api: Api, resource_id: str) -> Properties | None:
        found: list[Properties] = api("describe_addresses", AllocationIds=[resource_id])["Addresses"]
        return found[0] if found else None

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("release_address", AllocationId=resource_id)


@dataclass(frozen=True, kw_only=True)
class _NatGateway(Ec2Row):
    def shows(self, api: Api, resource_id: str, found: Properties) -> Properties:
        address = found["NatGatewayAddresses"][0] if found.get("NatGatewayAddresses") else {}
        return super().shows(api, resource_id, address | found)

    def find(self, api: Api, resource_id: str) -> Properties | None:
        found = api("describe_nat_gateways", NatGatewayIds=[resource_id])["NatGateways"]
        # EC2 goes on showing a deleted gateway for about an hour.
        return next((one for one in found if one["State"] not in ("deleting", "deleted")), None)


@dataclass(frozen=True, kw_only=True)
class _VpcEndpoint(Ec2Row):
    def find(self, api: Api, resource_id: str) -> Properties | None:
        found = api("describe_vpc_endpoints", VpcEndpointIds=[resource_id])["VpcEndpoints"]
        return next((one for one in found if one["State"].lower() not in ("deleting", "deleted")), None)

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        shown = (self.find(api, resource_id) or {}).get("RouteTableIds", [])
        wanted = new.get("routeTableIds", [])
        api(
            "modify_vpc_endpoint",
            VpcEndpointId=resource_id,
            AddRouteTableIds=[one for one in wanted if one not in shown],
            RemoveRouteTableIds=[one for one in shown if one not in wanted],
        )

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_vpc_endpoints", VpcEndpointIds=[resource_id])


@dataclass(frozen=True, kw_only=True)
class _Route(Row):
    """A route has no id of its own: it is the entry for one destination in one table."""

    def create(self, api: Api, inputs: Properties) -> str:
        api("create_route", **to_aws(self.fields, inputs))
        destination = inputs["destinationCidrBlock"]
        # The id that the Terraform provider makes up, and that pulumi-aws therefore shows.
        return f"r-{inputs['routeTableId']}{zlib.crc32(destination.encode())}"

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        tables = api("describe_route_tables", RouteTableIds=[known["routeTableId"]])["RouteTables"]
        routes = [route for table in tables for route in table["Routes"]]
        mine = [route for route in routes if route.get("DestinationCidrBlock") == known["destinationCidrBlock"]]
        if not mine:
            return None
        return from_aws((*self.fields, *self.shown), mine[0]) | {"routeTableId": known["routeTableId"]}

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api(
            "delete_route",
            RouteTableId=known["routeTableId"],
            DestinationCidrBlock=known["destinationCidrBlock"],
        )

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        api("replace_route", **to_aws(self.fields, new))


@dataclass(frozen=True, kw_only=True)
class _RouteTableAssociation(Row):
    def create(self, api: Api, inputs: Properties) -> str:
        association_id: str = api("associate_route_table", **to_aws(self.fields, inputs))["AssociationId"]
        return association_id

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        named = [{"Name": "association.route-table-association-id", "Values": [resource_id]}]
        tables = api("describe_route_tables", Filters=named)["RouteTables"]
        associations = [one for table in tables for one in table["Associations"]]
        mine = [one for one in associations if one["RouteTableAssociationId"] == resource_id]
        return from_aws(self.fields, mine[0]) if mine else None

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("disassociate_route_table", AssociationId=resource_id)


ROWS: tuple[Row, ...] = (
    _Vpc(
        token="aws:ec2/vpc:Vpc",
        noun="Vpc",
        tag_type="vpc",
        verb_noun="vpc",
        fields=(
            pascal("cidrBlock", replaces=True),
            pascal("instanceTenancy", replaces=True),
            pascal("enableDnsSupport", later=True),
            pascal("enableDnsHostnames", later=True),
        ),
        shown=(pascal("ownerId"), pascal("dhcpOptionsId")),
        computed=("defaultSecurityGroupId", "mainRouteTableId", "defaultRouteTableId"),
    ),
    _Subnet(
        token="aws:ec2/subnet:Subnet",
        noun="Subnet",
        tag_type="subnet",
        verb_noun="subnet",
        fields=(
            pascal("vpcId", replaces=True),
            pascal("cidrBlock", replaces=True),
            pascal("availabilityZone", replaces=True),
            pascal("availabilityZoneId", replaces=True),
            pascal("mapPublicIpOnLaunch", later=True),
        ),
        shown=(pascal("ownerId"),),
    ),
    _InternetGateway(
        token="aws:ec2/internetGateway:InternetGateway",
        noun="InternetGateway",
        tag_type="internet-gateway",
        verb_noun="internet_gateway",
        fields=(pascal("vpcId", replaces=True),),
        shown=(pascal("ownerId"),),
    ),
    Ec2Row(
        token="aws:ec2/routeTable:RouteTable",
        noun="RouteTable",
        tag_type="route-table",
        verb_noun="route_table",
        fields=(pascal("vpcId", replaces=True),),
        shown=(pascal("ownerId"),),
    ),
    _Route(
        token="aws:ec2/route:Route",
        service="ec2",
        fields=(
            pascal("routeTableId", replaces=True),
            pascal("destinationCidrBlock", replaces=True),
            pascal("gatewayId"),
            pascal("natGatewayId"),
        ),
        shown=(pascal("origin"), pascal("state")),
        taggable=False,
    ),
    _RouteTableAssociation(
        token="aws:ec2/routeTableAssociation:RouteTableAssociation",
        service="ec2",
        fields=(pascal("routeTableId", replaces=True), pascal("subnetId", replaces=True)),
        taggable=False,
        delete_first=True,
    ),
    _Eip(
        token="aws:ec2/eip:Eip",
        noun="Address",
        tag_type="elastic-ip",
        verb_noun="address",
        id_key="AllocationId",
        arn=False,
        fields=(pascal("domain", replaces=True),),
        shown=(pascal("publicIp"), pascal("allocationId")),
    ),
    _NatGateway(
        token="aws:ec2/natGateway:NatGateway",
        noun="NatGateway",
        tag_type="natgateway",
        verb_noun="nat_gateway",
        arn=False,
        fields=(
            pascal("subnetId", replaces=True),
            pascal("allocationId", replaces=True),
            pascal("connectivityType", replaces=True),
        ),
        shown=(pascal("publicIp"), Field(name="privateIp", aws="PrivateIp"), pascal("networkInterfaceId")),
        create_delay="nat_gateway_create",
        delete_delay="nat_gateway_delete",
    ),
    _VpcEndpoint(
        token="aws:ec2/vpcEndpoint:VpcEndpoint",
        noun="VpcEndpoint",
        tag_type="vpc-endpoint",
        verb_noun="vpc_endpoint",
        fields=(
            pascal("vpcId", replaces=True),
            pascal("serviceName", replaces=True),
            pascal("vpcEndpointType", replaces=True),
            pascal("routeTableIds"),
        ),
        shown=(pascal("ownerId"), pascal("state")),
    ),
)
