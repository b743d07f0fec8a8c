"""The server: virtual dates, the call log, deletions that AWS refuses, and the same story for the same seed."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_each_answer_is_dated_with_virtual_time(cloud: Any) -> None:
    for service, ask in (("sts", "get_caller_identity"), ("ec2", "describe_vpcs"), ("eks", "list_clusters")):
        cloud.world.jump(timedelta(hours=7, seconds=1))
        headers = getattr(cloud.client(service), ask)()["ResponseMetadata"]["HTTPHeaders"]
        assert parsedate_to_datetime(headers["date"]) == cloud.world.now


def test_everything_is_stamped_with_virtual_time(cloud: Any) -> None:
    cloud.world.jump(timedelta(days=40))
    now = cloud.world.now
    network = cloud.network()
    nat = network.ec2.describe_nat_gateways()["NatGateways"][0]
    template_id = network.template()
    template = network.ec2.describe_launch_templates(LaunchTemplateIds=[template_id])["LaunchTemplates"][0]
    role = cloud.client("iam").get_role(RoleName="nodes")["Role"]
    logs = cloud.client("logs")
    logs.create_log_group(logGroupName="g")
    created = logs.describe_log_groups()["logGroups"][0]["creationTime"]
    assert (nat["CreateTime"], template["CreateTime"], role["CreateDate"]) == (now, now, now)
    assert created == int(now.timestamp() * 1000)


def test_the_call_log_tells_changes_from_questions_and_who_asked(cloud: Any) -> None:
    cloud.client("ec2", agent="rentblock").describe_vpcs()
    cloud.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")
    with pytest.raises(ClientError):
        cloud.client("eks", agent="curl").delete_cluster(name="none")
    told = [
        (call.principal, call.service, call.action, call.mutating, call.changed_something) for call in cloud.aws.calls
    ]
    assert told == [
        ("session", "ec2", "DescribeVpcs", False, False),
        ("pulumi", "ec2", "CreateVpc", True, True),
        ("other", "eks", "DeleteCluster", True, False),
    ]
    assert cloud.aws.calls[1].parameters["CidrBlock"] == "10.0.0.0/16"
    assert [entry.facts for entry in cloud.world.story] == [{"service": "ec2", "action": "CreateVpc"}]


def test_a_dry_run_changes_nothing(cloud: Any) -> None:
    with pytest.raises(ClientError) as error:
        cloud.client("ec2").allocate_address(Domain="vpc", DryRun=True)
    assert code_of(error) == "DryRunOperation"
    assert not cloud.aws.calls[0].mutating


def test_an_operation_that_is_not_simulated_is_named_in_an_error_that_clients_can_read(cloud: Any) -> None:
    with pytest.raises(ClientError, match="does not know ec2:DescribeCapacityBlockExtensionOfferings") as error:
        cloud.client("ec2").describe_capacity_block_extension_offerings(
            CapacityBlockExtensionDurationHours=24, CapacityReservationId="cr-0123456789abcdef0"
        )
    assert code_of(error) == "NotImplementedInRehearsal"


def test_managed_policies_exist(cloud: Any) -> None:
    iam = cloud.client("iam")
    iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}")
    iam.attach_role_policy(RoleName="r", PolicyArn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
    assert len(iam.list_attached_role_policies(RoleName="r")["AttachedPolicies"]) == 1


def test_a_network_cannot_be_deleted_while_something_is_in_it(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    ec2 = network.ec2
    refused: list[Callable[[], Any]] = [
        lambda: ec2.delete_vpc(VpcId=network.vpc_id),
        lambda: ec2.delete_subnet(SubnetId=network.private),
        lambda: ec2.delete_subnet(SubnetId=network.public),
        lambda: ec2.detach_internet_gateway(InternetGatewayId=network.gateway_id, VpcId=network.vpc_id),
    ]
    for attempt in refused:
        with pytest.raises(ClientError) as error:
            attempt()
        assert code_of(error) == "DependencyViolation"
    with pytest.raises(ClientError) as error:
        ec2.release_address(AllocationId=network.allocation_id)
    assert code_of(error) == "InvalidIPAddress.InUse"
    network.destroy()
    assert {item.kind for item in cloud.aws.inventory()} == {"iam_role"}


def test_a_security_group_in_use_cannot_be_deleted(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    ec2 = network.ec2
    made = [
        ec2.create_security_group(GroupName=name, Description="d", VpcId=network.vpc_id)["GroupId"] for name in "ab"
    ]
    pair = {"GroupId": made[1]}
    ec2.authorize_security_group_ingress(
        GroupId=made[0],
        IpPermissions=[{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "UserIdGroupPairs": [pair]}],
    )
    with pytest.raises(ClientError) as error:
        ec2.delete_security_group(GroupId=made[1])
    assert code_of(error) == "DependencyViolation"
    ec2.delete_security_group(GroupId=made[0])
    ec2.delete_security_group(GroupId=made[1])
    own = network.eks.describe_cluster(name="c")["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"]
    with pytest.raises(ClientError) as error:
        ec2.delete_security_group(GroupId=own)
    assert code_of(error) == "DependencyViolation"


def test_one_seed_tells_one_story_and_another_seed_another(new_cloud: Callable[..., Any]) -> None:
    def story(seed: int) -> tuple[str, ...]:
        cloud = new_cloud(seed=seed)
        cloud.serve_from_the_block()
        cloud.world.advance(cloud.end)
        lines: tuple[str, ...] = cloud.world.story_lines()
        return lines

    first = story(1)
    assert first == story(1)
    assert first != story(2)
    assert any("node group=gpu state=joined" in line for line in first)


def test_a_new_world_starts_empty_and_the_old_one_no_longer_listens(new_cloud: Callable[..., Any]) -> None:
    old = new_cloud()
    old.network()
    port = old.aws.port
    new = new_cloud()
    assert new.aws.inventory() == []
    with socket.socket() as probe:
        assert port == new.aws.port or probe.connect_ex(("127.0.0.1", port)) != 0
