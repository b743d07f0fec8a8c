"""The simulated cloud's own bill, against formulas that are written here a second time."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import rehearsal.delays
from rehearsal.delays import Constants, load_constants

FACTOR = Decimal("1.2")
PRICES = tomllib.loads(Path(rehearsal.delays.CONSTANTS).read_text(encoding="utf-8"))["prices"]
CREATE, HOURS, DESTROY = timedelta(minutes=12), timedelta(hours=50, minutes=20, seconds=7), timedelta(minutes=9)


def usd(name: str) -> Decimal:
    return Decimal(PRICES[name]["usd"])


def a_session(cloud: Any) -> None:
    """Create a stack of two system nodes, let hours pass, destroy it; operations are followed by their own time."""
    network = cloud.network()
    network.cluster()
    network.system_group()
    cloud.world.jump(CREATE)
    cloud.aws.operation_ended()
    cloud.world.jump(HOURS)
    network.destroy()
    cloud.world.jump(DESTROY)
    cloud.aws.operation_ended()
    cloud.world.jump(timedelta(days=3))


def expected(moved: str = "") -> Decimal:
    def price(name: str) -> Decimal:
        return usd(name) * (FACTOR if name == moved else 1)

    hours = Decimal(int((CREATE + HOURS + DESTROY).total_seconds())) / 3600
    linear = price("eks_cluster") + price("public_ipv4") + 2 * price("ec2.m7i.large") + 40 * price("ebs_gp3") / 730
    return (linear * hours + price("nat_gateway") * 51).quantize(Decimal("0.01"))


def test_the_bill_of_a_session_is_what_the_formula_says(cloud: Any) -> None:
    a_session(cloud)
    bill = cloud.aws.meter.bill()
    assert bill.outside_usd == expected()
    assert {line.kind for line in bill.lines} == {
        "eks_cluster", "nat_gateway", "public_ipv4", "ec2_instance", "ebs_gp3_gib",
    }  # fmt: skip
    assert all(line.ended for line in bill.lines)


@pytest.mark.parametrize("name", ["eks_cluster", "nat_gateway", "public_ipv4", "ec2.m7i.large", "ebs_gp3"])
def test_the_bill_follows_a_price_that_moves(new_cloud: Callable[..., Any], name: str) -> None:
    constants = load_constants()
    cloud = new_cloud(constants=replace(constants, prices=constants.prices.scaled(name, FACTOR)))
    a_session(cloud)
    assert cloud.aws.meter.bill().outside_usd == expected(name) != expected()


def test_the_fee_follows_the_price_of_the_block(new_cloud: Callable[..., Any]) -> None:
    constants: Constants = load_constants()
    name = "block.p6-b300.48xlarge"
    cloud = new_cloud(constants=replace(constants, prices=constants.prices.scaled(name, FACTOR)))
    ec2 = cloud.client("ec2")
    found = ec2.describe_capacity_block_offerings(
        InstanceType="p6-b300.48xlarge", InstanceCount=1, CapacityDurationHours=24
    )
    offering_id = found["CapacityBlockOfferings"][1]["CapacityBlockOfferingId"]
    ec2.purchase_capacity_block(CapacityBlockOfferingId=offering_id, InstancePlatform="Linux/UNIX")
    fee = (usd(name) * FACTOR * 24).quantize(Decimal("0.01"))
    assert cloud.aws.meter.bill().block_usd == fee
    assert [item.kind for item in cloud.aws.inventory()] == ["capacity_block"]


def test_instances_of_a_block_cost_nothing_beside_their_volumes(cloud: Any) -> None:
    cloud.serve_from_the_block()
    cloud.world.jump(timedelta(hours=10))
    lines = cloud.aws.meter.bill().lines
    assert not [line for line in lines if line.kind == "ec2_instance"]
    assert [line.quantity for line in lines if line.kind == "ebs_gp3_gib"] == [Decimal(100)]


def test_what_an_operation_takes_away_bills_until_the_operation_has_ended(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    network.system_group()
    started = cloud.world.now
    network.destroy()
    cloud.world.jump(DESTROY)
    assert all(line.ended is None for line in cloud.aws.meter.bill().lines)
    cloud.aws.operation_ended()
    assert {line.ended for line in cloud.aws.meter.bill().lines} == {started + DESTROY}
    reservations = cloud.client("ec2").describe_instances()["Reservations"]
    reasons = {instance["StateTransitionReason"] for item in reservations for instance in item["Instances"]}
    assert reasons == {f"User initiated ({started + DESTROY:%Y-%m-%d %H:%M:%S} UTC)"}


def test_a_cluster_that_is_made_again_under_its_name_bills_a_second_time(cloud: Any) -> None:
    network = cloud.network()
    for _ in range(2):
        network.cluster()
        cloud.world.jump(timedelta(hours=3))
        network.eks.delete_cluster(name="c")
        cloud.aws.operation_ended()
        cloud.world.jump(timedelta(hours=1))
    lines = [line for line in cloud.aws.meter.bill().lines if line.kind == "eks_cluster"]
    assert [line.usd for line in lines] == [3 * usd("eks_cluster")] * 2


def test_what_a_session_takes_away_itself_ends_at_once(cloud: Any) -> None:
    network = cloud.network()
    cloud.world.jump(timedelta(minutes=30))
    ended = cloud.world.now
    cloud.client("ec2", agent="rentblock").delete_nat_gateway(NatGatewayId=network.nat_id)
    cloud.world.jump(timedelta(hours=9))
    [line] = [line for line in cloud.aws.meter.bill().lines if line.kind == "nat_gateway"]
    assert (line.ended, line.usd) == (ended, usd("nat_gateway"))


def test_a_cloud_after_its_teardown_is_empty_but_for_what_was_left(cloud: Any) -> None:
    a_session(cloud)
    assert [(item.kind, item.resource_id) for item in cloud.aws.inventory()] == [("iam_role", "nodes")]
    cloud.client("iam").delete_role(RoleName="nodes")
    assert cloud.aws.inventory() == []
