"""Instances of a Capacity Block: when they launch, join and end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.world import DEFAULT_START, World


def activities(cloud: Any, group: str) -> list[dict[str, Any]]:
    asked = cloud.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group)
    found: list[dict[str, Any]] = asked["Activities"]
    return found


def instances(cloud: Any) -> list[dict[str, Any]]:
    by_group = [{"Name": "tag:eks:nodegroup-name", "Values": ["gpu"]}]
    found = cloud.client("ec2").describe_instances(Filters=by_group)["Reservations"]
    return [instance for reservation in found for instance in reservation["Instances"]]


def test_a_launch_before_the_block_is_active_fails_and_says_so(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    group = network.gpu_group(network.template())
    cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    cloud.world.jump(timedelta(minutes=1))
    failed = [activity for activity in activities(cloud, group) if activity["StatusCode"] == "Failed"]
    assert "not in an active state (it is scheduled)" in failed[-1]["StatusMessage"]
    assert instances(cloud) == []
    health = network.eks.describe_nodegroup(clusterName="c", nodegroupName="gpu")["nodegroup"]
    assert (health["status"], health["health"]["issues"][0]["code"]) == ("DEGRADED", "AsgInstanceLaunchFailures")


def test_a_group_that_failed_tries_again_more_and_more_slowly_and_recovers(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    group = network.gpu_group(network.template())
    cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    cloud.world.jump(timedelta(hours=1))
    failed = [entry.when for entry in cloud.world.story if entry.kind == "launch-failed"]
    assert failed[1] - failed[0] < timedelta(minutes=2) < failed[-1] - failed[-2]
    cloud.world.advance(cloud.start + timedelta(minutes=15))
    assert len(cloud.aws.fleet.machines) == 1
    group_now = network.eks.describe_nodegroup(clusterName="c", nodegroupName="gpu")["nodegroup"]
    assert (group_now["status"], group_now["health"]["issues"]) == ("ACTIVE", [])


def test_asking_for_the_same_size_again_does_not_wake_a_group_that_backs_off(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    group = network.gpu_group(network.template())
    scaling = cloud.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    cloud.world.jump(timedelta(hours=1))
    before = len(activities(cloud, group))
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    assert len(activities(cloud, group)) == before
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    assert len(activities(cloud, group)) > before


def test_a_node_joins_exactly_after_launch_and_boot(cloud: Any) -> None:
    group = cloud.serve_from_the_block()
    expected = World(DEFAULT_START, cloud.world.seed, cloud.world.delays)
    launch, boot = expected.draw("ec2_launch"), expected.draw("node_join")
    cloud.world.advance(cloud.start + launch + boot - timedelta(seconds=1))
    assert cloud.listener.joins == []
    assert [instance["LaunchTime"] for instance in instances(cloud)] == [cloud.start + launch]
    cloud.world.jump(timedelta(seconds=1))
    [(when, node)] = cloud.listener.joins
    assert when == cloud.start + launch + boot
    assert (node.gpus, node.cpu, node.memory_mib) == (8, 192, 3_877_198)
    assert node.labels["topology.k8s.aws/zone-id"] == "usw2-az2"
    assert node.labels["rent-the-block/role"] == "gpu"
    assert [(taint.key, taint.value, taint.effect) for taint in node.taints] == [
        ("nvidia.com/gpu", "present", "NoSchedule")
    ]
    [instance] = instances(cloud)
    assert instance["PrivateDnsName"] == node.name
    assert instance["CapacityReservationId"] == "cr-0123456789abcdef0"
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    assert (tags["eks:cluster-name"], tags["team"], tags["aws:autoscaling:groupName"]) == ("c", "llm", group)
    assert activities(cloud, group)[0]["StatusCode"] == "Successful"


def test_a_block_has_room_for_its_own_count_only(cloud: Any) -> None:
    group = cloud.serve_from_the_block(scalingConfig={"minSize": 0, "maxSize": 2, "desiredSize": 0})
    cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=2)
    cloud.world.jump(timedelta(minutes=5))
    assert len(cloud.aws.fleet.machines) == 1
    assert "ReservationCapacityExceeded" in str([item.get("StatusMessage") for item in activities(cloud, group)])
    reservation = cloud.aws.blocks.reservation("cr-0123456789abcdef0")
    assert reservation.free == 0


def test_an_instance_of_another_type_does_not_start_in_the_block(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    group = network.gpu_group(network.template(InstanceType="p5en.48xlarge"))
    cloud.world.advance(cloud.start)
    cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    cloud.world.jump(timedelta(minutes=1))
    assert "does not match" in activities(cloud, group)[-1]["StatusMessage"]


def test_a_size_outside_the_limits_of_the_group_is_refused(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    group = network.gpu_group(network.template())
    with pytest.raises(ClientError, match="above max value 1"):
        cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=2)


def test_a_scale_in_drains_before_it_ends_the_instance(cloud: Any) -> None:
    group = cloud.serve_from_the_block()
    cloud.world.jump(timedelta(minutes=10))
    asked = cloud.world.now
    cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    assert instances(cloud)[0]["State"]["Name"] == "running"
    cloud.world.jump(timedelta(minutes=5))
    drain = World(DEFAULT_START, cloud.world.seed, cloud.world.delays).draw("node_drain")
    assert [when for when, _ in cloud.listener.ends] == [asked + drain]
    [instance] = instances(cloud)
    assert instance["State"]["Name"] == "terminated"
    assert instance["StateTransitionReason"] == f"User initiated ({asked + drain:%Y-%m-%d %H:%M:%S} UTC)"
    assert cloud.aws.blocks.reservation("cr-0123456789abcdef0").free == 1


def test_ec2_ends_the_instances_of_a_block_from_thirty_minutes_before_its_end_on(cloud: Any) -> None:
    cloud.serve_from_the_block()
    # Whoever raises the group again after EKS's own scale-in keeps its node until EC2 takes it.
    cloud.world.advance(cloud.end - timedelta(minutes=39))
    group = cloud.client("eks").describe_nodegroup(clusterName="c", nodegroupName="gpu")["nodegroup"]
    name = group["resources"]["autoScalingGroups"][0]["name"]
    cloud.world.advance(cloud.end - timedelta(minutes=36))
    cloud.client("autoscaling").set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=1)
    termination = cloud.end - timedelta(minutes=30)
    cloud.world.advance(termination - timedelta(seconds=1))
    assert len(cloud.aws.fleet.machines) == 1
    cloud.world.advance(cloud.end)
    assert cloud.aws.fleet.machines == ()
    last = cloud.listener.ends[-1][0]
    assert termination <= last <= termination + timedelta(minutes=2)
    assert instances(cloud)[-1]["State"]["Name"] == "terminated"


def test_an_instance_that_someone_ends_is_replaced_and_its_node_is_gone(cloud: Any) -> None:
    cloud.serve_from_the_block()
    cloud.world.jump(timedelta(minutes=10))
    ec2 = cloud.client("ec2")
    [running] = instances(cloud)
    ec2.terminate_instances(InstanceIds=[running["InstanceId"]])
    assert [when for when, _ in cloud.listener.ends] == [cloud.world.now]
    ec2.terminate_instances(InstanceIds=[running["InstanceId"]])
    cloud.world.jump(timedelta(minutes=10))
    assert [instance["State"]["Name"] for instance in instances(cloud)] == ["terminated", "running"]
    assert len(cloud.listener.joins) == 2


def test_deleting_a_node_group_ends_its_instances(cloud: Any) -> None:
    cloud.serve_from_the_block()
    cloud.world.jump(timedelta(minutes=10))
    cloud.client("eks").delete_nodegroup(clusterName="c", nodegroupName="gpu")
    assert cloud.aws.fleet.machines == ()
    assert len(cloud.listener.ends) == 1
    cloud.world.advance(cloud.end)
    assert len(cloud.listener.joins) == 1
