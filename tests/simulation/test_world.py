"""Virtual time, draws and the story."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from pydantic import ValidationError

from rehearsal.delays import CONSTANTS, Delay, UnknownDelay, UnknownScenario, load_constants, load_scenario
from rehearsal.world import DEFAULT_START, World


def world(seed: int = 1) -> World:
    return World(DEFAULT_START, seed, load_constants().delays)


def test_events_run_at_their_instant_and_in_the_order_in_which_they_were_scheduled() -> None:
    a_world = world()
    seen: list[tuple[str, datetime]] = []
    for name, minutes in (("late", 5), ("first", 1), ("second", 1)):
        a_world.after(timedelta(minutes=minutes), name, lambda name=name: seen.append((name, a_world.now)))  # type: ignore[misc]
    a_world.jump(timedelta(minutes=3))
    minute = DEFAULT_START + timedelta(minutes=1)
    assert seen == [("first", minute), ("second", minute)]
    assert a_world.now == DEFAULT_START + timedelta(minutes=3)
    assert a_world.next_event() == DEFAULT_START + timedelta(minutes=5)


def test_an_event_that_is_scheduled_by_an_event_runs_in_the_same_advance() -> None:
    a_world = world()
    seen: list[datetime] = []
    minute = timedelta(minutes=1)
    a_world.after(minute, "outer", lambda: a_world.after(minute, "inner", lambda: seen.append(a_world.now)))
    a_world.jump(timedelta(hours=1))
    assert seen == [DEFAULT_START + 2 * minute]


def test_an_event_that_would_advance_the_world_is_an_error() -> None:
    a_world = world()
    a_world.after(timedelta(0), "greedy", lambda: a_world.jump(timedelta(hours=1)))
    with pytest.raises(RuntimeError, match="greedy"):
        a_world.jump(timedelta(minutes=1))


def test_an_event_in_the_past_runs_now() -> None:
    a_world = world()
    seen: list[datetime] = []
    a_world.at(DEFAULT_START - timedelta(days=1), "past", lambda: seen.append(a_world.now))
    a_world.advance(DEFAULT_START - timedelta(days=2))
    assert seen == [DEFAULT_START]
    assert a_world.now == DEFAULT_START


def test_a_draw_depends_on_seed_name_and_count_and_not_on_other_draws() -> None:
    one, other = world(), world()
    other.draw("node_join")
    draws = [one.draw("ec2_launch") for _ in range(5)]
    assert draws == [other.draw("ec2_launch") for _ in range(5)]
    assert len(set(draws)) > 1
    another = world(seed=2)
    assert draws != [another.draw("ec2_launch") for _ in range(5)]


def test_a_draw_stays_between_the_limits_of_its_delay() -> None:
    a_world = world()
    delay = a_world.delays.delay("node_join")
    draws = [a_world.draw("node_join").total_seconds() for _ in range(200)]
    assert delay.low_s <= min(draws) < max(draws) <= delay.high_s
    with pytest.raises(UnknownDelay):
        a_world.draw("nothing")


def test_the_story_is_the_same_whatever_the_order_inside_an_instant() -> None:
    one, other = world(), world()
    one.note("aws", action="CreateVpc")
    one.note("aws", action="CreateRole")
    other.note("aws", action="CreateRole")
    other.note("aws", action="CreateVpc")
    assert one.story != other.story
    assert one.story_lines() == other.story_lines()
    assert one.story_lines()[0] == "2027-01-04T16:00:00+00:00 aws action=CreateRole"


def test_every_constant_says_where_it_comes_from() -> None:
    constants = load_constants()
    groups = (constants.delays.by_name, constants.prices.by_name, constants.markets, constants.refusals)
    for group in (*groups, constants.cluster_versions, constants.addons, constants.node_amis):
        for name, constant in group.items():
            assert constant.source, name
            assert datetime.fromisoformat(constant.date), name


def test_a_constant_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValidationError, match="below low_s"):
        Delay(low_s=5, high_s=4, source="x", date="2027-01-01", confidence="A")
    assert CONSTANTS.is_file()


def test_one_constant_moves_alone() -> None:
    constants = load_constants()
    moved = constants.prices.scaled("eks_cluster", Decimal("1.2"))
    assert moved.usd("eks_cluster") == constants.prices.usd("eks_cluster") * Decimal("1.2")
    assert moved.usd("nat_gateway") == constants.prices.usd("nat_gateway")
    assert constants.delays.scaled("node_join", Decimal(2)).delay("node_join").low_s == 180


@pytest.mark.parametrize("name", ["default", "cold-cache", "engine-crash"])
def test_a_scenario_names_delays_that_exist(name: str) -> None:
    scenario, delays = load_scenario(name), load_constants().delays
    assert scenario.name == name
    for delay in (scenario.device_plugin, scenario.image, scenario.weights_load, scenario.engine):
        assert delays.delay(delay)
    assert scenario.engine_crash is None or delays.delay(scenario.engine_crash)


def test_an_unknown_scenario_is_answered_with_those_that_exist() -> None:
    with pytest.raises(UnknownScenario, match="cold-cache, default, engine-crash"):
        load_scenario("../constants")
