"""The zones of an existing stack stay as they are, whatever AWS lists today; a new stack needs two of them."""

from typing import Any

import pytest

from components.network import require_zones, same_zone
from components.settings import SettingsError

SUBNET = "aws:ec2/subnet:Subnet"
LISTS = [
    {"zones": ("usw2-az1", "usw2-az2")},
    {"zones": ("usw2-az2",)},
    {"zones": ()},
    {"zones_failure": "UnauthorizedOperation: you may not list zones"},
]


def hooked(run: Any) -> set[str]:
    return {request.name for request in run.requests if request.raw.hooks.before_create}


@pytest.mark.parametrize("listed", LISTS)
def test_no_update_moves_a_subnet_to_another_zone(program: Any, configuration: Any, listed: Any) -> None:
    run = program(configuration, **listed)
    subnets = run.of(SUBNET)
    assert len(subnets) == 3
    for subnet in subnets:
        # The engine then takes the zone that its state has; the zone of the program counts for a new subnet only.
        assert list(subnet.raw.ignoreChanges) == ["availabilityZoneId"]
    assert run.one(SUBNET, "-gpu").inputs["availabilityZoneId"] == "usw2-az2"


@pytest.mark.parametrize("listed", LISTS[1:])
def test_a_network_is_not_created_without_a_second_zone(program: Any, configuration: Any, listed: Any) -> None:
    run = program(configuration, **listed)
    assert hooked(run) == {"session-network-vpc", "session-network-second"}
    assert "availabilityZoneId" not in run.one(SUBNET, "-second").inputs


def test_two_listed_zones_need_no_hook(dev: Any) -> None:
    assert hooked(dev) == set()


def test_the_hook_says_which_zone_is_missing_and_why() -> None:
    with pytest.raises(ValueError, match=r"network cannot be created: AWS lists only usw2-az2"):
        require_zones("AWS lists only usw2-az2")(None)  # type: ignore[arg-type]


def test_a_stack_in_another_zone_than_the_reservation_is_refused() -> None:
    assert same_zone(["subnet-1", "usw2-az2"], wanted="usw2-az2") == "subnet-1"
    with pytest.raises(SettingsError, match=r"network of this stack is in usw2-az2.*usw2-az4.*new stack"):
        same_zone(["subnet-1", "usw2-az2"], wanted="usw2-az4")


def test_zone_problems_come_with_all_others(program: Any, configuration: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        program({**configuration, "logRetentionDays": "8"}, zones=("usw2-az2",))
    assert [problem.key for problem in caught.value.problems] == ["logRetentionDays", "availabilityZoneId"]
