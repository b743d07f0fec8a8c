"""A few resources with the real engine: what changes, what is refused, what stays secret."""

from __future__ import annotations

import json
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


def provider(**config: Any) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=aws.Provider("aws", region="us-west-2", **config))


def changes(summary: automation.UpdateSummary) -> dict[str, int]:
    return {str(getattr(kind, "value", kind)): count for kind, count in (summary.resource_changes or {}).items()}


def network() -> None:
    own = provider(default_tags={"tags": {"team": "blue"}})
    vpc = aws.ec2.Vpc("v", cidr_block=CIDR, enable_dns_hostnames=True, opts=own)
    group = aws.ec2.SecurityGroup("g", vpc_id=vpc.id, opts=own)
    for name, protocol, port in (("self", "-1", None), ("web", "tcp", 80)):
        aws.vpc.SecurityGroupIngressRule(
            name,
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol=protocol,
            from_port=port,
            to_port=port,
            opts=own,
        )
    pulumi.export("group", group.id)
    pulumi.export("name", group.name)
    pulumi.export("tags", group.tags_all)


def test_a_rule_deleted_behind_the_engines_back_is_found_and_put_back(place: Any) -> None:
    stack = place.stack(network)
    group = stack.up().outputs["group"].value
    ec2 = place.client("ec2")
    mine = [{"Name": "group-id", "Values": [group]}]
    rules = ec2.describe_security_group_rules(Filters=mine)["SecurityGroupRules"]
    web = next(rule for rule in rules if rule.get("FromPort") == 80)
    ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=[web["SecurityGroupRuleId"]])

    assert changes(stack.refresh().summary) == {"same": 5, "delete": 1}
    assert changes(stack.up().summary) == {"same": 5, "create": 1}
    assert len(ec2.describe_security_group_rules(Filters=mine)["SecurityGroupRules"]) == len(rules)
    assert changes(stack.refresh().summary) == {"same": 6}


def test_a_change_behind_the_engines_back_is_shown_and_undone(place: Any) -> None:
    stack = place.stack(network)
    stack.up()
    ec2 = place.client("ec2")
    vpc = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": [CIDR]}])["Vpcs"][0]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": False})
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "stranger", "Value": "yes"}])

    assert changes(stack.refresh().summary) == {"same": 5, "update": 1}
    assert changes(stack.up().summary) == {"same": 5, "update": 1}
    assert ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]
    assert ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Tags"] == [{"Key": "team", "Value": "blue"}]


def test_a_resource_in_aws_is_what_the_program_says_and_no_more(place: Any) -> None:
    stack = place.stack(network)
    outputs = stack.up().outputs
    shown = place.client("ec2").describe_security_groups(GroupIds=[outputs["group"].value])["SecurityGroups"][0]
    # The provider's default tags, a name of its own, and no rule that EC2 would add by itself.
    assert outputs["tags"].value == {"team": "blue"}
    assert shown["Tags"] == [{"Key": "team", "Value": "blue"}]
    assert outputs["name"].value.startswith("g-")
    assert shown["GroupName"] == outputs["name"].value
    assert shown["IpPermissionsEgress"] == []
    assert stack.up().outputs["name"].value == outputs["name"].value

    # The call log tells Pulumi's calls from those of another hand.
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


def unknown_input() -> None:
    aws.ec2.Vpc("v", cidr_block=CIDR, ipv4_netmask_length=16, opts=provider())


def unknown_function() -> None:
    own = provider()
    aws.ec2.get_vpc(id="vpc-1", opts=pulumi.InvokeOptions(provider=own.provider))


def no_region() -> None:
    aws.ec2.Vpc("v", cidr_block=CIDR, opts=pulumi.ResourceOptions(provider=aws.Provider("aws")))


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (unknown_type, "aws:s3/bucket:Bucket is not simulated: add a row for it in rehearsal/providers/resources/"),
        (unknown_input, "aws:ec2/vpc:Vpc has no simulated input ipv4NetmaskLength"),
        (unknown_function, "aws:ec2/getVpc:getVpc is not simulated: add a row to rehearsal/providers/functions.py"),
        (no_region, "the aws provider needs a region"),
    ],
)
def test_what_is_not_simulated_is_refused_in_a_sentence_that_names_the_place(
    place: Any, program: Any, sentence: str
) -> None:
    with pytest.raises(automation.CommandError, match=sentence):
        place.stack(program).up()


def test_what_aws_refuses_is_told_in_its_own_words(place: Any) -> None:
    def wrong_address() -> None:
        aws.ec2.Vpc("v", cidr_block="10.0.0.0/8", opts=provider())

    with pytest.raises(automation.CommandError, match=r"InvalidVpc.Range.*when calling the CreateVpc operation"):
        place.stack(wrong_address).up()


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


def test_a_deletion_that_aws_refuses_says_why_and_works_once_it_is_possible(place: Any) -> None:
    stack = place.stack(lone_vpc)
    vpc = stack.up().outputs["vpc"].value
    ec2 = place.client("ec2")
    stranger = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.9.0/24")["Subnet"]["SubnetId"]
    with pytest.raises(automation.CommandError, match="DependencyViolation"):
        stack.destroy()
    ec2.delete_subnet(SubnetId=stranger)
    stack.destroy()
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
