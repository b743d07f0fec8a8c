"""What people read fits their terminal: no id, date or amount is broken into pieces, at whatever width."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from automation.cli.doctor import Finding
from automation.cli.views import findings_view, offers_view
from planning.ranking import Offer, RankedOffer

START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
WIDTHS = [60, 80, 120, 159, 160, 200]


def lines(view: Callable[[int], RenderableType], width: int) -> list[str]:
    console = Console(file=StringIO(), width=width)
    console.print(view(console.width))
    printed = console.file
    assert isinstance(printed, StringIO)
    return printed.getvalue().splitlines()


def ranked(number: int, refused: str | None) -> RankedOffer:
    offer = Offer(
        offering_id=f"cb-0123456789abcde{number:02}",
        instance_type="p6-b300.48xlarge",
        instance_count=16,
        region="ap-southeast-1",
        availability_zone="ap-southeast-1b",
        availability_zone_id="apse1-az2",
        start=START,
        end=START + timedelta(hours=24),
        fee_usd=Decimal("49600.48"),
        currency="USD",
    )
    return RankedOffer(
        offer=offer, useful_hours=Decimal("23.1"), usd_per_useful_gpu_hour=Decimal("16.775"), refused=refused
    )


OFFERS = (ranked(1, None), ranked(2, "the fee of US$49,600.48 is above the cap of US$3,000.00"))
WHOLE = (
    "cb-0123456789abcde01",
    "cb-0123456789abcde02",
    "16 x p6-b300.48xlarge",
    "ap-southeast-1b (apse1-az2)",
    "2026-12-01 11:30",
    "2026-12-02 11:30",
    "49,600.48",
    "16.78",
)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_part_of_an_offer_is_broken_at_any_width(width: int) -> None:
    shown = lines(lambda columns: offers_view(OFFERS, columns), width)
    assert max(map(len, shown)) <= width
    for part in WHOLE:
        assert any(part in line for line in shown), part
    words = " ".join(" ".join(shown).replace("│", " ").split())
    assert "above the cap of" in words or width >= 160
    assert "can never be cancelled" in words


def test_offers_are_a_table_only_where_there_is_room_for_one() -> None:
    def is_table(width: int) -> bool:
        return any("│" in line for line in lines(lambda columns: offers_view(OFFERS, columns), width))

    assert [is_table(width) for width in WIDTHS] == [False, False, False, False, True, True]


FINDINGS = (
    Finding(part="python package pulumi-kubernetes", ok=True, detail="4.25.0", rehearsal_needs_it=True),
    Finding(part="pin image of vLLM", ok=None, detail="its registry was not asked " * 5, rehearsal_needs_it=False),
)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_finding_is_read_in_few_lines_at_any_width(width: int) -> None:
    shown = lines(lambda columns: findings_view(FINDINGS, columns), width)
    assert max(map(len, shown)) <= width
    assert any("python package pulumi-kubernetes" in line and "4.25.0" in line for line in shown)
    assert len(shown) <= 5
