"""What EC2 makes that moto makes otherwise: each line was a change that the AWS provider saw in an unchanged stack."""

from __future__ import annotations

from typing import Any


def test_a_nat_gateway_in_a_subnet_is_zonal_and_its_first_address_is_primary(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    vpc_id = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet_id = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    ec2.create_nat_gateway(SubnetId=subnet_id, AllocationId=address)
    [gateway] = ec2.describe_nat_gateways()["NatGateways"]
    assert gateway["AvailabilityMode"] == "zonal"
    [primary] = gateway["NatGatewayAddresses"]
    assert (primary["AllocationId"], primary["IsPrimary"]) == (address, True)


def test_a_subnet_gives_no_public_addresses_unless_it_is_told_to(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    vpc_id = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.9.0.0/24")["Subnet"]
    [seen] = ec2.describe_subnets(SubnetIds=[subnet["SubnetId"]])["Subnets"]
    assert (seen["DefaultForAz"], seen["MapPublicIpOnLaunch"]) == (False, False)


def test_the_tags_of_a_launch_template_are_not_in_its_data(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    tags = {"ResourceType": "launch-template", "Tags": [{"Key": "team", "Value": "a"}]}
    launched = {"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "b"}]}
    made = ec2.create_launch_template(
        LaunchTemplateName="t", LaunchTemplateData={"TagSpecifications": [launched]}, TagSpecifications=[tags]
    )["LaunchTemplate"]
    [version] = ec2.describe_launch_template_versions(LaunchTemplateId=made["LaunchTemplateId"])[
        "LaunchTemplateVersions"
    ]
    assert version["LaunchTemplateData"]["TagSpecifications"] == [launched]
    [template] = ec2.describe_launch_templates(LaunchTemplateIds=[made["LaunchTemplateId"]])["LaunchTemplates"]
    assert template["Tags"] == tags["Tags"]
