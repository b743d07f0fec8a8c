"""The table agrees with pulumi-aws, whose place it takes, and with the world's delays."""

import importlib

import pytest
from pulumi._types import resource_pulumi_to_py_names

from rehearsal.delays import load_constants
from rehearsal.providers.eks import refusals
from rehearsal.providers.resources import ROWS
from rehearsal.providers.resources.row import Row


# Importing a service of pulumi-aws imports its deprecated resources as well.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pulumi_aws")
@pytest.mark.parametrize("token", sorted(ROWS))
def test_every_property_of_a_row_is_one_of_pulumi_aws(token: str) -> None:
    row = ROWS[token]
    module, name = token.split(":")[1].split("/")[0], token.split(":")[2]
    resource = getattr(importlib.import_module(f"pulumi_aws.{module}"), name)
    known = set(resource_pulumi_to_py_names(resource))
    assert {*row.known_fields, *row.outputs} - known == set()


@pytest.mark.parametrize("token", sorted(ROWS))
def test_every_delay_of_a_row_is_in_the_constants(token: str) -> None:
    row: Row = ROWS[token]
    by_name = load_constants().delays.by_name
    names = [row.delay(kind, {}) for kind in ("create", "update", "delete")]
    assert set(names) <= set(by_name)


def test_a_node_group_without_nodes_is_there_sooner() -> None:
    group = ROWS["aws:eks/nodeGroup:NodeGroup"]
    assert group.delay("create", {"scalingConfig": {"desiredSize": 0}}) == "node_group_create_empty"
    assert group.delay("create", {"scalingConfig": {"desiredSize": 2}}) == "node_group_create"


PLAIN = {
    "authenticationMode": "API",
    "skipDefaultNodeGroup": True,
    "skipDefaultSecurityGroups": True,
    "createInstanceRole": False,
    "corednsAddonOptions": {"enabled": False, "resolveConflictsOnCreate": "OVERWRITE"},
    "kubeProxyAddonOptions": {"version": "v1"},
    "name": "k",
}


def test_a_cluster_without_defaults_is_simulated() -> None:
    assert refusals(PLAIN) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"authenticationMode": "CONFIG_MAP"}, "authenticationMode"),
        ({"skipDefaultNodeGroup": False}, "skipDefaultNodeGroup"),
        ({"createInstanceRole": True}, "createInstanceRole"),
        ({"versoin": "1.35"}, "versoin"),
        ({"vpcCniOptions": {"version": "v1"}}, "vpcCniOptions.version"),
        ({"corednsAddonOptions": {"enabled": True}}, "corednsAddonOptions.enabled"),
        ({"corednsAddonOptions": {}}, "corednsAddonOptions.enabled"),
    ],
)
def test_what_is_not_simulated_of_a_cluster_is_refused_by_name(change: dict[str, object], path: str) -> None:
    assert [one["property_path"] for one in refusals({**PLAIN, **change})] == [path]


@pytest.mark.parametrize("left_out", ["authenticationMode", "skipDefaultNodeGroup", "createInstanceRole"])
def test_a_default_that_is_not_simulated_is_refused_too(left_out: str) -> None:
    inputs = {name: value for name, value in PLAIN.items() if name != left_out}
    assert [one["property_path"] for one in refusals(inputs)] == [left_out]
