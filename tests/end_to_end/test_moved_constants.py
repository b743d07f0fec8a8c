"""A model must not prove itself: figures that are moved move the report and the cloud's own bill as arithmetic says.

The formulas here are neither the product's nor the meter's: they count from the seed's draws, the prices and the clock.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from automation.accounts.report import build
from automation.ledger.journal import Journal
from planning.catalogue import DATA, load
from rehearsal.delays import load_constants
from tests.end_to_end.conftest import Wish
from tests.end_to_end.observed import MOVED

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal, Rehearse

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

CENT = Decimal("0.01")
CONSTANTS = load_constants()
BLOCK_PRICE = "block.p6-b300.48xlarge"

# What the stack holds beside the block's instance: components/network.py and components/node_groups.py.
SYSTEM_VOLUME_GIB = 20
GPU_VOLUME_GIB = 200

# A delay on paid time, and one that keeps everything that bills waiting at the end.
MOVES = {"image_pull": MOVED, "eks_cluster_delete": MOVED}


@pytest.fixture(scope="module")
def moved(rehearse: Rehearse) -> Rehearsal:
    """The default scenario with two delays and the price of a block 20 % higher in the simulator."""
    delays = {name: str(factor) for name, factor in MOVES.items()}
    [rehearsal] = rehearse(Wish(name="moved", delays=delays, prices={BLOCK_PRICE: str(MOVED)}))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


def drawn_s(delay: str, moves: Mapping[str, Decimal]) -> int:
    """The first draw of a delay with the seed of these rehearsals, in seconds."""
    known, factor = CONSTANTS.delays.delay(delay), moves.get(delay, Decimal(1))
    return Random(f"1/{delay}/1").randint(round(known.low_s * factor), round(known.high_s * factor))


def expected_minutes(moves: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Where the paid minutes go. The session looks every 10 s, while the engine starts every 5 s; what carries no time
    of its own in EC2 or in the cluster ends when it is seen."""
    running = drawn_s("ec2_launch", moves)
    joined = running + drawn_s("node_join", moves)
    with_gpus = joined + drawn_s("device_plugin", moves)
    started = with_gpus + drawn_s("image_pull", moves)
    loaded = started + drawn_s("weights_staged", moves)
    ready = loaded + drawn_s("engine_warm", moves)
    ends_s = {
        "launch": next_look(running, 10),
        "join": joined,
        "device_plugin": next_look(with_gpus, 10),
        "image": started,
        "weights": loaded,
        "engine": ready,
    }
    ends = {phase: (Decimal(end) / 60).quantize(CENT) for phase, end in ends_s.items()}
    return {
        phase: end - before for (phase, end), before in zip(ends.items(), [Decimal(0), *ends.values()], strict=False)
    }


