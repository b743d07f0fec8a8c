"""What bills beside the block is written down by AWS's own times; nodes go up and down by their Auto Scaling group."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from automation.errors import AwsSaysNo, Refused
from automation.ledger.entries import UsageEnded, UsageStarted
from automation.session import billed
from automation.session.nodes import drain_nodes, raise_nodes
from automation.session.observation import GpuGroup, Instance, Unknown
from planning.costs import Usage

SESSION = "rtb-20261201-a1b2"
RESERVATION = "cr-0123456789abcdef0"
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
TAGS = [{"Key": "rent-the-block:session", "Value": SESSION}]


def usage(kind: Any, resource_id: str, *, detail: str = "", ended: datetime | None = None) -> Usage:
    started = NOW - timedelta(hours=1)
    return Usage(kind=kind, resource_id=resource_id, detail=detail, quantity=Decimal(1), started=started, ended=ended)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with mock_aws():
        yield boto3.Session(region_name="us-west-2")


def test_an_instance_in_another_reservation_of_the_account_is_not_the_blocks() -> None:
    ids = {"i-1": RESERVATION, "i-2": "cr-0fedcba9876543210", "i-3": None}
    stub = boto3.client("ec2", region_name="us-west-2", aws_access_key_id="k", aws_secret_access_key="s")
    with Stubber(stub) as stubber:
        listed = [
            {
                "InstanceId": instance_id,
                "InstanceType": "m7i.large",
                "State": {"Name": "running"},
                "LaunchTime": NOW,
                **({"CapacityReservationId": reservation} if reservation else {}),
            }
            for instance_id, reservation in ids.items()
        ]
        stubber.add_response("describe_instances", {"Reservations": [{"Instances": listed}]})
        seen = billed.instances(stub, SESSION, RESERVATION)
    assert [each.instance_id for each in seen if each.in_block] == ["i-1"]


def test_everything_of_the_session_that_bills_is_found_and_nothing_else(cloud: boto3.Session) -> None:
    ec2, eks = cloud.client("ec2"), cloud.client("eks")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    other = [{"Key": "rent-the-block:session", "Value": "rtb-another"}]
    for tags in (TAGS, other):
        address = ec2.allocate_address(TagSpecifications=[{"ResourceType": "elastic-ip", "Tags": tags}])
        ec2.create_nat_gateway(
            SubnetId=subnet,
            AllocationId=address["AllocationId"],
            TagSpecifications=[{"ResourceType": "natgateway", "Tags": tags}],
        )
        ec2.run_instances(
            ImageId="ami-12c6146b",
            InstanceType="m7i.large",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 20, "VolumeType": "gp3"}}],
        )
    role = "arn:aws:iam::123456789012:role/r"
    eks.create_cluster(name=SESSION, roleArn=role, resourcesVpcConfig={"subnetIds": [subnet]})
    seen = billed.instances(ec2, SESSION, RESERVATION)
    found, unseen = billed.look(ec2, eks, SESSION, NOW, seen)
    assert unseen == frozenset()
    assert sorted((each.kind, each.quantity) for each in found) == [
        ("ebs_gp3_gib", 20),
        ("ec2_instance", 1),
        ("eks_cluster", 1),
        ("nat_gateway", 1),
        ("public_ipv4", 1),
    ]
    instance = seen[0]
    ec2.terminate_instances(InstanceIds=[instance.instance_id])
    gone = billed.instances(ec2, SESSION, RESERVATION)[0]
    assert gone.state == "terminated"
    assert gone.ended is not None


def test_what_cannot_be_looked_at_is_said_and_not_taken_for_gone(
    cloud: boto3.Session, case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(ec2: object, session: str) -> Any:
        raise AwsSaysNo(happened="no", code="UnauthorizedOperation", remedy="")

    monkeypatch.setattr(billed, "_gateways", refuse)
    found, unseen = billed.look(cloud.client("ec2"), cloud.client("eks"), SESSION, NOW, None)
    assert unseen == {"nat_gateway", "ec2_instance", "ebs_gp3_gib"}
    blind = case.seeing(usage=found, unseen=unseen, instances=Unknown(reason="no")).with_record(
        usage=(usage("nat_gateway", "nat-1"), usage("ec2_instance", "i-1"))
    )
    assert billed.usage_entries(blind.observation, blind.record, NOW) == ()


def test_usage_is_written_down_once_when_seen_and_once_when_gone(case: Any) -> None:
    nat = usage("nat_gateway", "nat-1")
    first = billed.usage_entries(case.seeing(usage=(nat,)).observation, case.record, NOW)
    assert first == (UsageStarted(at=NOW, usage=nat),)
    known = case.with_record(usage=(nat,))
    assert billed.usage_entries(known.seeing(usage=(nat,)).observation, known.record, NOW) == ()
    assert billed.usage_entries(known.observation, known.record, NOW) == (
        UsageEnded(at=NOW, usage_kind="nat_gateway", resource_id="nat-1", ended=NOW),
    )


def test_an_instance_and_its_volume_end_when_aws_says_so(case: Any) -> None:
    at = NOW - timedelta(minutes=7)
    instance = Instance(
        instance_id="i-1", instance_type="m7i.large", state="terminated", launched=NOW, ended=at, in_block=False
    )
    known = case.with_record(usage=(usage("ec2_instance", "i-1"), usage("ebs_gp3_gib", "vol-1", detail="i-1")))
    seen = known.seeing(instances=(instance,), usage=(usage("ec2_instance", "i-1", ended=at),))
    ended = billed.usage_entries(seen.observation, seen.record, NOW)
    assert [(entry.resource_id, entry.ended) for entry in ended if isinstance(entry, UsageEnded)] == [
        ("i-1", at),
        ("vol-1", at),
    ]


def test_an_instance_of_the_block_is_in_its_fee(cloud: boto3.Session) -> None:
    gpu = Instance(
        instance_id="i-1", instance_type="p6-b300.48xlarge", state="running", launched=NOW, ended=None, in_block=True
    )
    found, _ = billed.look(cloud.client("ec2"), cloud.client("eks"), SESSION, NOW, (gpu,))
    assert found == ()


class Scaling:
    """Records what the group was told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, object]]] = []

    def client(self, service: str) -> "Scaling":
        assert service == "autoscaling"
        return self

    def set_desired_capacity(self, **given: object) -> None:
        self.said.append(("set_desired_capacity", given))

    def resume_processes(self, **given: object) -> None:
        self.said.append(("resume_processes", given))


