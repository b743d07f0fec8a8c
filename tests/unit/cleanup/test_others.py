"""While a stack is destroyed, what others made in its VPC goes, and what is the stack's own stays."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from automation.cleanup import others
from automation.cleanup.others import others_deleted
from automation.errors import AwsUnreachable
from automation.target import Target
from tests.unit.cleanup.account import OTHER, SESSION, Cloud, a_security_group, a_vpc, an_interface

NOBODYS: frozenset[str] = frozenset()


def interfaces(cloud: Cloud) -> set[str]:
    return {each["NetworkInterfaceId"] for each in cloud.ec2.describe_network_interfaces()["NetworkInterfaces"]}


def groups(cloud: Cloud) -> set[str]:
    return {each["GroupId"] for each in cloud.ec2.describe_security_groups()["SecurityGroups"]}


def comes_true(holds: Callable[[], bool]) -> bool:
    """Whether it holds within half a minute."""
    limit = time.monotonic() + 30.0
    while not holds() and time.monotonic() < limit:
        time.sleep(0.02)
    return holds()


def test_what_others_made_goes_and_the_stacks_own_and_another_sessions_stay(target: Target) -> None:
    cloud, neighbour = Cloud(target, SESSION), Cloud(target, OTHER)
    a_vpc(cloud)
    an_interface(cloud)
    a_security_group(cloud)
    own = interfaces(cloud) | groups(cloud)
    an_interface(neighbour)
    a_security_group(neighbour)
    stay = interfaces(cloud) | groups(cloud)
    with others_deleted(target, SESSION, own, every_s=0.05):
        for _ in range(2):
            an_interface(cloud)
            assert interfaces(cloud) - stay
            assert comes_true(lambda: interfaces(cloud) | groups(cloud) == stay)


def test_only_what_holds_a_network_goes(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    vpc_id = cloud.vpc()
    an_interface(cloud)
    before = interfaces(cloud)
    with others_deleted(target, SESSION, NOBODYS, every_s=0.05):
        assert comes_true(lambda: not interfaces(cloud) & before)
    assert cloud.ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"]


def test_when_aws_does_not_answer_the_next_pass_asks_again(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud, real, asked = Cloud(target, SESSION), others.sweep, []

    def sweep(*arguments: Any) -> Any:
        asked.append(arguments)
        if len(asked) == 1:
            raise AwsUnreachable(happened="AWS did not answer.", remedy="Try again.")
        return real(*arguments)

    monkeypatch.setattr(others, "sweep", sweep)
    an_interface(cloud)
    with others_deleted(target, SESSION, NOBODYS, every_s=0.05):
        assert comes_true(lambda: not interfaces(cloud))
    assert len(asked) > 1


def test_it_ends_with_the_block_also_when_the_destroy_failed(target: Target) -> None:
    cloud = Cloud(target, SESSION)
    with pytest.raises(RuntimeError, match="the engine broke"), others_deleted(target, SESSION, NOBODYS, every_s=0.05):
        raise RuntimeError("the engine broke")
    an_interface(cloud)
    time.sleep(0.3)
    assert interfaces(cloud)
