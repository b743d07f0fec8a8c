"""report.json has the promised shape and figures that agree with each other and with an independent formula."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel
from rich.console import Console

from automation.accounts.page import page
from automation.accounts.report import build, write
from automation.accounts.schema import Report
from automation.accounts.summary import print_summary
from automation.accounts.waterfall import rows
from automation.errors import MachineInTheWay
from automation.ledger.record import Record
from automation.ledger.request import RentRequest
from planning.catalogue import load
from planning.costs import LOSS_CAUSES, Usage

Otherwise = Callable[..., Record]
Minute = Callable[[float], datetime]

# The keys of the design, in its order.
KEYS = (
    *("session", "route", "mode", "outcome", "block", "purchases", "phases", "first_token_seconds"),
    *("served_minutes", "paid_minutes", "served_share", "minutes_lost", "acceptance", "cost", "residual"),
    *("faults", "constants_used", "versions"),
)
BLOCK_KEYS = (
    *("reservation_id", "offering_id", "instance_type", "instance_count", "availability_zone"),
    *("start", "end", "fee_usd"),
)


def report_of(record: Record) -> Report:
    return build(record, load(), {"pulumi": "3.272.0"})


@pytest.fixture
def written(record: Record, tmp_path: Path) -> dict[str, object]:
    write(report_of(record), tmp_path)
    return json.loads((tmp_path / "report.json").read_text(), parse_float=Decimal)


def test_the_file_has_exactly_the_fields_of_the_design(written: dict[str, object]) -> None:
    assert tuple(written) == KEYS
    assert list(written["minutes_lost"]) == list(LOSS_CAUSES)
    assert tuple(written["block"]) == BLOCK_KEYS
    assert {tuple(phase) for phase in written["phases"]} == {("name", "started", "ended", "paid")}
    assert {tuple(check) for check in written["acceptance"]} == {("check", "ok", "detail")}
    assert list(written["cost"]) == [
        *("block_usd", "outside_usd", "per_served_hour_usd", "hosted_break_even_tokens_per_s")
    ]
    assert {tuple(constant) for constant in written["constants_used"]} == {("name", "value", "source", "confidence")}


def test_the_printed_minutes_add_up(written: dict[str, object]) -> None:
    lost = sum(written["minutes_lost"].values())
    assert lost + written["served_minutes"] == written["paid_minutes"] == 1440


def test_times_are_utc_and_figures_are_numbers(written: dict[str, object]) -> None:
    assert written["block"]["start"] == "2026-12-01T11:30:00Z"
    assert written["block"]["fee_usd"] == Decimal("3100.03")
    assert written["first_token_seconds"] == 705
    assert written["served_share"] == Decimal("0.9571")


def test_money_agrees_with_a_formula_of_its_own(written: dict[str, object]) -> None:
    hours = Decimal(1455) / 60
    # EKS, NAT by started hour, one IPv4 address, one m7i.large, 20 GiB of gp3
    outside = hours * Decimal("0.10") + 25 * Decimal("0.045") + hours * Decimal("0.005")
    outside += hours * Decimal("0.1008") + hours * 20 * Decimal("0.08") / 730
    cost = written["cost"]
    assert cost["outside_usd"] == round(outside, 2)
    assert cost["block_usd"] == Decimal("3100.03")
    per_hour = (Decimal("3100.03") + cost["outside_usd"]) / (Decimal("1378.25") / 60)
    assert cost["per_served_hour_usd"] == round(per_hour, 2)
    # 15 US$ per million output tokens
    assert abs(cost["hosted_break_even_tokens_per_s"] - per_hour / 15 * 1_000_000 / 3600) < Decimal("0.1")


def test_a_session_that_never_served_has_no_price_per_served_hour(told_otherwise: Otherwise, record: Record) -> None:
    phases = tuple(span for span in record.phases if span.name != "serve")
    cost = report_of(told_otherwise(startup=(), phases=phases)).cost
    assert cost.per_served_hour_usd is None
    assert cost.hosted_break_even_tokens_per_s is None


def test_a_block_whose_price_nobody_told_has_no_cost_that_could_be_told(
    told_otherwise: Otherwise, record: Record
) -> None:
    assert record.block is not None
    report = report_of(told_otherwise(purchases=(), block=replace(record.block, offering_id=None, fee_usd=None)))
    assert (report.cost.block_usd, report.cost.per_served_hour_usd) == (None, None)
    assert report.cost.hosted_break_even_tokens_per_s is None
    assert report.cost.outside_usd > 0
    assert {row.usd for row in rows(report)} == {None}
    assert 'In all</th><td></td><td></td><td class="n">—<' in page(report)
    console = Console(file=StringIO(), width=100)
    print_summary(report, console)
    assert "— block" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_phase_is_paid_when_a_part_of_it_lies_in_the_block(record: Record) -> None:
    paid = {phase.name: phase.paid for phase in report_of(record).phases}
    assert not any(paid[name] for name in ("buy", "prepare", "wait"))
    assert all(paid[name] for name in ("start", "accept", "serve", "drain", "destroy"))


def test_what_still_bills_is_counted_to_the_last_instant_of_the_record(
    told_otherwise: Otherwise, minute: Minute
) -> None:
    running = Usage(
        kind="eks_cluster", resource_id="c", detail="", quantity=Decimal(1), started=minute(-30), ended=None
    )
    assert report_of(told_otherwise(usage=(running,))).cost.outside_usd == Decimal("2.40")


def test_a_price_that_nobody_knows_is_a_gap_that_is_said(told_otherwise: Otherwise, record: Record) -> None:
    odd = replace(record.usage[3], detail="x9z.mega")
    report = report_of(told_otherwise(usage=(record.usage[0], odd)))
    assert [line.kind for line in report.bill] == ["eks_cluster"]
    assert "x9z.mega" in report.faults[-1].what


def test_constants_carry_source_and_confidence_and_come_once(record: Record) -> None:
    constants = report_of(record).constants_used
    names = [constant.name for constant in constants]
    assert len(set(names)) == len(names)
    assert {"eks_cluster_usd_per_hour", "m7i.large.on_demand_usd_per_hour", "launch_s"} <= set(names)
    assert all(constant.source and constant.confidence for constant in constants)


def _described(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """A line of the documentation's table for each field that is written."""
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        parts = [part for part in get_args(field.annotation) if isinstance(part, type) and issubclass(part, BaseModel)]
        own = [field.annotation] if isinstance(field.annotation, type) else []
        (part,) = [*parts, *(cls for cls in own if issubclass(cls, BaseModel))] or [None]
        dots = "[]" if get_origin(field.annotation) is tuple else ""
        meaning = field.description or (part.__doc__ if part else "")
        yield f"| `{path}{name}{dots}` | {meaning} |"
        if part:
            yield from _described(part, f"{path}{name}{dots}.")


def test_the_documentation_tells_every_field_and_no_other() -> None:
    text = Path("docs/report.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == list(_described(Report))


def test_a_report_of_a_newer_version_is_read(record: Record) -> None:
    text = json.dumps({**json.loads(report_of(record).model_dump_json()), "field of tomorrow": 1})
    assert Report.model_validate_json(text).model_dump_json() == report_of(record).model_dump_json()


def test_a_session_on_demand_has_a_report(told_otherwise: Otherwise, on_demand: RentRequest) -> None:
    report = report_of(told_otherwise(request=on_demand, purchases=()))
    assert report.block is None
    assert report.cost.block_usd == 0


def test_a_folder_that_cannot_be_written_is_this_machines_fault(record: Record, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineInTheWay):
        write(report_of(record), tmp_path / "file")


def test_nothing_half_written_is_left_beside_the_report(record: Record, tmp_path: Path) -> None:
    write(report_of(record), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]
