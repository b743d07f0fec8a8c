"""A look reads EC2 and the cluster, asks only what can still matter, and turns failures into reasons."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from automation.serving.cluster import Cluster
from automation.serving.facts import Facts, read
from automation.target import Target

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
SINCE = "2026-12-01T11:35:00Z"
NODE = {
    "metadata": {"name": "ip-10-0-0-9", "labels": {"rent-the-block/role": "gpu"}},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": SINCE}],
        "allocatable": {"nvidia.com/gpu": "8", "cpu": "191"},
    },
}
SYSTEM_NODE = {"metadata": {"name": "ip-10-0-0-5", "labels": {"rent-the-block/role": "system"}}, "status": {}}


class StillClock:
    def now(self) -> datetime:
        return NOW

    def wait(self, until: datetime, operation: object = None) -> None:
        raise AssertionError("a look does not wait")


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    # moto would first load hundreds of machine images that nothing here uses.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield Target(
            mode="aws",
            account_id="123456789012",
            region="us-east-1",
            boto_session=boto3.Session(region_name="us-east-1"),
            endpoint_url=None,
            clock=StillClock(),
            home=tmp_path,
            engine_environment={},
        )


def look(kube_api, target: Target, *, ended: frozenset[str] = frozenset()) -> Facts:
    with Cluster(kube_api.kubeconfig) as cluster:
        return read(cluster, target, cluster_name="rtb", node_group="gpu", namespace="vllm", ended=ended)


def pod(**status: object) -> dict[str, object]:
    labels = {"app.kubernetes.io/name": "vllm"}
    return {"metadata": {"name": "vllm-1", "namespace": "vllm", "labels": labels}, "status": status}


def container(**state: object) -> list[dict[str, object]]:
    return [{"name": "vllm", "restartCount": 1, "state": state}]


AFTER_LAUNCH = frozenset({"launch"})


def test_only_nodes_of_the_gpu_group_are_counted(kube_api, target: Target) -> None:
    kube_api.objects = {"nodes": [NODE, SYSTEM_NODE]}
    (node,) = look(kube_api, target, ended=AFTER_LAUNCH).nodes
    assert (node.name, node.gpus) == ("ip-10-0-0-9", 8)
    assert node.ready_since == datetime(2026, 12, 1, 11, 35, tzinfo=UTC)


def test_a_pod_that_does_not_fit_says_the_schedulers_reason(kube_api, target: Target) -> None:
    reason = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "message": reason}
    kube_api.objects = {"pods": [pod(phase="Pending", conditions=[condition])]}
    (seen,) = look(kube_api, target, ended=AFTER_LAUNCH).pods
    assert seen.waiting == f"not scheduled: {reason}"
    assert seen.started is None


def test_a_pull_is_told_by_its_last_event(kube_api, target: Target) -> None:
    events = [
        {
            "metadata": {"name": f"e{minute}"},
            "involvedObject": {"name": "vllm-1"},
            "reason": reason,
            "message": f"at {minute}",
            "lastTimestamp": f"2026-12-01T11:{minute}:00Z",
        }
        for minute, reason in (("37", "Pulling"), ("36", "Scheduled"))
    ]
    kube_api.objects = {
        "pods": [pod(phase="Pending", containerStatuses=container(waiting={"reason": "ContainerCreating"}))],
        "events": events,
    }
    (seen,) = look(kube_api, target, ended=AFTER_LAUNCH).pods
    assert seen.waiting == "ContainerCreating; Pulling: at 37"
    assert seen.restarts == 1


def test_a_running_container_is_dated_and_its_log_is_read_until_it_is_ready(kube_api, target: Target) -> None:
    running = container(running={"startedAt": SINCE})
    kube_api.objects = {"pods": [pod(phase="Running", containerStatuses=running)]}
    kube_api.logs["vllm-1"] = "2026-12-01T11:40:00.5Z Loading weights took 231.2 seconds\nno stamp\n"
    (seen,) = look(kube_api, target, ended=AFTER_LAUNCH).pods
    assert seen.started == datetime(2026, 12, 1, 11, 35, tzinfo=UTC)
    assert [line.text for line in seen.log] == ["Loading weights took 231.2 seconds", "no stamp"]
    assert [line.at is None for line in seen.log] == [False, True]
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": SINCE}
    kube_api.objects["pods"] = [pod(phase="Running", containerStatuses=running, conditions=[condition])]
    (seen,) = look(kube_api, target, ended=AFTER_LAUNCH).pods
    assert seen.ready_since
    assert not seen.log


def test_when_a_pod_may_have_gone_away_is_told_by_its_condition_its_last_container_and_its_own_age(
    kube_api, target: Target
) -> None:
    unready = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-12-01T14:00:00Z"}]
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2026-12-01T13:00:00Z"}}
    restarted = [{**container(running={"startedAt": SINCE})[0], "lastState": ended}]
    seen_pod = pod(startTime="2026-12-01T12:00:00Z", conditions=unready, containerStatuses=restarted)
    seen_pod["metadata"]["creationTimestamp"] = "2026-12-01T11:00:00Z"
    kube_api.objects = {"pods": [seen_pod]}
    (seen,) = look(kube_api, target, ended=AFTER_LAUNCH).pods
    assert seen.went_away == tuple(datetime(2026, 12, 1, hour, tzinfo=UTC) for hour in (14, 13, 11, 12))
    kube_api.objects = {"pods": [pod(conditions=[], containerStatuses=container(running={"startedAt": SINCE}))]}
    (seen,) = look(kube_api, target, ended=AFTER_LAUNCH).pods
    assert seen.went_away == ()


def test_a_node_that_is_gone_hides_no_pod_by_its_log(kube_api, target: Target) -> None:
    """Kubernetes tells its pod as running for minutes; only the Ready condition has changed."""
    unready = [{"type": "Ready", "status": "False", "lastTransitionTime": SINCE}]
    kube_api.objects = {"pods": [pod(conditions=unready, containerStatuses=container(running={"startedAt": SINCE}))]}
    kube_api.has_no_logs = True
    facts = look(kube_api, target, ended=AFTER_LAUNCH)
    assert facts.unknown == ()
    assert [(seen.ready_since, seen.log) for seen in facts.pods] == [(None, ())]


def test_a_pod_on_its_way_out_serves_nobody(kube_api, target: Target) -> None:
    leaving = pod(phase="Running")
    leaving["metadata"]["deletionTimestamp"] = SINCE
    kube_api.objects = {"pods": [leaving]}
    assert look(kube_api, target, ended=AFTER_LAUNCH).pods == ()


def test_a_cluster_that_does_not_answer_is_a_reason(tmp_path: Path, target: Target) -> None:
    with Cluster(tmp_path / "none") as cluster:
        facts = read(
            cluster, target, cluster_name="rtb", node_group="gpu", namespace="vllm", ended=frozenset({"launch"})
        )
    assert facts.nodes == facts.pods == ()
    assert len(facts.unknown) == 1


def test_a_node_group_that_aws_does_not_know_is_a_reason(kube_api, target: Target) -> None:
    (reason,) = look(kube_api, target).unknown
    assert "ResourceNotFoundException" in reason


def test_instances_are_counted_through_the_groups_auto_scaling_group(kube_api, target: Target) -> None:
    eks = target.client("eks")
    subnet = target.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    role = "arn:aws:iam::123456789012:role/r"
    eks.create_cluster(name="rtb", roleArn=role, resourcesVpcConfig={"subnetIds": [subnet]})
    made = eks.create_nodegroup(
        clusterName="rtb", nodegroupName="gpu", nodeRole=role, subnets=[subnet], scalingConfig={"desiredSize": 0}
    )
    name = made["nodegroup"]["resources"]["autoScalingGroups"][0]["name"]
    scaling = target.client("autoscaling")
    image = target.client("ec2").register_image(Name="image")["ImageId"]
    scaling.create_launch_configuration(LaunchConfigurationName="l", ImageId=image, InstanceType="m5.large")
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchConfigurationName="l",
        MinSize=0,
        MaxSize=2,
        DesiredCapacity=0,
        VPCZoneIdentifier=subnet,
    )
    assert look(kube_api, target).running_instances == 0
    scaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=2)
    assert look(kube_api, target).running_instances == 2
    assert look(kube_api, target, ended=AFTER_LAUNCH).running_instances == 0
