"""The sweep finds each kind of left-over, nothing of anybody else, and takes silence for no proof."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from automation.cleanup.sweep import sweep
from automation.errors import AwsUnreachable, CredentialsMissing
from automation.ledger.record import Residual
from automation.target import Target
from tests.unit.cleanup.account import LEFT, OTHER, ROLE, SESSION, Cloud, a_cluster, a_nat_gateway, an_instance


def look(target: Target) -> tuple[Residual, ...]:
    return sweep(target, SESSION, SESSION)


@pytest.mark.parametrize("kind", LEFT)
def test_each_kind_of_left_over_is_found(target: Target, kind: str) -> None:
    LEFT[kind](Cloud(target, SESSION))
    found = look(target)
    # Some bring others along: a VPC its groups, an instance its volume.
    assert kind in {residual.kind for residual in found}
    assert all(residual.resource_id and residual.region == "us-west-2" for residual in found)


def test_what_belongs_to_another_session_is_not_ours(target: Target) -> None:
    for make in LEFT.values():
        make(Cloud(target, OTHER))
    assert look(target) == ()


def test_an_untouched_account_is_empty(target: Target) -> None:
    assert look(target) == ()


def test_everything_in_the_sessions_vpc_is_found_without_a_tag(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    vpc_id = cloud.vpc()
    subnet = cloud.subnet(vpc_id)
    cloud.ec2.create_security_group(GroupName="by hand", Description="-", VpcId=vpc_id)
    cloud.ec2.create_network_interface(SubnetId=subnet)
    cloud.ec2.create_nat_gateway(SubnetId=subnet, ConnectivityType="private")
    cloud.client("elbv2").create_load_balancer(
        Name="by-hand", Subnets=[subnet, cloud.subnet(vpc_id, "b", "10.9.1.0/24")]
    )
    found = {residual.kind for residual in look(target)}
    assert found >= {"vpc", "subnet", "security_group", "network_interface", "nat_gateway", "load_balancer"}


def test_a_node_group_is_found_with_its_cluster(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    a_cluster(cloud)
    cloud.client("eks").create_nodegroup(
        clusterName=SESSION, nodegroupName="gpu", nodeRole=ROLE, subnets=cloud.default_subnets()
    )
    assert f"{SESSION}/gpu" in {residual.resource_id for residual in look(target) if residual.kind == "eks_node_group"}


def test_what_has_ended_is_not_left(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    an_instance(cloud)
    a_nat_gateway(cloud)
    (reservation,) = cloud.ec2.describe_instances()["Reservations"]
    cloud.ec2.terminate_instances(InstanceIds=[reservation["Instances"][0]["InstanceId"]])
    (gateway,) = cloud.ec2.describe_nat_gateways()["NatGateways"]
    cloud.ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
    assert {residual.kind for residual in look(target)} <= {"ebs_volume"}


def test_a_left_over_says_what_it_costs_a_day(target: Target) -> None:
    for kind in ("nat_gateway", "eks_cluster", "public_ipv4", "ebs_volume", "launch_template"):
        LEFT[kind](Cloud(target, SESSION))
    assert {residual.kind: str(residual.usd_per_day) for residual in look(target)} == {
        "nat_gateway": "1.08",
        "eks_cluster": "2.40",
        "public_ipv4": "0.12",
        "ebs_volume": "1.92",
        "launch_template": "0.00",
    }


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (EndpointConnectionError(endpoint_url="https://ec2"), AwsUnreachable),
        (ClientError({"Error": {"Code": "RequestExpired", "Message": "expired"}}, "DescribeVpcs"), CredentialsMissing),
    ],
)
def test_a_sweep_that_nobody_answers_finds_nothing_out(
    target: Target, monkeypatch: pytest.MonkeyPatch, raised: Exception, told: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", fail)
    with pytest.raises(told):
        look(target)


def test_a_service_that_refuses_to_answer_is_a_finding(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, operation: str, parameters: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not allowed"}}, operation)

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", refuse)
    found = look(target)
    assert {residual.kind for residual in found} == {*LEFT, "eks_node_group"}
    assert all("could not look" in residual.detail and "AccessDenied" in residual.detail for residual in found)
    assert not any(residual.resource_id for residual in found)
    assert all("not known, could not look" in residual.told for residual in found)
