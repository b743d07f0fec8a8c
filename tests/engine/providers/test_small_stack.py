"""A few resources with the real engine: what changes, what is refused, what stays secret."""

from __future__ import annotations

import json
import threading
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from pulumi import automation

pytestmark = [
    pytest.mark.engine,
    # Pulumi's SDK leaves the event loop of a program open when its operation has failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CIDR = "10.0.0.0/16"
ASSUME = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)


def provider(**config: Any) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=aws.Provider("aws", region="us-west-2", **config))


def changes(summary: automation.UpdateSummary) -> dict[str, int]:
    return {str(getattr(kind, "value", kind)): count for kind, count in (summary.resource_changes or {}).items()}


def network() -> None:
    own = provider(default_tags={"tags": {"team": "blue"}})
    vpc = aws.ec2.Vpc("v", cidr_block=CIDR, enable_dns_hostnames=True, opts=own)
    gateway = aws.ec2.InternetGateway("g", vpc_id=vpc.id, opts=own)
    table = aws.ec2.RouteTable("t", vpc_id=vpc.id, opts=own)
    aws.ec2.Route("r", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id, opts=own)
    role = aws.iam.Role("role", assume_role_policy=ASSUME, opts=own)
    pulumi.export("table", table.id)
    pulumi.export("role", role.name)
    pulumi.export("tags", vpc.tags_all)


def test_refresh_finds_a_deleted_route_and_up_creates_it_again(place: Any) -> None:
    stack = place.stack(network)
    table = stack.up().outputs["table"].value
    ec2 = place.client("ec2")
    ec2.delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")

    assert changes(stack.refresh().summary) == {"same": 6, "delete": 1}
    assert changes(stack.up().summary) == {"same": 6, "create": 1}
    routes = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
    assert "0.0.0.0/0" in [route["DestinationCidrBlock"] for route in routes]
    assert changes(stack.refresh().summary) == {"same": 7}


def test_refresh_shows_a_change_by_others_and_up_undoes_it(place: Any) -> None:
    stack = place.stack(network)
    stack.up()
    ec2 = place.client("ec2")
    vpc = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": [CIDR]}])["Vpcs"][0]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": False})
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "stranger", "Value": "yes"}])

    assert changes(stack.refresh().summary) == {"same": 6, "update": 1}
    assert changes(stack.up().summary) == {"same": 6, "update": 1}
    assert ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]
    assert ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Tags"] == [{"Key": "team", "Value": "blue"}]


def test_a_resource_has_the_default_tags_and_keeps_its_chosen_name(place: Any) -> None:
    stack = place.stack(network)
    outputs = stack.up().outputs
    role = outputs["role"].value
    assert outputs["tags"].value == {"team": "blue"}
    assert place.client("iam").get_role(RoleName=role)["Role"]["Tags"] == [{"Key": "team", "Value": "blue"}]
    assert role.startswith("role-")
    assert stack.up().outputs["role"].value == role


def test_the_call_log_tells_pulumi_from_other_callers(place: Any) -> None:
    place.stack(network).up()
    assert {call.principal for call in place.aws.calls if call.action == "CreateVpc"} == {"pulumi"}
    place.client("ec2").create_vpc(CidrBlock=CIDR)
    assert place.aws.calls[-1].principal != "pulumi"


def template(version: int, *, cidr: str = "10.0.0.0/24") -> None:
    own = provider()
    vpc = aws.ec2.Vpc("v", cidr_block=CIDR, opts=own)
    subnet = aws.ec2.Subnet("s", vpc_id=vpc.id, cidr_block=cidr, opts=own)
    made = aws.ec2.LaunchTemplate("t", instance_type="m7i.large", description=f"v{version}", opts=own)
    pulumi.export("version", made.latest_version)
    pulumi.export("subnet", subnet.id)


def test_a_changed_launch_template_has_a_new_version_in_the_same_update(place: Any) -> None:
    assert place.stack(lambda: template(1)).up().outputs["version"].value == 1
    result = place.stack(lambda: template(2)).up()
    assert changes(result.summary) == {"same": 4, "update": 1}
    assert result.outputs["version"].value == 2


