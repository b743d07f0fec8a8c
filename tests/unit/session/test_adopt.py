"""What a killed engine left with EKS is waited for; what EKS failed to make is deleted, so that it can be made anew."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from automation.aws_errors import aws_errors
from automation.errors import AwsSaysNo, CredentialsMissing, RentblockError
from automation.session.adopt import adopt
from automation.target import Target

NODE_GROUP = {"clusterName": "rtb-1", "nodegroupName": "gpu"}
ADDON = {"clusterName": "rtb-1", "addonName": "coredns"}


@pytest.fixture
def eks() -> Iterator[Stubber]:
    with Stubber(boto3.Session("id", "key", region_name="us-west-2").client("eks")) as stub:
        yield stub


@pytest.fixture
def target(eks: Stubber) -> Target:
    return SimpleNamespace(client=lambda service: eks.client)  # type: ignore[return-value]


def adopted(target: Target, kind: str, inputs: dict[str, Any]) -> list[str]:
    resource = {"urn": "urn:x", "type": kind, "inputs": inputs}
    after = adopt(target, "rtb-1", {"pending_operations": [{"type": "creating", "resource": resource}]})
    assert len(after["resources"]) + len(after["pending_operations"]) == 1
    return [each["id"] for each in after["resources"]]


def node_group(target: Target) -> list[str]:
    return adopted(target, "aws:eks/nodeGroup:NodeGroup", {"clusterName": "rtb-1", "nodeGroupName": "gpu"})


def shows(eks: Stubber, status: str) -> None:
    eks.add_response("describe_nodegroup", {"nodegroup": {"status": status}}, NODE_GROUP)


def test_a_node_group_that_came_up_is_adopted(eks: Stubber, target: Target) -> None:
    shows(eks, "CREATING")
    shows(eks, "ACTIVE")
    assert node_group(target) == ["rtb-1:gpu"]
    eks.assert_no_pending_responses()


def test_a_node_group_that_failed_is_deleted_and_left_to_be_made_anew(eks: Stubber, target: Target) -> None:
    shows(eks, "CREATING")
    shows(eks, "CREATE_FAILED")
    eks.add_response("delete_nodegroup", {"nodegroup": {"status": "DELETING"}}, NODE_GROUP)
    eks.add_client_error("describe_nodegroup", "ResourceNotFoundException")
    assert node_group(target) == []
    eks.assert_no_pending_responses()


def test_an_add_on_without_nodes_to_run_on_is_adopted_all_the_same(eks: Stubber, target: Target) -> None:
    for _ in range(2):
        eks.add_response("describe_addon", {"addon": {"status": "DEGRADED"}}, ADDON)
    assert adopted(target, "aws:eks/addon:Addon", ADDON) == ["rtb-1:coredns"]


@pytest.mark.parametrize(
    ("status", "code", "becomes"),
    [("DELETE_FAILED", None, AwsSaysNo), (None, "ExpiredTokenException", CredentialsMissing)],
)
def test_a_wait_that_ends_badly_is_aws_saying_no_and_no_aws_out_of_reach(
    eks: Stubber, target: Target, status: str | None, code: str | None, becomes: type[RentblockError]
) -> None:
    if status:
        shows(eks, status)
    else:
        eks.add_client_error("describe_nodegroup", str(code))
    with pytest.raises(becomes), aws_errors("waiting"):
        eks.client.get_waiter("nodegroup_deleted").wait(**NODE_GROUP)
