"""A rehearsal of a program that does not come up says so soon, instead of trying for a whole simulated day."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from automation.ledger.folder import SessionFolder
from automation.ledger.record import OperationRun, Record
from automation.session.display import Quiet
from rehearsal import straight_way
from rehearsal.delays import load_scenario
from rehearsal.straight_way import UP_TRIES, request_of

OPENED = datetime(2027, 1, 4, 16, 0, tzinfo=UTC)
Until = Callable[[Record], bool]


def record(*exit_codes: int) -> Record:
    request = request_of(load_scenario("default"), parallel=16)
    runs = tuple(
        OperationRun(
            number=number,
            name="up",
            pid=1,
            process_started=1.0,
            started=OPENED + timedelta(hours=number),
            ended=OPENED + timedelta(hours=number),
            exit_code=code,
        )
        for number, code in enumerate(exit_codes, start=1)
    )
    return Record(
        session="s", mode="rehearsal", account_id="123456789012", opened=OPENED, request=request, operations=runs
    )


@pytest.mark.parametrize(
    ("seen", "ended"),
    [
        ((9,) * UP_TRIES, True),
        ((9,) * (UP_TRIES - 1), False),
        ((9, 0), False),
        ((9,) * UP_TRIES + (0,), False),
    ],
)
def test_enough_failures_in_a_row_end_a_rehearsal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seen: tuple[int, ...], ended: bool
) -> None:
    reasons: list[str] = []

    def run_to_end(request: object, target: object, *, approve: object, display: object, until: Until) -> Record:
        now = record(*seen)
        return now if until(now) else replace(now, outcome="ok")

    def end(target: object, folder: SessionFolder, display: object, reason: str) -> None:
        assert folder.session == "s"
        reasons.append(reason)

    monkeypatch.setattr(straight_way, "world_target", lambda: SimpleNamespace(home=tmp_path))
    monkeypatch.setattr(straight_way, "run_to_end", run_to_end)
    monkeypatch.setattr(straight_way, "end", end)
    straight_way._run(record().request, Quiet())
    assert reasons == ([f"the stack did not come up in {UP_TRIES} tries of a rehearsal"] if ended else [])


def test_an_end_that_was_asked_for_is_left_to_go_its_way() -> None:
    asked = replace(record(*(9,) * UP_TRIES), end_asked=OPENED)
    assert not straight_way.does_not_come_up(asked)
