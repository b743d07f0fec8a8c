"""The fake of pulumi-eks refuses what it does not build, by name."""

import pytest

from rehearsal.providers.eks import refusals

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
