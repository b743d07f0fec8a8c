"""Inputs compared with inputs, and with what AWS shows."""

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from rehearsal.providers.compare import autoname, compare, observed_inputs, previewed
from rehearsal.providers.protocol import UNKNOWN
from rehearsal.providers.resources import ROWS
from rehearsal.providers.resources.row import Row, to_aws, unknown_inputs

VPC = ROWS["aws:ec2/vpc:Vpc"]
GROUP = ROWS["aws:eks/nodeGroup:NodeGroup"]
CLUSTER = ROWS["aws:eks/cluster:Cluster"]
TEMPLATE = ROWS["aws:ec2/launchTemplate:LaunchTemplate"]
SECURITY_GROUP = ROWS["aws:ec2/securityGroup:SecurityGroup"]
ASSOCIATION = ROWS["aws:ec2/routeTableAssociation:RouteTableAssociation"]
ROLE = ROWS["aws:iam/role:Role"]

ADD, DELETE, UPDATE, UPDATE_REPLACE = 0, 2, 4, 5


@pytest.mark.parametrize(
    ("row", "old", "new", "paths"),
    [
        pytest.param(VPC, {"cidrBlock": "a"}, {"cidrBlock": "a"}, {}, id="equal"),
        pytest.param(VPC, {"cidrBlock": "a"}, {"cidrBlock": "b"}, {"cidrBlock": UPDATE_REPLACE}, id="replaces"),
        pytest.param(VPC, {}, {"tags": {"a": "b"}}, {"tags": ADD}, id="added"),
        pytest.param(VPC, {"enableDnsSupport": True}, {}, {"enableDnsSupport": DELETE}, id="taken away"),
        pytest.param(
            VPC, {"cidrBlock": "a"}, {"cidrBlock": UNKNOWN}, {"cidrBlock": UPDATE_REPLACE}, id="not known yet"
        ),
        pytest.param(
            GROUP,
            {"scalingConfig": {"minSize": 0, "desiredSize": 0}},
            {"scalingConfig": {"minSize": 0, "desiredSize": 1}},
            {"scalingConfig.desiredSize": UPDATE},
            id="only the member that changed",
        ),
        pytest.param(
            GROUP,
            {"launchTemplate": {"id": "lt-1", "version": "1"}},
            {"launchTemplate": {"id": "lt-2", "version": "1"}},
            {"launchTemplate.id": UPDATE_REPLACE},
            id="another template replaces the group",
        ),
        pytest.param(
            GROUP,
            {"launchTemplate": {"id": "lt-1", "version": "1"}},
            {"launchTemplate": {"id": "lt-1", "version": "2"}},
            {"launchTemplate.version": UPDATE},
            id="another version does not",
        ),
        pytest.param(GROUP, {"subnetIds": ["a", "b"]}, {"subnetIds": ["b", "a"]}, {}, id="lists are sets to AWS"),
        pytest.param(VPC, {"__defaults": ["x"]}, {"__defaults": []}, {}, id="our own marks are no inputs"),
    ],
)
def test_a_difference_has_its_path_and_its_consequence(
    row: Row, old: dict[str, Any], new: dict[str, Any], paths: dict[str, int]
) -> None:
    diff = compare(row, old, new)
    assert {path: one.kind for path, one in diff.detailedDiff.items()} == paths
    assert diff.changes == (provider_pb2.DiffResponse.DIFF_SOME if paths else provider_pb2.DiffResponse.DIFF_NONE)
    assert set(diff.diffs) == {path.split(".")[0] for path in paths}
    assert set(diff.replaces) == {path.split(".")[0] for path, kind in paths.items() if kind % 2}


@pytest.mark.parametrize(
    ("row", "old", "new", "first"),
    [
        pytest.param(SECURITY_GROUP, {"name": "g", "vpcId": "a"}, {"name": "g", "vpcId": "b"}, True, id="name given"),
        pytest.param(
            SECURITY_GROUP,
            {"name": "g-1", "vpcId": "a", "__defaults": ["name"]},
            {"name": "g-2", "vpcId": "b", "__defaults": ["name"]},
            False,
            id="name generated",
        ),
        pytest.param(ASSOCIATION, {"subnetId": "a"}, {"subnetId": "b"}, True, id="one at a time in AWS"),
        pytest.param(VPC, {"cidrBlock": "a"}, {"cidrBlock": "b"}, False, id="no name at all"),
    ],
)
def test_the_old_one_goes_first_where_both_cannot_exist(
    row: Row, old: dict[str, Any], new: dict[str, Any], first: bool
) -> None:
    assert compare(row, old, new).deleteBeforeReplace is first


