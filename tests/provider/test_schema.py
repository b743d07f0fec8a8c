"""The AWS provider of a rehearsal has the names, shapes and required inputs of the pinned pulumi_aws package."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from typing import Any

import pytest

from tests.provider.package_shape import of_package, of_schema
from toolchain import describe

pytestmark = [
    pytest.mark.engine,
    # Importing a service of pulumi-aws imports its deprecated resources too.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pulumi_aws"),
]

# Upstream added these after 6.34.0, the version that is built. If the program used one of them, each `up` of a
# rehearsal would fail: the provider refuses unknown inputs.
NEWER_UPSTREAM = (
    r"aws:ec2/launchTemplate:LaunchTemplate .*\.networkInterfaces\.enaQueueCount",
    r"aws:ec2/route:Route .*\.odbNetworkArn",
    r"aws:ec2/routeTable:RouteTable .*\.routes\.odbNetworkArn",
    r"aws:eks/addon:Addon .*\.namespaceConfig(\..*)?",
    r"aws:eks/cluster:Cluster .*\.kube(ApiServer|ControllerManager|Scheduler)Config(\..*)?",
    r"aws:eks/cluster:Cluster .*\.outpostConfig\..*",
    r"aws:eks/cluster:Cluster inputs\.remoteNetworkConfig\.remoteNodeNetworks",
    r"aws:eks/cluster:Cluster .*\.vpcConfig\.controlPlaneEgressMode",
    r"aws:eks/getNodeGroup:getNodeGroup outputs\.warmPoolConfigs(\..*)?",
    r"aws:eks/nodeGroup:NodeGroup .*\.warmPoolConfig(\..*)?",
    r"aws:eks/podIdentityAssociation:PodIdentityAssociation .*\.policy",
)
# pulumi-aws's own addition for `bootstrapSelfManagedAddons`; the bridge alone does not make it.
OF_PULUMI_AWS = (r"aws:eks/cluster:Cluster .*\.defaultAddonsToRemoves",)
EXPLAINED = re.compile("|".join(f"({pattern})" for pattern in (*NEWER_UPSTREAM, *OF_PULUMI_AWS)))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    path = next(
        part.path for part in describe() if part.name == "pulumi-resource-aws" and part.way in ("built", "missing")
    )
    if path is None:
        pytest.skip("the AWS provider is not built: run `python -m toolchain ensure`")
    answer = subprocess.run([path, "--schema"], capture_output=True, timeout=60, check=True)
    return json.loads(answer.stdout)  # type: ignore[no-any-return]


def differences(schema: dict[str, Any], *, explained: bool = False) -> list[str]:
    """Each difference as `token path: provider, package`; with `explained` also those that have a reason."""
    found = []
    for token in (*schema["resources"], *schema["functions"]):
        if not token.startswith("aws:"):
            continue
        ours, theirs = of_schema(schema, token), of_package("pulumi_aws", token)
        for path in sorted(ours.keys() | theirs.keys()):
            if ours.get(path) != theirs.get(path) and (explained or not EXPLAINED.fullmatch(f"{token} {path}")):
                found.append(f"{token} {path}: {ours.get(path)}, {theirs.get(path)}")
    return found


def test_the_provider_has_the_shape_of_the_package(schema: dict[str, Any]) -> None:
    assert differences(schema) == []


def test_each_explanation_still_explains_a_difference(schema: dict[str, Any]) -> None:
    lines = [line.rpartition(": ")[0] for line in differences(schema, explained=True)]
    idle = [one for one in (*NEWER_UPSTREAM, *OF_PULUMI_AWS) if not any(re.fullmatch(one, line) for line in lines)]
    assert idle == []


VPC, GROUP = "aws:ec2/vpc:Vpc", "aws:eks/nodeGroup:NodeGroup"


def rename(schema: dict[str, Any]) -> None:
    properties = schema["resources"][VPC]["inputProperties"]
    properties["cidrBlocks"] = properties.pop("cidrBlock")


def change_kind(schema: dict[str, Any]) -> None:
    schema["resources"][VPC]["inputProperties"]["enableDnsSupport"] = {"type": "string"}


def require(schema: dict[str, Any]) -> None:
    schema["resources"][GROUP]["requiredInputs"].remove("nodeRoleArn")


def change_nested(schema: dict[str, Any]) -> None:
    schema["types"]["aws:eks/NodeGroupScalingConfig:NodeGroupScalingConfig"]["properties"]["minSize"] = {
        "type": "string"
    }


@pytest.mark.parametrize("plant", [rename, change_kind, require, change_nested])
def test_the_comparison_finds_a_planted_difference(schema: dict[str, Any], plant: Any) -> None:
    changed = copy.deepcopy(schema)
    plant(changed)
    assert differences(changed) != []