def test_nodes_go_up_and_down_by_the_size_of_their_group_alone(case: Any, group: Callable[[int], GpuGroup]) -> None:
    scaling: Any = Scaling()
    raise_nodes(scaling, case.plan, group(0), case.plan.moments.start)
    drain_nodes(scaling, group(1))
    assert scaling.said == [
        ("set_desired_capacity", {"AutoScalingGroupName": "eks-gpu", "DesiredCapacity": size, "HonorCooldown": False})
        for size in (1, 0)
    ]


def test_a_suspended_group_is_woken_first(case: Any, group: Callable[[int], GpuGroup]) -> None:
    scaling: Any = Scaling()
    raise_nodes(scaling, case.plan, replace(group(0), suspended=("Launch",)), case.plan.moments.start)
    assert [name for name, _ in scaling.said] == ["resume_processes", "set_desired_capacity"]


@pytest.mark.parametrize("moment", ["prepare_by", "drain", "end"])
def test_raising_nodes_outside_the_paid_time_is_refused_whoever_asks(
    case: Any, group: Callable[[int], GpuGroup], moment: str
) -> None:
    scaling: Any = Scaling()
    with pytest.raises(Refused):
        raise_nodes(scaling, case.plan, group(0), getattr(case.plan.moments, moment))
    assert scaling.said == []