def test_what_cannot_be_changed_is_replaced(place: Any) -> None:
    first = place.stack(lambda: template(1)).up().outputs["subnet"].value
    result = place.stack(lambda: template(1, cidr="10.0.1.0/24")).up()
    assert changes(result.summary) == {"same": 4, "replace": 1}
    subnets = place.client("ec2").describe_subnets(Filters=[{"Name": "cidr", "Values": ["10.0.*"]}])["Subnets"]
    assert [subnet["SubnetId"] for subnet in subnets] == [result.outputs["subnet"].value] != [first]


def unknown_type() -> None:
    aws.s3.Bucket("b", opts=provider())


def unknown_function() -> None:
    own = provider()
    aws.ec2.get_vpc(id="vpc-1", opts=pulumi.InvokeOptions(provider=own.provider))


def conflicting_inputs() -> None:
    aws.ec2.Vpc("v", cidr_block=CIDR, ipv4_netmask_length=16, opts=provider())


def impossible_cidr() -> None:
    aws.ec2.Vpc("v", cidr_block="10.0.0.0/8", opts=provider())


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (unknown_type, "aws:s3/bucket:Bucket"),
        (unknown_function, "aws:ec2/getVpc:getVpc"),
        (conflicting_inputs, "ipv4NetmaskLength"),
        (impossible_cidr, r"expected \"cidr_block\" to contain a network Value with between 16 and 28"),
    ],
)
def test_the_provider_refuses_a_wrong_program_and_names_what_is_wrong(place: Any, program: Any, sentence: str) -> None:
    with pytest.raises(automation.CommandError, match=sentence):
        place.stack(program).up()
    assert place.aws.inventory() == []


def secrets() -> None:
    own = provider()
    aws.ec2.Vpc("v", cidr_block=CIDR, tags=pulumi.Output.secret({"owner": "hush-tag"}), opts=own)
    aws.ec2.LaunchTemplate("t", user_data=pulumi.Output.secret("aHVzaC11c2VyLWRhdGE="), opts=own)


def test_a_secret_is_never_open_in_the_state_nor_what_is_derived_from_it(place: Any) -> None:
    stack = place.stack(secrets)
    stack.up()
    assert_closed(place)
    stack.refresh()
    assert_closed(place)
    assert set(changes(stack.up().summary)) == {"same"}


def assert_closed(place: Any) -> None:
    assert "hush-tag" not in place.state
    assert "aHVzaC11c2VyLWRhdGE=" not in place.state
    resources = json.loads(place.state)["checkpoint"]["latest"]["resources"]
    vpc = next(one["outputs"] for one in resources if one["type"] == "aws:ec2/vpc:Vpc")
    assert {"ciphertext"} <= vpc["tags"].keys() & vpc["tagsAll"].keys()


def lone_vpc() -> None:
    pulumi.export("vpc", aws.ec2.Vpc("v", cidr_block=CIDR, opts=provider()).id)


def test_destroy_retries_a_refused_deletion_until_it_is_possible(place: Any) -> None:
    stack = place.stack(lone_vpc)
    vpc = stack.up().outputs["vpc"].value
    ec2 = place.client("ec2")
    stranger = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.9.0/24")["Subnet"]["SubnetId"]
    leaving = threading.Timer(4, lambda: ec2.delete_subnet(SubnetId=stranger))
    leaving.start()
    stack.destroy()
    leaving.join()
    refused = [call for call in place.aws.calls if call.action == "DeleteVpc" and call.status >= 400]
    assert len(refused) > 1
    assert place.aws.inventory() == []


def test_what_is_gone_already_counts_as_deleted(place: Any) -> None:
    stack = place.stack(lone_vpc)
    place.client("ec2").delete_vpc(VpcId=stack.up().outputs["vpc"].value)
    assert changes(stack.destroy().summary) == {"delete": 3}


def test_a_provider_of_another_region_beside_the_first_keeps_to_its_region(place: Any) -> None:
    def two_regions() -> None:
        for region in ("us-west-2", "us-east-1"):
            own = pulumi.ResourceOptions(provider=aws.Provider(region, region=region))
            pulumi.export(region, aws.ec2.Vpc(f"v-{region}", cidr_block=CIDR, opts=own).arn)

    outputs = place.stack(two_regions).up().outputs
    assert {region: output.value.split(":")[3] for region, output in outputs.items()} == {
        "us-west-2": "us-west-2",
        "us-east-1": "us-east-1",
    }
