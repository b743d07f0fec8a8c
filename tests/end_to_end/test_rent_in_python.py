"""`with rent(...) as session`: the model answers inside the block, and leaving it in any way leaves nothing behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from automation.ledger.journal import Journal
from automation.ledger.record import Record
from tests.end_to_end import rented
from tests.end_to_end.conftest import Wish

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal, Rehearse

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def script(rehearse: Rehearse) -> Rehearsal:
    """What `rented.py` did in a world: two sessions, the second left by an exception."""
    [rehearsal] = rehearse(Wish(name="rented", arguments=("--", sys.executable, rented.__file__)))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


@pytest.fixture(scope="module")
def told(script: Rehearsal) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(script.printed)
    return told


@pytest.fixture
def records(script: Rehearsal, tmp_path: Path) -> list[Record]:
    def record(number: int, journal: str) -> Record:
        file = tmp_path / f"{number}.jsonl"
        file.write_text(journal, encoding="utf-8")
        return Journal(file).record()

    return sorted(
        (record(number, journal) for number, journal in enumerate(script.seen.journals)), key=lambda one: one.opened
    )


def test_the_model_answers_inside_the_block(told: list[dict[str, Any]]) -> None:
    assert len(told) == 2
    assert all(one["answer"] for one in told)


def test_status_shows_the_session_of_the_script(told: list[dict[str, Any]]) -> None:
    for one in told:
        assert json.loads(one["status"])["session"] == one["session"]


def test_an_error_of_the_script_is_its_own(told: list[dict[str, Any]]) -> None:
    assert [one.get("error") for one in told] == [None, rented.ERROR]


def test_leaving_the_block_drains_destroys_and_sweeps(records: list[Record], told: list[dict[str, Any]]) -> None:
    assert [record.session for record in records] == [one["session"] for one in told]
    for record in records:
        assert record.drain_asked is not None
        assert record.destroyed
        assert record.sweeps
        assert record.residual == ()
        assert record.outcome == "ok"
        assert record.block is not None
        assert record.swept_at is not None
        assert record.swept_at < record.block.end


def test_each_block_is_bought_once_and_nothing_else_is_left(script: Rehearsal) -> None:
    assert script.seen.bill.purchases == 2
    assert {item.kind for item in script.seen.left} == {"capacity_block"}
