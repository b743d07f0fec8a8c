"""`down` takes away what is the session's and in no stack, the whole stack too when its state was lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from automation.errors import ExitCode
from automation.ledger.journal import Journal
from tests.end_to_end import stray
from tests.end_to_end.conftest import Wish

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal, Rehearse

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def rehearsal(rehearse: Rehearse) -> Rehearsal:
    """What `stray.py` did in a world."""
    [rehearsal] = rehearse(Wish(name="stray", arguments=("--", sys.executable, stray.__file__)))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


@pytest.fixture(scope="module")
def told(rehearsal: Rehearsal) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(rehearsal.printed)
    return told


def test_down_ends_well(told: dict[str, Any]) -> None:
    assert told["exit_code"] == ExitCode.OK, told["said"]


def test_the_cloud_is_empty(rehearsal: Rehearsal) -> None:
    assert {item.kind for item in rehearsal.seen.left} == {"capacity_block"}


def test_everything_was_deleted_by_the_session_itself(rehearsal: Rehearsal, told: dict[str, Any]) -> None:
    calls = [call for call in rehearsal.seen.calls if call.principal == "session" and call.changed_something]
    assert set(told["made"].values()) <= {str(value) for call in calls for value in call.parameters.values()}
    deletions = {call.action for call in calls}
    assert {
        "DeleteLoadBalancer",
        "DeleteNetworkInterface",
        "DeleteSecurityGroup",
        "ReleaseAddress",
        "DeleteNatGateway",
        "DeleteVolume",
        "DeleteNodegroup",
        "DeleteCluster",
        "DeleteVpc",
        "DeleteRole",
        "DeleteLogGroup",
    } <= deletions


def test_the_report_says_ok_with_nothing_left(rehearsal: Rehearsal, tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_text(rehearsal.seen.journals[0], encoding="utf-8")
    record = Journal(file).record()
    assert (record.outcome, record.residual) == ("ok", ())
    assert record.sweeps > 1
