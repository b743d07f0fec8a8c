"""report.html stands alone, says what it is on every page, and shows what the report holds."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from rich.console import Console

from automation.accounts.page import page
from automation.accounts.report import build
from automation.accounts.schema import Report
from automation.accounts.summary import print_summary
from automation.accounts.waterfall import bars, rows
from automation.ledger.record import Record, Residual
from planning.catalogue import load

Otherwise = Callable[..., Record]


def report_of(record: Record) -> Report:
    return build(record, load(), {"pulumi": "3.272.0"})


class Outline(HTMLParser):
    """Tags, attributes that load something, and text."""

    VOID = frozenset({"meta", "rect", "br", "i"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_the_page_is_well_formed_and_loads_nothing(record: Record) -> None:
    text = page(report_of(record))
    outline = Outline(text)
    assert not outline.open
    assert not outline.loads
    assert not {"script", "link", "img", "iframe"} & set(outline.tags)
    assert "url(" not in text
    assert "@import" not in text


def test_a_rehearsal_says_so_on_top_across_and_on_every_printed_page(record: Record) -> None:
    text = page(report_of(record))
    assert "<title>REHEARSAL" in text
    assert 'content: "REHEARSAL: minutes and dollars are model values' in text
    assert text.count("REHEARSAL") >= 4
    assert "value of a model" in Outline(text).text


def test_a_real_session_is_not_called_a_rehearsal(told_otherwise: Otherwise) -> None:
    text = page(report_of(told_otherwise(mode="aws")))
    assert "position: fixed; inset: 0" not in text
    assert "<title>rtb-20261201-a1b2" in text
    assert "AWS account was used" not in text


def test_the_page_shows_money_minutes_checks_and_sources(record: Record) -> None:
    text = Outline(page(report_of(record))).text
    for said in (
        "US$3,100.03",
        "US$3,106.20",
        "95.71 %",
        "11 min 45 s",
        "Served 1,378.25 + lost 61.75 = paid 1,440.00 minutes",
        "wrong_model",
        "Nothing is left.",
        "https://aws.amazon.com/eks/pricing/, standard support",
        "pulumi 3.272.0",
        "Auto Scaling: the block was not active yet",
    ):
        assert said in text


def test_the_waterfall_is_told_in_words_too(record: Record) -> None:
    text = page(report_of(record))
    assert 'role="img" aria-labelledby="strip-title strip-desc"' in text
    assert "Start-up 11.75 minutes, Served 1,378.25 minutes, Tail 50.00 minutes." in Outline(text).text


def test_what_is_left_is_shown_with_its_price_and_never_called_nothing(told_otherwise: Otherwise) -> None:
    left = Residual(
        kind="nat_gateway", resource_id="nat-1", region="us-west-2", detail="available", usd_per_day=Decimal("1.08")
    )
    text = Outline(page(report_of(told_otherwise(residual=(left,), outcome="something is left")))).text
    assert "1 finding(s), US$1.08 a day" in text
    assert "Nothing is left" not in text


def test_words_from_outside_cannot_become_markup(told_otherwise: Otherwise, record: Record) -> None:
    check = replace(record.acceptance[0], ok=False, detail="<script>alert(1)</script>")
    text = page(report_of(told_otherwise(acceptance=(check,))))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("changes", [{"block": None, "purchases": ()}, {"acceptance": (), "startup": (), "phases": ()}])
def test_a_session_that_came_to_nothing_has_a_page_too(told_otherwise: Otherwise, changes: dict[str, object]) -> None:
    assert not Outline(page(report_of(told_otherwise(**changes, outcome=None)))).open


def test_the_bars_follow_each_other_and_fill_the_width(record: Record) -> None:
    report = report_of(record)
    for pieces in (bars(report), rows(report)):
        ends = [piece.x + piece.width for piece in pieces]
        assert all(abs(piece.x - end) <= Decimal("0.1") for piece, end in zip(pieces[1:], ends, strict=False))
        assert abs(ends[-1] - 1000) <= Decimal("0.1")


def test_the_terminal_names_what_failed_and_what_is_left(told_otherwise: Otherwise, record: Record) -> None:
    left = Residual(kind="vpc", resource_id="vpc-1", region="us-west-2", detail="", usd_per_day=Decimal("0.00"))
    check = replace(record.acceptance[0], ok=False, detail="/v1/models lists nothing.")
    bad = told_otherwise(residual=(left,), acceptance=(check, *record.acceptance[1:]), outcome="something is left")
    console = Console(width=100)
    with console.capture() as capture:
        print_summary(report_of(bad), console)
    for said in ("something is left", "7 of 8 checks", "model_id: /v1/models lists nothing.", "vpc vpc-1"):
        assert said in capture.get()


@pytest.mark.parametrize("width", [60, 100])
def test_the_terminal_says_the_same(record: Record, width: int) -> None:
    console = Console(width=width)
    with console.capture() as capture:
        print_summary(report_of(record), console)
    text = capture.get()
    for said in ("REHEARSAL", "ok", "95.71 %", "US$3,106.20", "50.00", "8 of 8 checks"):
        assert said in text
    assert max(len(line) for line in text.splitlines()) <= width
    lost = [row for row in rows(report_of(record)) if row.minutes]
    assert len(lost) > 5
    for row in lost:
        assert re.search(rf"{row.name} .* {row.minutes} +US\${row.usd:,.2f} ", text), row
