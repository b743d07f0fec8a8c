"""The instants of a session, the time its start may take, and the timeouts that follow."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from planning.block import Block, moments, valid_duration
from planning.budget import StartupBudget, startup_budget, timeouts
from planning.catalogue import load

START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
END = START + timedelta(days=1)
KIMI, B300 = load().model("kimi-k3"), load().instance_type("p6-b300.48xlarge")
WARM = startup_budget(KIMI, B300, weights="staged", caches="warm")


def ago(minutes: int) -> datetime:
    return END - timedelta(minutes=minutes)


def test_the_moments_of_a_day_keep_aws_rules() -> None:
    found = moments(START, END, WARM)
    assert found.start == START
    assert found.first_token_due == START + WARM.total
    assert (found.last_extension, found.drain) == (ago(60), ago(50))
    assert (found.eks_scale_in, found.ec2_termination, found.end) == (ago(40), ago(30), END)


def test_the_moments_come_in_the_order_of_their_names() -> None:
    found = list(vars(moments(START, END, WARM)).values())
    assert found == sorted(found)


def test_preparing_begins_early_enough_for_a_control_plane_and_its_nodes() -> None:
    slowest_seen = timedelta(minutes=16 + 5 + 5)
    assert START - moments(START, END, WARM).prepare_by >= slowest_seen * 2


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        (START.replace(tzinfo=None), END, "zone"),
        (END, START, "not before"),
        (START, START + timedelta(hours=1), "before its model serves"),
    ],
)
def test_a_block_in_which_nothing_could_be_served_has_no_moments(start: datetime, end: datetime, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        moments(start, end, WARM)


@pytest.mark.parametrize("days", [*range(1, 15), *range(21, 183, 7)])
def test_aws_sells_blocks_by_the_day_then_by_the_week(days: int) -> None:
    assert valid_duration(days * 24)


@pytest.mark.parametrize("hours", [-24, 0, 1, 23, 25, 15 * 24, 20 * 24, 22 * 24, 183 * 24, 189 * 24])
def test_aws_sells_no_other_length(hours: int) -> None:
    assert not valid_duration(hours)


def a_block(**changes: object) -> Block:
    facts: dict[str, object] = {
        "reservation_id": "cr-0123456789abcdef0",
        "offering_id": None,
        "instance_type": "p6-b300.48xlarge",
        "instance_count": 1,
        "region": "us-west-2",
        "availability_zone": "us-west-2b",
        "availability_zone_id": "usw2-az2",
        "start": START,
        "end": END,
        "fee_usd": Decimal("3100.03"),
    }
    return Block(**{**facts, **changes})  # type: ignore[arg-type]


def test_a_block_knows_its_zone_of_time_and_has_an_instance() -> None:
    assert a_block().end == END
    with pytest.raises(ValueError, match="zone"):
        a_block(end=END.replace(tzinfo=None))
    with pytest.raises(ValueError, match="not before"):
        a_block(end=START)
    with pytest.raises(ValueError, match="at least one"):
        a_block(instance_count=0)


def test_the_usual_start_of_kimi_k3_is_well_under_twenty_minutes() -> None:
    assert WARM.total < timedelta(minutes=17)
    assert WARM.weights == timedelta(seconds=355)  # 1,560.9 GB at 4.4 GB/s


def test_cold_caches_add_what_compiling_takes_and_the_hub_what_downloading_does() -> None:
    cold = startup_budget(KIMI, B300, weights="staged", caches="cold")
    hub = startup_budget(KIMI, B300, weights="hub", caches="warm")
    assert cold.engine >= timedelta(minutes=60)
    assert cold.weights == WARM.weights
    assert hub.weights == timedelta(seconds=1206)  # 1,560.9 GB at 1.6 GB/s, then at 6.8 GB/s from the disk
    assert hub.engine == WARM.engine


def test_a_slow_network_is_what_bounds_the_weights() -> None:
    small = load().model("qwen3-0.6b")
    budget = startup_budget(small, load().instance_type("g6.xlarge"), weights="staged", caches="warm")
    assert budget.weights == timedelta(seconds=5)  # 1.5 GB at 2.5 Gbit/s
    assert budget.image == timedelta(seconds=40)


def test_the_total_is_the_sum_of_its_phases_and_the_margin_lies_on_top() -> None:
    minute = timedelta(minutes=1)
    budget = StartupBudget(
        launch=minute,
        join=minute,
        device_plugin=minute,
        image=minute,
        weights=minute,
        engine=minute,
        acceptance=minute,
    )
    assert budget.total == 7 * minute
    assert budget.with_margin == 10.5 * minute


@pytest.mark.parametrize("weights", ["staged", "hub"])
@pytest.mark.parametrize("caches", ["warm", "cold"])
def test_no_timeout_ends_a_start_that_is_within_its_budget(weights: Any, caches: Any) -> None:
    budget = startup_budget(KIMI, B300, weights=weights, caches=caches)
    limits = timeouts(budget)
    loading_s = (budget.weights + budget.engine).total_seconds()
    probe_s = limits.startup_probe_period_s * limits.startup_probe_failure_threshold
    assert probe_s >= limits.engine_ready_timeout_s >= loading_s * 1.5
    assert limits.progress_deadline_s == limits.helm_timeout_s >= budget.total.total_seconds() * 1.5
    assert int(limits.pulumi_timeout.removesuffix("m")) * 60 > limits.helm_timeout_s


def test_a_first_boot_of_seventy_five_minutes_is_not_killed() -> None:
    limits = timeouts(startup_budget(KIMI, B300, weights="staged", caches="cold"))
    assert limits.engine_ready_timeout_s > 75 * 60


def test_a_small_model_still_gets_the_engines_own_default() -> None:
    budget = startup_budget(
        load().model("qwen3-0.6b"), load().instance_type("g6.xlarge"), weights="staged", caches="warm"
    )
    assert timeouts(budget).engine_ready_timeout_s == 600
