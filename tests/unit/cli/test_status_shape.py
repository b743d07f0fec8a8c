"""A program that reads `status --json` finds values under names that stay, in every state of a session."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from automation.cli.status_shape import OperationPart, StatusNow, status_now
from automation.ledger.record import Fault, OperationRun, PhaseSpan, Record, Residual
from automation.ledger.request import RentRequest
from automation.session.observation import Unknown
from automation.session.plan import plan_of
from automation.session.status import Status
from planning.block import Block, Moments
from planning.catalogue import load

START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
NOW = START + timedelta(hours=2)
DOCUMENTATION = Path(__file__).resolve().parents[3] / "docs" / "status.md"


@pytest.fixture
def record() -> Record:
    """A session that serves, after a fault, while its engine works."""
    block = Block(
        reservation_id="cr-0123456789abcdef0",
        offering_id="cb-0123456789abcdef0",
        instance_type="p6-b300.48xlarge",
        instance_count=1,
        region="us-west-2",
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=START,
        end=START + timedelta(hours=24),
        fee_usd=Decimal("3100.03"),
    )
    return Record(
        session="rtb-20261201-a1b2",
        mode="aws",
        account_id="123456789012",
        opened=START,
        request=RentRequest.model_validate({"endpoint_cidrs": ["192.0.2.1/32"]}),
        block=block,
        phases=(PhaseSpan(name="serve", started=START),),
        faults=tuple(Fault(at=START, what=f"Fault {number}.") for number in range(5)),
        operations=(OperationRun(number=1, name="up", pid=1, process_started=1.0, started=START),),
    )


def told(record: Record, reservation: str | Unknown = "active", **more: Any) -> dict[str, Any]:
    """What a program reads."""
    plan = plan_of(record, load()) if record.block else None
    status = Status(
        record=record,
        plan=plan,
        reservation=reservation,
        now=NOW,
        outside_usd=Decimal("12.5"),
        attended_by=4711,
        others_open=("rtb-20261202-z9y8",),
    )
    read = json.loads(status_now(replace(status, **more)).model_dump_json(), parse_float=Decimal)
    assert isinstance(read, dict)
    return read


def test_a_running_session_is_told_in_values(record: Record) -> None:
    read = told(record)
    assert (read["phase"], read["outcome"], read["accepted"]) == ("serve", None, False)
    assert (read["reservation_state"], read["reservation_note"]) == ("active", None)
    assert (read["block"]["fee_usd"], read["outside_usd"]) == (Decimal("3100.03"), Decimal("12.5"))
    assert datetime.fromisoformat(read["now"]) == NOW
    assert datetime.fromisoformat(read["moments"]["end"]) == datetime.fromisoformat(read["block"]["end"])
    assert datetime.fromisoformat(read["moments"]["drain"]).utcoffset() == timedelta(0)
    assert [fault["what"] for fault in read["faults"]] == [f"Fault {number}." for number in range(5)]
    assert read["operation"] == {"number": 1, "name": "up", "started": "2026-12-01T11:30:00Z", "interrupted": None}


def test_a_session_that_is_over_tells_its_outcome_and_what_is_left(record: Record) -> None:
    left = Residual(kind="nat_gateway", resource_id="nat-1", region="us-west-2", detail="", usd_per_day=Decimal("1.08"))
    ended = replace(record.operations[0], ended=NOW, exit_code=0)
    over = replace(record, phases=(), outcome="something is left", residual=(left,), operations=(ended,))
    read = told(over, reservation=Unknown(reason="AWS does not show it (any more)"))
    assert (read["phase"], read["outcome"], read["operation"]) == (None, "something is left", None)
    assert (read["reservation_state"], read["reservation_note"]) == (None, "AWS does not show it (any more)")
    assert (read["residual"][0]["resource_id"], read["residual"][0]["usd_per_day"]) == ("nat-1", Decimal("1.08"))


@pytest.mark.parametrize("capacity", ["block", "on-demand"])
def test_the_names_are_the_same_in_every_state(record: Record, capacity: str) -> None:
    request = record.request.model_copy(update={"capacity": capacity})
    before = replace(record, block=None, phases=(), faults=(), operations=(), request=request)
    read = told(before, reservation=Unknown(reason="AWS was not asked"), now=None, outside_usd=None)
    assert read.keys() == told(record).keys()
    assert [read[name] for name in ("block", "moments", "now", "outside_usd", "operation")] == [None] * 5


def _documented() -> Iterator[str]:
    for name, field in StatusNow.model_fields.items():
        list_of = "[]" if name in ("faults", "residual") else ""
        yield f"| `{name}{list_of}` | {field.description} |"
        if name == "moments":
            # Their meaning stands in the docstring of Moments alone.
            words = " ".join((Moments.__doc__ or "").split())
            names = [each.name for each in fields(Moments)]
            ends = [*(f" {later} " for later in names[1:]), "\0"]
            for moment, end in zip(names, ends, strict=True):
                meaning = words.partition(f" {moment} ")[2].partition(end)[0].strip()
                yield f"| `moments.{moment}` | {meaning} |"
        if name == "operation":
            for each, part in OperationPart.model_fields.items():
                yield f"| `operation.{each}` | {part.description} |"


def test_the_documentation_tells_every_field_and_no_other() -> None:
    rows = [line for line in DOCUMENTATION.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows == list(_documented())
