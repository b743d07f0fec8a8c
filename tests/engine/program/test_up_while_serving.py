"""`pulumi up` while GPU nodes run: their number and what they are launched from stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.engine

ONE_NODE = {"minSize": 0, "maxSize": 1, "desiredSize": 1}


def launched_from(place: Any) -> Any:
    """What EKS and EC2 say of the GPU group, without what changes by itself."""
    group = place.client("eks").describe_nodegroup(clusterName="dev", nodegroupName="gpu")["nodegroup"]
    template = place.client("ec2").describe_launch_templates(LaunchTemplateIds=[group["launchTemplate"]["id"]])
    [scaling_group] = place.client("autoscaling").describe_auto_scaling_groups(
        AutoScalingGroupNames=[group["resources"]["autoScalingGroups"][0]["name"]]
    )["AutoScalingGroups"]
    return (
        {
            name: group[name]
            for name in ("nodegroupArn", "scalingConfig", "launchTemplate", "releaseVersion", "capacityType")
        },
        template["LaunchTemplates"][0]["LatestVersionNumber"],
        scaling_group["DesiredCapacity"],
    )


def test_up_while_nodes_run_changes_nothing_that_they_depend_on(place: Any) -> None:
    place.works("up", "--yes", "--stack", "dev")
    place.client("eks").update_nodegroup_config(clusterName="dev", nodegroupName="gpu", scalingConfig=ONE_NODE)
    before = launched_from(place)
    assert before[2] == 1

    place.configure({"instanceCount": 2})
    place.works("up", "--yes", "--stack", "dev")
    assert launched_from(place) == before

    place.configure({"capacity": "on-demand", "availabilityZoneId": "usw2-az2", "reservationId": None})
    for command in (["preview"], ["up", "--yes"]):
        refused = place.pulumi(*command, "--stack", "dev")
        assert refused.returncode != 0
        assert (
            "1 GPU node(s) run, and a change of session-nodes-gpu would replace them" in refused.stdout + refused.stderr
        )
    assert launched_from(place) == before

    place.client("eks").update_nodegroup_config(
        clusterName="dev", nodegroupName="gpu", scalingConfig={**ONE_NODE, "desiredSize": 0}
    )
    place.works("up", "--yes", "--stack", "dev")
    assert launched_from(place) != before