def next_look(at_s: int, every_s: int) -> int:
    return -(-at_s // every_s) * every_s


@pytest.mark.parametrize("moves", [{}, MOVES], ids=["as it is", "moved"])
def test_a_moved_delay_moves_the_minutes_that_are_lost(
    moves: Mapping[str, Decimal], default: Rehearsal, moved: Rehearsal
) -> None:
    report = (moved if moves else default).report
    lost = report.minutes_lost.model_dump()
    assert {phase: lost[phase] for phase in expected_minutes(moves)} == expected_minutes(moves)
    before_the_acceptance = sum(expected_minutes(moves).values(), Decimal(0))
    assert report.served_minutes == 24 * 60 - 50 - before_the_acceptance - lost["acceptance"]
    # The checks themselves take seconds, and so does noticing that the model is ready.
    assert 0 < lost["acceptance"] < Decimal("0.2")


def test_the_moved_delay_is_longer(default: Rehearsal, moved: Rehearsal) -> None:
    assert moved.report.minutes_lost.image > default.report.minutes_lost.image


@dataclass(frozen=True, kw_only=True)
class Times:
    """When the stack and its GPU instance billed."""

    stack_from: datetime
    stack_until: datetime
    gpus_from: datetime
    gpus_until: datetime

    @staticmethod
    def of(rehearsal: Rehearsal) -> Times:
        seen = rehearsal.seen
        [destroy] = [phase for phase in rehearsal.report.phases if phase.name == "destroy"]
        assert destroy.ended is not None
        return Times(
            stack_from=seen.first("aws", action="CreateCluster").when,
            stack_until=destroy.ended,
            gpus_from=seen.first("instance", group="gpu", state="running").when,
            gpus_until=seen.first("instance", group="gpu", state="terminated").when,
        )


def expected_usd(times: Times, moved_price: str = "") -> Decimal:
    """What bills beside the block's fee, in cents."""

    def usd(price: str) -> Decimal:
        return CONSTANTS.prices.usd(price) * (MOVED if price == moved_price else 1)

    hours, gpu_hours = (
        Decimal((until - since) // timedelta(seconds=1)) / 3600
        for since, until in ((times.stack_from, times.stack_until), (times.gpus_from, times.gpus_until))
    )
    gib_hours = SYSTEM_VOLUME_GIB * hours + GPU_VOLUME_GIB * gpu_hours
    total = (
        (usd("eks_cluster") + usd("public_ipv4") + usd("ec2.m7i.large")) * hours
        + usd("nat_gateway") * hours.to_integral_value(ROUND_CEILING)
        + usd("ebs_gp3") / 730 * gib_hours
    )
    return total.quantize(CENT, ROUND_HALF_UP)


# Where planning keeps the price that the simulated cloud keeps under the first name.
PLANNED = {
    "eks_cluster": ("constants", "[eks_cluster_usd_per_hour]"),
    "nat_gateway": ("constants", "[nat_gateway_usd_per_started_hour]"),
    "public_ipv4": ("constants", "[public_ipv4_usd_per_hour]"),
    "ebs_gp3": ("constants", "[ebs_gp3_usd_per_gib_month]"),
    "ec2.m7i.large": ("instances", '["m7i.large"]'),
}


@pytest.mark.parametrize("price", PLANNED)
def test_a_price_moved_in_both_files_moves_both_bills(price: str, default: Rehearsal, tmp_path: Path) -> None:
    expected = expected_usd(Times.of(default), price)
    assert default.seen.moved_bills[price] == expected
    (tmp_path / "journal.jsonl").write_text(default.seen.journals[0], encoding="utf-8")
    catalogue = load(catalogue_with(price, tmp_path / "catalogue"))
    report = build(Journal(tmp_path / "journal.jsonl").record(), catalogue, {})
    assert report.cost.outside_usd == expected
    assert report.cost.block_usd == default.report.cost.block_usd


def catalogue_with(price: str, folder: Path) -> Path:
    """A copy of planning's catalogue with one price 20 % higher."""
    shutil.copytree(DATA, folder)
    file, section = PLANNED[price]
    text = (folder / f"{file}.toml").read_text(encoding="utf-8")
    before, after = text.split(section)
    moved, count = re.subn(
        r'((?:^|on_demand_usd_per_hour = \{ )value = ")([^"]+)',
        lambda found: f"{found[1]}{Decimal(found[2]) * MOVED}",
        after,
        count=1,
        flags=re.MULTILINE,
    )
    assert count == 1
    (folder / f"{file}.toml").write_text(f"{before}{section}{moved}", encoding="utf-8")
    return folder


def test_a_moved_delay_moves_both_bills(default: Rehearsal, moved: Rehearsal) -> None:
    before, after = Times.of(default), Times.of(moved)
    longer_s = drawn_s("eks_cluster_delete", MOVES) - drawn_s("eks_cluster_delete", {})
    assert longer_s > 0
    assert after.stack_until - before.stack_until == timedelta(seconds=longer_s)
    assert after.stack_from == before.stack_from
    for rehearsal, times in ((default, before), (moved, after)):
        assert rehearsal.report.cost.outside_usd == rehearsal.seen.bill.outside_usd == expected_usd(times)


def test_a_moved_price_of_a_block_moves_its_fee(default: Rehearsal, moved: Rehearsal) -> None:
    for rehearsal, factor in ((default, 1), (moved, MOVED)):
        fee = (CONSTANTS.prices.usd(BLOCK_PRICE) * factor * 24).quantize(CENT)
        assert rehearsal.report.cost.block_usd == rehearsal.seen.bill.block_usd == fee
        hours = rehearsal.report.served_minutes / 60
        total = fee + rehearsal.report.cost.outside_usd
        assert rehearsal.report.cost.per_served_hour_usd == (total / hours).quantize(CENT)
