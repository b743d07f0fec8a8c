"""One look: whatever AWS and the cluster answer, or do not answer, becomes a value, and nothing is raised."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from automation.ledger.folder import SessionFolder, session_folder
from automation.ledger.journal import Journal
from automation.ledger.record import OperationRun
from automation.session.observation import GpuGroup, Unknown
from automation.session.observe import Observer
from automation.session.outputs import write_outputs
from automation.target import Target

RESERVATION = {"CapacityReservationId": "cr-0123456789abcdef0", "State": "active"}
NODE_GROUP = {"nodegroup": {"resources": {"autoScalingGroups": [{"name": "eks-gpu-1"}]}}}
GROUP = {
    "AutoScalingGroupName": "eks-gpu-1",
    "MinSize": 0,
    "MaxSize": 1,
    "DesiredCapacity": 1,
    "DefaultCooldown": 300,
    "AvailabilityZones": ["us-west-2b"],
    "HealthCheckType": "EC2",
}


class Cloud:
    """Clients whose next answers a test sets; they fail for what no test has foreseen."""

    def __init__(self) -> None:
        self.clients = {name: boto3.client(name, "us-west-2", **_KEYS) for name in ("ec2", "eks", "autoscaling")}
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        for stub in self.stubs.values():
            stub.activate()

    def answers(self, service: str, operation: str, answer: dict[str, Any]) -> None:
        self.stubs[service].add_response(operation, answer)

    def refuses(self, service: str, operation: str, code: str) -> None:
        self.stubs[service].add_client_error(operation, code, f"{code}, it says")

    def is_silent_on_what_bills(self) -> None:
        self.refuses("ec2", "describe_instances", "RequestLimitExceeded")
        self.refuses("eks", "describe_cluster", "ServerException")
        for operation in ("describe_nat_gateways", "describe_addresses"):
            self.refuses("ec2", operation, "RequestLimitExceeded")


_KEYS = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def folder(tmp_path: Path, record: Any) -> SessionFolder:
    folder = session_folder(tmp_path, record.session)
    folder.create()
    return folder


@pytest.fixture
def look(
    cloud: Cloud, case: Any, tmp_path: Path, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    monkeypatch.setattr(Target, "client", lambda self, service: cloud.clients[service])
    target = Target(
        mode="rehearsal",
        account_id="123456789012",
        region="us-west-2",
        boto_session=boto3.Session("k", "s"),
        endpoint_url=None,
        clock=None,  # type: ignore[arg-type]
        home=tmp_path,
        engine_environment={},
    )
    with Observer(target, folder, Journal(folder.journal)) as observer:
        yield lambda **more: observer.look(case.plan, case.with_record(**more).record, case.plan.moments.start)


@pytest.fixture
def up(case: Any) -> tuple[OperationRun, ...]:
    before = case.plan.moments.prepare_by
    run = OperationRun(number=1, name="up", pid=1, process_started=1.0, started=before, ended=before, exit_code=0)
    return (run,)


def test_before_anything_was_made_only_the_reservation_is_looked_at(cloud: Cloud, look: Any) -> None:
    cloud.answers("ec2", "describe_capacity_reservations", {"CapacityReservations": [RESERVATION]})
    seen = look()
    assert (seen.reservation_state, seen.group, seen.startup) == ("active", None, None)
    assert seen.reserved is None


def test_the_time_for_which_aws_holds_the_block_is_seen(cloud: Cloud, look: Any, case: Any) -> None:
    block = case.plan.block
    shown = {**RESERVATION, "StartDate": block.start, "EndDate": block.end + timedelta(days=1)}
    cloud.answers("ec2", "describe_capacity_reservations", {"CapacityReservations": [shown]})
    assert look().reserved == (block.start, block.end + timedelta(days=1))


def test_a_reservation_that_aws_does_not_show_is_unknown_and_not_over(cloud: Cloud, look: Any) -> None:
    cloud.refuses("ec2", "describe_capacity_reservations", "InvalidCapacityReservationId.NotFound")
    assert look().reservation_state == Unknown(reason="AWS shows no cr-0123456789abcdef0")
    cloud.refuses("ec2", "describe_capacity_reservations", "RequestLimitExceeded")
    assert isinstance(look().reservation_state, Unknown)


def test_an_aws_that_answers_nothing_is_a_look_without_knowledge(cloud: Cloud, look: Any, up: Any) -> None:
    cloud.refuses("ec2", "describe_capacity_reservations", "RequestLimitExceeded")
    cloud.is_silent_on_what_bills()
    cloud.refuses("eks", "describe_nodegroup", "ServerException")
    seen = look(operations=up)
    for piece in (seen.reservation_state, seen.instances, seen.group):
        assert isinstance(piece, Unknown)
    assert seen.unseen == {"ec2_instance", "ebs_gp3_gib", "nat_gateway", "public_ipv4", "eks_cluster"}


def test_a_node_group_that_is_not_there_is_none_and_its_processes_are_told(cloud: Cloud, look: Any, up: Any) -> None:
    cloud.answers("ec2", "describe_capacity_reservations", {"CapacityReservations": [RESERVATION]})
    cloud.is_silent_on_what_bills()
    cloud.refuses("eks", "describe_nodegroup", "ResourceNotFoundException")
    assert look(operations=up).group is None
    cloud.answers("ec2", "describe_capacity_reservations", {"CapacityReservations": [RESERVATION]})
    cloud.is_silent_on_what_bills()
    cloud.answers("eks", "describe_nodegroup", NODE_GROUP)
    suspended = [{"ProcessName": name} for name in ("Launch", "AZRebalance")]
    group = {**GROUP, "SuspendedProcesses": suspended, "CreatedTime": 1}
    cloud.answers("autoscaling", "describe_auto_scaling_groups", {"AutoScalingGroups": [group]})
    activity = {
        "ActivityId": "a",
        "AutoScalingGroupName": "eks-gpu-1",
        "Cause": "somebody",
        "StartTime": 1,
        "StatusCode": "Failed",
        "StatusMessage": "We currently do not have sufficient capacity",
    }
    cloud.answers("autoscaling", "describe_scaling_activities", {"Activities": [activity]})
    assert look(operations=up).group == GpuGroup(
        name="eks-gpu-1",
        desired=1,
        last_activity="We currently do not have sufficient capacity",
        failed=True,
        suspended=("Launch",),
    )


@pytest.mark.parametrize("content", ["{half", "[]", '{"cluster": "another shape"}'])
def test_outputs_that_cannot_be_understood_are_said_and_hide_only_the_start(
    cloud: Cloud, look: Any, up: Any, folder: SessionFolder, content: str
) -> None:
    write_outputs(folder, dict.fromkeys(OUTPUTS, "x"))
    folder.outputs.write_text(content, encoding="utf-8")
    cloud.answers("ec2", "describe_capacity_reservations", {"CapacityReservations": [RESERVATION]})
    cloud.is_silent_on_what_bills()
    cloud.refuses("eks", "describe_nodegroup", "ServerException")
    seen = look(operations=up, raised=up[0].ended)
    assert seen.reservation_state == "active"
    assert isinstance(seen.startup, Unknown)
    assert "is not what `up` has written" in seen.startup.reason


OUTPUTS = ("cluster_name", "region", "gpu_node_group", "namespace", "service", "served_model", "kubeconfig")
