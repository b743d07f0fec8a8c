"""Which versions EKS has: of Kubernetes, of add-ons, of node images."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

NVIDIA = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia"


def support(cloud: Any, **asked: Any) -> dict[str, str]:
    listed = cloud.client("eks").describe_cluster_versions(**asked)["clusterVersions"]
    return {each["clusterVersion"]: each["versionStatus"] for each in listed}


def test_a_version_leaves_standard_support_on_its_day(cloud: Any) -> None:
    assert support(cloud) == {"1.34": "EXTENDED_SUPPORT", "1.35": "STANDARD_SUPPORT", "1.36": "STANDARD_SUPPORT"}
    assert support(cloud, versionStatus="STANDARD_SUPPORT").keys() == {"1.35", "1.36"}
    (found,) = cloud.client("eks").describe_cluster_versions(clusterVersions=["1.35"])["clusterVersions"]
    cloud.world.jump(found["endOfStandardSupportDate"] - cloud.world.now)
    assert support(cloud)["1.35"] == "EXTENDED_SUPPORT"
    cloud.world.jump(found["endOfExtendedSupportDate"] - cloud.world.now)
    assert "1.35" not in support(cloud)
    assert support(cloud, includeAll=True)["1.35"] == "UNSUPPORTED"


@pytest.mark.parametrize(("kubernetes", "fits"), [("1.35", True), ("1.20", False)])
def test_an_add_on_is_for_the_kubernetes_versions_of_eks(cloud: Any, kubernetes: str, fits: bool) -> None:
    eks = cloud.client("eks")
    found = eks.describe_addon_versions(addonName="coredns", kubernetesVersion=kubernetes)["addons"]
    assert [each["addonName"] for each in found] == ["coredns"] * fits
    for addon in found:
        (version,) = addon["addonVersions"]
        assert [each["clusterVersion"] for each in version["compatibilities"]] == [kubernetes]


def test_node_images_are_public_parameters_in_every_region(cloud: Any) -> None:
    for region in ("us-west-2", "us-east-1"):
        ssm = cloud.client("ssm", region=region)
        release = ssm.get_parameter(Name=f"{NVIDIA}/recommended/release_version")["Parameter"]["Value"]
        dated = f"{NVIDIA}/amazon-eks-node-al2023-x86_64-nvidia-1.35-v{release.partition('-')[2]}/release_version"
        found = ssm.get_parameters(Names=[dated, f"{NVIDIA}/none"])
        assert [each["Value"] for each in found["Parameters"]] == [release]
        assert found["InvalidParameters"] == [f"{NVIDIA}/none"]
        listed = ssm.get_parameters_by_path(Path=NVIDIA, Recursive=True)["Parameters"]
        assert len(listed) == 4


def test_the_parameters_of_a_user_stay_beside_them(cloud: Any) -> None:
    ssm = cloud.client("ssm")
    ssm.put_parameter(Name="/team/key", Value="v", Type="String")
    cloud.world.jump(timedelta(hours=1))
    assert ssm.get_parameter(Name="/team/key")["Parameter"]["Value"] == "v"


def test_moto_may_have_served_others_in_this_process_before(new_cloud: Callable[..., Any]) -> None:
    with mock_aws():
        boto3.client("eks", region_name="us-west-2").list_clusters()
    assert support(new_cloud())