@pytest.mark.parametrize(
    ("row", "inputs", "outputs", "expected"),
    [
        pytest.param(
            CLUSTER,
            {"vpcConfig": {"publicAccessCidrs": ["b", "a"]}},
            {"vpcConfig": {"publicAccessCidrs": ["a", "b"], "vpcId": "vpc-1"}},
            {"vpcConfig": {"publicAccessCidrs": ["b", "a"]}},
            id="neither AWS's order nor its additions are drift",
        ),
        pytest.param(
            CLUSTER,
            {"vpcConfig": {"publicAccessCidrs": ["a"]}},
            {"vpcConfig": {"publicAccessCidrs": ["0.0.0.0/0"]}},
            {"vpcConfig": {"publicAccessCidrs": ["0.0.0.0/0"]}},
            id="another value is",
        ),
        pytest.param(
            VPC,
            {"tags": {"a": "b"}},
            {"tags": {"a": "b", "new": "x"}},
            {"tags": {"a": "b", "new": "x"}},
            id="a tag too many",
        ),
        pytest.param(VPC, {"tags": {"a": "b"}}, {"tags": {}}, {"tags": {}}, id="a tag taken off"),
        pytest.param(
            VPC,
            {},
            {"cidrBlock": "c", "ownerId": "1", "tags": {}},
            {"cidrBlock": "c"},
            id="an import takes what it sees",
        ),
        pytest.param(
            ROWS["aws:eks/addon:Addon"],
            {"resolveConflictsOnCreate": "OVERWRITE"},
            {"addonName": "x"},
            {"resolveConflictsOnCreate": "OVERWRITE"},
            id="what AWS never shows stays",
        ),
        pytest.param(
            ROWS["aws:cloudwatch/logGroup:LogGroup"],
            {"name": "n", "retentionInDays": 7},
            {"name": "n"},
            {"name": "n"},
            id="a retention taken off is missed",
        ),
        pytest.param(
            GROUP,
            {"taints": [{"key": "a", "effect": "E"}, {"key": "b", "effect": "E"}]},
            {"taints": [{"key": "b", "effect": "E"}, {"key": "a", "effect": "E"}]},
            {"taints": [{"key": "a", "effect": "E"}, {"key": "b", "effect": "E"}]},
            id="objects in another order",
        ),
        pytest.param(
            TEMPLATE,
            {"networkInterfaces": [{"deviceIndex": 0}, {"deviceIndex": 1}]},
            {"networkInterfaces": [{"deviceIndex": 0, "description": ""}, {"deviceIndex": 1, "description": ""}]},
            {"networkInterfaces": [{"deviceIndex": 0}, {"deviceIndex": 1}]},
            id="defaults inside a list of objects",
        ),
    ],
)
def test_a_refresh_takes_over_what_has_changed_and_nothing_else(
    row: Row, inputs: dict[str, Any], outputs: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert observed_inputs(row, inputs, outputs) == expected


def request(seed: bytes = b"1", proposed: str = "", mode: int = 0) -> provider_pb2.CheckRequest:
    options = provider_pb2.CheckRequest.AutonamingOptions(proposed_name=proposed, mode=mode)  # type: ignore[arg-type]
    return provider_pb2.CheckRequest(urn="urn:pulumi:dev::p::t::fire", randomSeed=seed, autonaming=options)


def test_a_generated_name_is_the_resources_and_seven_digits_and_the_same_for_the_same_seed() -> None:
    named = autoname("name", {}, {}, request())
    assert named["name"].startswith("fire-")
    assert len(named["name"]) == len("fire-") + 7
    int(named["name"].removeprefix("fire-"), 16)
    assert autoname("name", {}, {}, request()) == named
    assert autoname("name", {}, {}, request(seed=b"2")) != named


def test_a_name_is_kept_once_it_is_there_and_given_up_for_the_users() -> None:
    named = autoname("name", {}, {}, request())
    assert autoname("name", {}, named, request(seed=b"2")) == named
    assert autoname("name", {"name": "mine"}, named, request()) == {"name": "mine"}
    assert autoname("name", {}, {"name": "mine"}, request())["name"] != "mine"


def test_the_engines_proposal_is_taken_and_no_name_made_where_names_are_off() -> None:
    assert autoname("name", {}, {}, request(proposed="web-dev"))["name"] == "web-dev"
    assert autoname("name", {}, {}, request(mode=provider_pb2.CheckRequest.AutonamingOptions.DISABLE)) == {}


def test_a_preview_knows_the_inputs_and_nothing_that_only_aws_can_tell() -> None:
    foreseen = previewed(CLUSTER, {"name": "k", "vpcConfig": {"subnetIds": ["a"]}})
    assert foreseen["name"] == "k"
    assert foreseen["arn"] is UNKNOWN
    assert foreseen["vpcConfig"] == {"subnetIds": ["a"], "clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}


def test_an_input_that_no_field_carries_is_named_with_its_path() -> None:
    inputs = {"metadataOptions": {"httpTokens": "required", "httpTokkens": "x"}, "nope": 1, "tags": {"free": "text"}}
    assert unknown_inputs(TEMPLATE.known_fields.values(), inputs) == ["metadataOptions.httpTokkens", "nope"]
    # A member that only AWS shows is no input either.
    cluster = unknown_inputs(CLUSTER.known_fields.values(), {"vpcConfig": {"clusterSecurityGroupId": "sg-1"}})
    assert cluster == ["vpcConfig.clusterSecurityGroupId"]


def test_a_policy_document_is_compared_by_its_meaning() -> None:
    field = ROLE.known_fields["assumeRolePolicy"]
    assert field.normal('{"b": 1,\n "a": [1, 2]}') == field.from_aws({"a": [1, 2], "b": 1})
    assert field.normal(UNKNOWN) is UNKNOWN


def test_a_launch_template_is_written_in_ec2s_words() -> None:
    inputs = {
        "instanceMarketOptions": {"marketType": "capacity-block"},
        "capacityReservationSpecification": {"capacityReservationTarget": {"capacityReservationId": "cr-1"}},
        "networkInterfaces": [{"networkCardIndex": 1, "securityGroups": ["sg-1"], "deleteOnTermination": "false"}],
        "tagSpecifications": [{"resourceType": "instance", "tags": {"b": "2", "a": "1"}}],
        "name": "t",
    }
    data_fields = [field for field in TEMPLATE.fields if field.name != "name"]
    assert to_aws(data_fields, inputs) == {
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}},
        "NetworkInterfaces": [{"NetworkCardIndex": 1, "Groups": ["sg-1"], "DeleteOnTermination": False}],
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]}
        ],
    }
