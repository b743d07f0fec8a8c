"""What lies outside the fee, what of a block is useful, and which offer to take."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from planning.budget import startup_budget
from planning.catalogue import UnknownName, load
from planning.costs import (
    LOSS_CAUSES,
    STARTUP_PHASES,
    Usage,
    UsageKind,
    hosted_break_even_tokens_per_s,
    outside_usd,
    usage_usd,
    useful_hours,
)
from planning.ranking import Offer, rank

KNOWN = load()
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
BUDGET = startup_budget(
    KNOWN.model("kimi-k3"), KNOWN.instance_type("p6-b300.48xlarge"), weights="staged", caches="warm"
)


def used(kind: UsageKind, hours: str, quantity: str = "1", detail: str = "") -> Usage:
    ended = START + timedelta(seconds=float(Decimal(hours) * 3600))
    return Usage(
        kind=kind, resource_id=f"{kind}-1", detail=detail, quantity=Decimal(quantity), started=START, ended=ended
    )


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (used("eks_cluster", "26"), "2.60"),
        (used("nat_gateway", "25.01"), "1.17"),  # 26 started hours
        (used("nat_gateway", "1"), "0.05"),  # 0.045, rounded up by half a cent
        (used("public_ipv4", "26"), "0.13"),
        (used("ec2_instance", "10", detail="m7i.large"), "1.01"),
        (used("ec2_instance", "1", quantity="2", detail="p6-b300.48xlarge"), "284.83"),
        (used("ebs_gp3_gib", "730", quantity="200"), "16.00"),
        (used("ebs_gp3_gib", "36.5", quantity="200"), "0.80"),
    ],
)
def test_each_kind_is_billed_by_its_own_rule(usage: Usage, usd: str) -> None:
    assert outside_usd([usage], KNOWN) == Decimal(usd)


def test_the_bill_is_rounded_once_at_its_end() -> None:
    three = [used("public_ipv4", "0.7") for _ in range(3)]  # 0.35 cents each
    assert outside_usd(three, KNOWN) == Decimal("0.01")
    assert sum(outside_usd([usage], KNOWN) for usage in three) == 0
    assert outside_usd([], KNOWN) == Decimal("0.00")


def test_what_still_runs_is_counted_until_the_instant_that_is_asked_for() -> None:
    running = replace(used("eks_cluster", "1"), ended=None)
    assert usage_usd(running, KNOWN, until=START + timedelta(hours=5)) == Decimal("0.5")
    assert usage_usd(running, KNOWN, until=START - timedelta(hours=5)) == 0
    with pytest.raises(ValueError, match="still runs"):
        outside_usd([running], KNOWN)


def test_an_instance_without_a_price_is_not_billed_as_free() -> None:
    with pytest.raises(UnknownName, match=r"p5e\.48xlarge"):
        outside_usd([used("ec2_instance", "1", detail="p5e.48xlarge")], KNOWN)


def test_useful_hours_leave_out_the_start_and_the_tail() -> None:
    lost = BUDGET.total + timedelta(minutes=50)
    assert useful_hours(START, START + timedelta(hours=24), BUDGET) * 3600 == 24 * 3600 - int(lost.total_seconds())
    assert useful_hours(START, START + timedelta(minutes=30), BUDGET) == 0


def test_causes_of_loss_are_the_phases_of_the_start_then_restart_and_tail() -> None:
    assert (*STARTUP_PHASES, "restart", "tail") == LOSS_CAUSES
    assert set(vars(BUDGET)) == set(STARTUP_PHASES)


def test_break_even_with_a_hosted_api() -> None:
    rate = hosted_break_even_tokens_per_s(
        usd_per_hour=Decimal("129.168"), served_share=Decimal("0.97"), hosted_usd_per_million_tokens=Decimal(15)
    )
    assert rate is not None
    assert round(rate) == 2466
    nothing = hosted_break_even_tokens_per_s(
        usd_per_hour=Decimal("129.168"), served_share=Decimal(0), hosted_usd_per_million_tokens=Decimal(15)
    )
    assert nothing is None


def an_offer(name: str, hours: int, fee: str, **changes: object) -> Offer:
    facts: dict[str, object] = {
        "offering_id": name,
        "instance_type": "p6-b300.48xlarge",
        "instance_count": 1,
        "region": "us-west-2",
        "availability_zone": "us-west-2b",
        "availability_zone_id": "usw2-az2",
        "start": START,
        "end": START + timedelta(hours=hours),
        "fee_usd": Decimal(fee),
        "currency": "USD",
    }
    return Offer(**{**facts, **changes})  # type: ignore[arg-type]


def names(offers: list[Offer], max_fee: str | None = None, max_hour: str | None = None) -> list[tuple[str, bool]]:
    found = rank(
        offers,
        BUDGET,
        max_fee_usd=Decimal(max_fee) if max_fee else None,
        max_usd_per_useful_hour=Decimal(max_hour) if max_hour else None,
    )
    return [(ranked.offer.offering_id, ranked.refused is None) for ranked in found]


def test_the_cheapest_fee_is_not_the_cheapest_useful_hour() -> None:
    part_day, day = an_offer("cb-part", 6, "775.01"), an_offer("cb-day", 24, "3100.03")
    assert names([part_day, day]) == [("cb-day", True), ("cb-part", True)]


def test_of_two_equal_prices_the_earlier_start_comes_first() -> None:
    later = an_offer("cb-a", 24, "3100.03", start=START + timedelta(days=1), end=START + timedelta(days=2))
    assert names([later, an_offer("cb-b", 24, "3100.03")]) == [("cb-b", True), ("cb-a", True)]


def test_of_two_equal_offers_the_place_decides_and_not_the_id_which_each_search_draws_anew() -> None:
    for ids in (("cb-a", "cb-b"), ("cb-b", "cb-a")):
        west = an_offer(ids[0], 24, "3100.03")
        east = an_offer(ids[1], 24, "3100.03", region="us-east-1", availability_zone="us-east-1a")
        assert names([west, east]) == [(ids[1], True), (ids[0], True)]


def test_more_instances_divide_the_price_of_a_gpu_hour() -> None:
    one, two = rank(
        [an_offer("cb-1", 24, "3100"), an_offer("cb-2", 24, "6200", instance_count=2)],
        BUDGET,
        max_fee_usd=None,
        max_usd_per_useful_hour=None,
    )
    assert one.usd_per_useful_gpu_hour == two.usd_per_useful_gpu_hour
    assert one.useful_hours == two.useful_hours


@pytest.mark.parametrize(
    ("offer", "why"),
    [
        (an_offer("cb-x", 24, "3100.03", currency="EUR"), "EUR"),
        (an_offer("cb-x", 1, "130"), "before its model could serve"),
        (an_offer("cb-x", 24, "5000.01"), r"above the cap of US\$5,000.00"),
        (an_offer("cb-x", 24, "4900"), r"useful hour costs US\$213.75, above the cap of US\$200.00"),
        (an_offer("cb-x", 24, "100", instance_type="p7.nonsense"), "unknown instance type"),
    ],
)
def test_an_offer_that_must_not_be_bought_says_why_and_comes_last(offer: Offer, why: str) -> None:
    good = an_offer("cb-good", 24, "3100.03")
    ranked = rank([offer, good], BUDGET, max_fee_usd=Decimal(5000), max_usd_per_useful_hour=Decimal(200))
    assert [entry.offer.offering_id for entry in ranked] == ["cb-good", "cb-x"]
    assert ranked[0].refused is None
    assert ranked[1].refused is not None
    assert re.search(why, ranked[1].refused)
