"""A block is bought at most once, by whoever agreed to exactly its fee."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.stub import Stubber

from automation.errors import PurchaseFailed, PurchaseUnclear, Refused
from automation.ledger.entries import Entry, PurchaseConfirmed, PurchaseIntended
from automation.ledger.journal import Journal
from automation.market import purchase
from automation.market.purchase import Approval, buy, settle
from automation.target import Target
from planning.ranking import Offer

SESSION = "rtb-20261201-a1b2"
BOUGHT = "cr-0123456789abcdef0"
TAG = {"Key": "rent-the-block:session", "Value": SESSION}
LOOK_UP = {"Filters": [{"Name": "tag:rent-the-block:session", "Values": [SESSION]}]}
LOST = [
    pytest.param(lambda stub: stub.add_client_error("purchase_capacity_block", http_status_code=500), id="http-500"),
    pytest.param(
        lambda stub: stub.add_client_error("purchase_capacity_block", "InternalError", http_status_code=503),
        id="http-503",
    ),
]


def reservation(state: str = "payment-pending", reservation_id: str = BOUGHT) -> dict[str, Any]:
    return {
        "CapacityReservationId": reservation_id,
        "State": state,
        "Tags": [TAG],
        "StartDate": datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
        "EndDate": datetime(2026, 12, 2, 11, 30, tzinfo=UTC),
    }


def aws_shows(stub: Stubber, *found: dict[str, Any]) -> None:
    stub.add_response("describe_capacity_reservations", {"CapacityReservations": list(found)}, LOOK_UP)


def aws_sells(stub: Stubber, offer: Offer, **answer: Any) -> None:
    asked = {
        "CapacityBlockOfferingId": offer.offering_id,
        "InstancePlatform": "Linux/UNIX",
        "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": [TAG]}],
    }
    stub.add_response("purchase_capacity_block", answer or {"CapacityReservation": reservation()}, asked)


def agreed(offer: Offer) -> Approval:
    return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd)


def kinds(journal: Journal) -> list[str]:
    return [entry.kind for entry in journal.entries()][1:]


def test_the_straight_way_looks_buys_with_tags_and_takes_aws_at_its_word(
    target: Target, stub: Stubber, offer: Offer, journal: Journal
) -> None:
    aws_shows(stub)
    aws_sells(stub, offer)
    block = buy(target, offer, agreed(offer), journal, {})
    stub.assert_no_pending_responses()
    assert (block.reservation_id, block.fee_usd) == (BOUGHT, offer.fee_usd)
    assert kinds(journal) == ["purchase-intended", "block-known", "purchase-confirmed"]
    assert journal.record().purchases[0].reservation_id == BOUGHT


def test_a_buyer_that_dies_before_its_last_line_is_told_of_its_block(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws_shows(stub)
    aws_sells(stub, offer)
    write = journal.write

    def dies(entry: Entry) -> None:
        if isinstance(entry, PurchaseConfirmed):
            raise KeyboardInterrupt
        write(entry)

    monkeypatch.setattr(journal, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        buy(target, offer, agreed(offer), journal, {})
    assert journal.record().intent is not None
    monkeypatch.setattr(journal, "write", write)
    aws_shows(stub, reservation())
    found = settle(target, journal)
    assert found is not None
    assert found.reservation_id == BOUGHT
    assert [purchase.reservation_id for purchase in journal.record().purchases] == [BOUGHT]


def test_the_buying_client_never_retries(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, aws: Any
) -> None:
    aws_shows(stub)
    aws_sells(stub, offer)
    buy(target, offer, agreed(offer), journal, {})
    assert aws.attempts[1] == 1


def test_the_intent_is_on_disk_before_the_call_leaves(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def call(place: Target, offer: Offer, session: str) -> None:
        seen.append(kinds(journal))
        raise KeyboardInterrupt

    monkeypatch.setattr(purchase, "_call", call)
    aws_shows(stub)
    with pytest.raises(KeyboardInterrupt):
        buy(target, offer, agreed(offer), journal, {})
    assert seen == [["purchase-intended"]]
    assert journal.record().intent is not None


@pytest.mark.parametrize("answer", [{}, reservation("payment-failed", "cr-00000000000000000")])
def test_an_answer_that_names_no_block_is_looked_after(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, answer: dict[str, Any]
) -> None:
    aws_shows(stub)
    aws_sells(stub, offer, CapacityReservation=answer)
    aws_shows(stub, reservation())
    assert buy(target, offer, agreed(offer), journal, {}).reservation_id == BOUGHT
    stub.assert_no_pending_responses()


@pytest.mark.parametrize("lose", LOST)
def test_a_lost_answer_never_buys_twice(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, lose: Callable[[Stubber], None]
) -> None:
    aws_shows(stub)
    lose(stub)
    aws_shows(stub)
    aws_shows(stub, reservation())
    block = buy(target, offer, agreed(offer), journal, {})
    stub.assert_no_pending_responses()
    assert block.reservation_id == BOUGHT
    assert len(journal.record().purchases) == 1


@pytest.mark.parametrize(
    "lost", [ReadTimeoutError(endpoint_url="https://ec2"), ConnectionClosedError(endpoint_url="https://ec2")]
)
def test_a_broken_connection_is_looked_after_not_repeated(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, monkeypatch: pytest.MonkeyPatch, lost: Exception
) -> None:
    calls: list[str] = []

    def call(place: Target, offer: Offer, session: str) -> None:
        calls.append(session)
        raise lost

    monkeypatch.setattr(purchase, "_call", call)
    aws_shows(stub)
    aws_shows(stub, reservation())
    assert buy(target, offer, agreed(offer), journal, {}).reservation_id == BOUGHT
    assert calls == [SESSION]


def test_an_unresolved_intent_looks_instead_of_buying(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purchase, "_call", lambda place, offer, session: pytest.fail("it was bought again"))
    journal.write(PurchaseIntended(at=target.clock.now(), offer=offer))
    aws_shows(stub)
    with pytest.raises(PurchaseUnclear, match="not known") as caught:
        buy(target, offer, agreed(offer), journal, {})
    assert "3100.03" in caught.value.cost
    aws_shows(stub, reservation("scheduled"))
    assert buy(target, offer, agreed(offer), journal, {}).reservation_id == BOUGHT
    stub.assert_no_pending_responses()


def test_an_answer_that_stays_lost_leaves_the_intent_open(
    target: Target, stub: Stubber, offer: Offer, journal: Journal
) -> None:
    aws_shows(stub)
    stub.add_client_error("purchase_capacity_block", http_status_code=500)
    for _ in range(6):
        aws_shows(stub)
    with pytest.raises(PurchaseUnclear):
        buy(target, offer, agreed(offer), journal, {})
    stub.assert_no_pending_responses()
    assert journal.record().intent is not None


def test_a_refusal_of_aws_costs_nothing_and_is_written_down(
    target: Target, stub: Stubber, offer: Offer, journal: Journal
) -> None:
    aws_shows(stub)
    stub.add_client_error("purchase_capacity_block", "InvalidCapacityBlockOfferingId.Expired", http_status_code=400)
    with pytest.raises(PurchaseFailed, match="Nothing was bought"):
        buy(target, offer, agreed(offer), journal, {})
    assert kinds(journal) == ["purchase-intended", "purchase-denied"]
    assert journal.record().intent is None


@pytest.mark.parametrize("state", ["payment-pending", "scheduled", "active", "delayed", "expired"])
def test_what_the_session_already_holds_is_taken_and_not_bought_again(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, state: str
) -> None:
    aws_shows(stub, reservation(state))
    assert buy(target, offer, agreed(offer), journal, {}).reservation_id == BOUGHT
    stub.assert_no_pending_responses()


def test_a_block_whose_payment_failed_holds_nothing(
    target: Target, stub: Stubber, offer: Offer, journal: Journal
) -> None:
    aws_shows(stub, reservation("payment-failed", "cr-00000000000000000"))
    aws_sells(stub, offer)
    assert buy(target, offer, agreed(offer), journal, {}).reservation_id == BOUGHT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fee_usd": Decimal(3501)}, "above the cap of US"),
        ({"currency": "EUR"}, "its fee is in EUR"),
        ({"fee_usd": Decimal("3100.04")}, "was approved, and it costs"),
        ({"offering_id": "cb-another"}, "was approved, and it costs"),
    ],
)
def test_nothing_is_bought_outside_caps_and_agreement(
    target: Target, stub: Stubber, offer: Offer, journal: Journal, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        buy(target, replace(offer, **change), agreed(offer), journal, {})
    assert kinds(journal) == []


def test_a_real_purchase_refuses_stand_ins(target: Target, offer: Offer, journal: Journal) -> None:
    with pytest.raises(Refused, match="PULUMI_DEBUG_PROVIDERS"):
        buy(replace(target, mode="aws"), offer, agreed(offer), journal, {"PULUMI_DEBUG_PROVIDERS": "aws:1"})


def test_a_session_has_one_block(target: Target, stub: Stubber, offer: Offer, journal: Journal) -> None:
    aws_shows(stub, reservation())
    buy(target, offer, agreed(offer), journal, {})
    with pytest.raises(Refused, match="has a block already"):
        buy(target, offer, agreed(offer), journal, {})


def test_an_intent_that_never_showed_up_is_given_up_after_an_hour(
    target: Target, stub: Stubber, offer: Offer, journal: Journal
) -> None:
    journal.write(PurchaseIntended(at=target.clock.now() - timedelta(minutes=59), offer=offer))
    aws_shows(stub)
    with pytest.raises(PurchaseUnclear):
        settle(target, journal)
    target.clock.wait(target.clock.now() + timedelta(minutes=2))
    aws_shows(stub)
    assert settle(target, journal) is None
    assert journal.record().intent is None


def test_only_one_module_can_spend() -> None:
    root = Path(purchase.__file__).parents[2]
    spenders = [
        file.relative_to(root).as_posix()
        for package in ("planning", "components", "automation")
        for file in (root / package).rglob("*.py")
        if "purchase_capacity_block" in file.read_text(encoding="utf-8")
    ]
    assert spenders == ["automation/market/purchase.py"]
