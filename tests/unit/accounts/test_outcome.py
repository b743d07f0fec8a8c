""" "ok" needs one purchase, a passed acceptance and a sweep that found nothing."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from automation.accounts.outcome import outcome
from automation.ledger.record import Record, Residual

LEFT = Residual(kind="nat_gateway", resource_id="nat-1", region="us-west-2", detail="", usd_per_day=Decimal("1.08"))


def test_a_good_session_is_ok(record: Record) -> None:
    assert outcome(record) == "ok"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"residual": (LEFT,)}, "something is left"),
        ({"sweeps": 0}, "not proved empty"),
        ({"acceptance": ()}, "not accepted"),
        ({"purchases": ()}, "nothing was bought"),
    ],
)
def test_each_lack_is_named(told_otherwise: Callable[..., Record], changes: dict[str, object], says: str) -> None:
    assert outcome(told_otherwise(**changes)) == says


def test_one_false_check_is_enough(told_otherwise: Callable[..., Record], record: Record) -> None:
    checks = (*record.acceptance[1:], replace(record.acceptance[0], ok=False))
    assert outcome(told_otherwise(acceptance=checks)) == "not accepted"


def test_a_second_purchase_is_never_ok(told_otherwise: Callable[..., Record], record: Record) -> None:
    assert outcome(told_otherwise(purchases=record.purchases * 2)) == "2 purchases"


def test_a_block_bought_before_needs_no_purchase(told_otherwise: Callable[..., Record], record: Record) -> None:
    request = record.request.model_copy(update={"reservation_id": "cr-0a1b2c3d4e5f60718"})
    assert outcome(told_otherwise(purchases=(), request=request)) == "ok"
