"""Before anything is bought, everything that can be refused is refused; then exactly what was agreed to is bought."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import httpx
import pytest
from pydantic import ValidationError

from automation.errors import (
    InvalidRequest,
    MachineInTheWay,
    NoOffer,
    PurchaseFailed,
    PurchaseUnclear,
    Refused,
    RentblockError,
)
from automation.ledger.entries import BlockKnown, Closed, Opened, PurchaseConfirmed, PurchaseIntended
from automation.ledger.folder import session_folder, sessions
from automation.ledger.journal import Journal, RunsElsewhere
from automation.ledger.record import Record
from automation.ledger.request import RentRequest, field_problems, invalid
from automation.market.offers import Search
from automation.market.purchase import Approval
from automation.market.reservations import Reservation
from automation.pins import Judgement, Verdict
from automation.session import begin as module
from automation.session import rent, shortlist
from automation.session.begin import approve_exactly, begin, check_request
from automation.session.display import Quiet
from automation.session.stack_config import stack_config
from automation.target import Target
from components.versions import ImagePin, unverified_pins
from planning.block import Block
from planning.ranking import Offer

with warnings.catch_warnings():
    # pulumi-eks warns while it is imported, whoever imports it.
    warnings.simplefilter("ignore", DeprecationWarning)
    from automation.session import preflight

Requests = Callable[..., RentRequest]


class Market:
    """What AWS offers, and what is bought of it."""

    def __init__(self, offers: list[Offer]) -> None:
        self.offers = offers
        self.bought: list[tuple[str, Decimal]] = []
        self.fails: Exception | None = None

    def search(self, target: Target, wanted: object, regions: object) -> Search:
        return Search(offers=tuple(self.offers), unanswered=(("me-south-1", "opted out"),))

    def buy(self, target: Target, offer: Offer, approval: Approval, journal: Journal, environ: object) -> None:
        if self.fails:
            if not isinstance(self.fails, PurchaseFailed):
                journal.write(PurchaseIntended(at=target.clock.now(), offer=offer))
            raise self.fails
        self.bought.append((offer.offering_id, approval.fee_usd))
        now, fee = target.clock.now(), offer.fee_usd
        journal.write(BlockKnown(at=now, block=offer.bought_as("cr-1")))
        journal.write(PurchaseConfirmed(at=now, offering_id="cb-1", reservation_id="cr-1", fee_usd=fee))


class Heard(Quiet):
    """Keeps what is said."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def say(self, now: datetime, what: str) -> None:
        self._said.append(what)


@pytest.fixture
def requests() -> Requests:
    return lambda **more: RentRequest.model_validate({"endpoint_cidrs": ["192.0.2.1/32"], **more})


@pytest.fixture
def offer(block: Block) -> Offer:
    return Offer(
        offering_id="cb-1",
        instance_type=block.instance_type,
        instance_count=1,
        region=block.region,
        availability_zone=block.availability_zone,
        availability_zone_id=block.availability_zone_id,
        start=block.start,
        end=block.end,
        fee_usd=Decimal("3100.03"),
        currency="USD",
    )


@pytest.fixture
def market(offer: Offer, monkeypatch: pytest.MonkeyPatch) -> Market:
    market = Market([offer])
    monkeypatch.setattr(shortlist.offers, "search", market.search)
    monkeypatch.setattr(shortlist.offers, "enabled_regions", lambda target: ("us-west-2",))
    monkeypatch.setattr(shortlist, "region_of", lambda target, weights_uri: "us-west-2")
    monkeypatch.setattr(module, "buy", market.buy)
    monkeypatch.setattr(module, "check_account", lambda target: None)
    monkeypatch.setattr(module, "require_pins", lambda target, model, image_prefix: ())
    here = frozenset({"us-west-2a", "us-west-2b"})
    monkeypatch.setattr(preflight.offers, "zones_with", lambda target, instance_type: here)
    monkeypatch.setattr(preflight._AsBought, "zone_ids", lambda self, region: ("usw2-az1", "usw2-az2"))
    return market


@pytest.fixture
def target(tmp_path: Path, record: Record) -> Target:
    return Target(
        mode="rehearsal",
        account_id="123456789012",
        region="us-west-2",
        boto_session=boto3.Session("id", "key"),
        endpoint_url=None,
        clock=SimpleNamespace(now=lambda: record.opened),  # type: ignore[arg-type]
        home=tmp_path,
        engine_environment={},
    )


def yes(offer: Offer) -> Approval:
    return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd)


def test_the_session_is_named_after_the_day_of_its_block(market: Market, target: Target, requests: Requests) -> None:
    folder = begin(requests(), target, yes)
    assert folder.session.startswith("rtb-20261201-")
    assert len(folder.session) == len("rtb-20261201-a1b2")
    record = Journal(folder.journal).record()
    assert (record.mode, record.account_id, record.phase) == ("rehearsal", "123456789012", "buy")
    assert market.bought == [("cb-1", Decimal("3100.03"))]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"weights_uri": "s3://x/kimi-k3"}, "weights: 's3://x/kimi-k3' has not the right form"),
        ({"weights_kms_key_arn": "arn:aws:kms:us-west-2:123456789012:alias/a"}, "weightsKmsKeyArn: an IAM policy"),
        ({"endpoint_cidrs": ["0.0.0.0/1", "128.0.0.0/1"]}, "endpointPublicAccessCidrs: "),
    ],
)
def test_what_the_program_would_refuse_is_refused_before_the_purchase(
    market: Market, target: Target, requests: Requests, wish: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match="The program would refuse") as caught:
        begin(requests(**wish), target, lambda offer: pytest.fail("asked"))
    assert words in caught.value.happened
    assert (market.bought, sessions(target.home)) == ([], ())


def test_a_machine_without_the_programs_of_a_session_buys_nothing(
    market: Market, target: Target, requests: Requests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "refuse_stand_ins", lambda target, environ: None)
    (tmp_path / "pulumi").touch(mode=0o755)
    lacking = replace(target, mode="aws", engine_environment={"PATH": str(tmp_path)})
    with pytest.raises(MachineInTheWay, match=r"lacks on PATH: aws\."):
        begin(requests(), lacking, lambda offer: pytest.fail("asked"))
    assert (market.bought, sessions(target.home)) == ([], ())


@pytest.mark.parametrize("lacks", [None, "kubernetes v4.19.0"])
def test_a_machine_that_cannot_fetch_a_plugin_of_the_engine_buys_nothing(
    market: Market,
    target: Target,
    requests: Requests,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lacks: str | None,
) -> None:
    monkeypatch.setattr(module, "refuse_stand_ins", lambda target, environ: None)
    monkeypatch.setattr(preflight, "_own_address", lambda: None)
    (tmp_path / "aws").touch(mode=0o755)
    pulumi = tmp_path / "pulumi"
    pulumi.write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/asked
case "$*" in *"{lacks}"*) echo "error: no route to host" >&2; exit 255;; esac
"""
    )
    pulumi.chmod(0o755)
    real = replace(target, mode="aws", engine_environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    if lacks:
        with pytest.raises(MachineInTheWay, match=r"plugin kubernetes 4\.19\.0 of Pulumi .*no route to host"):
            begin(requests(), real, lambda offer: pytest.fail("asked"))
    else:
        begin(requests(), real, yes)
    asked = [line.split()[3:5] for line in (tmp_path / "asked").read_text().splitlines()]
    # The last is the one that pulumi-eks makes for itself.
    assert [plugin for plugin, _ in asked] == ["aws", "eks", "kubernetes", "kubernetes"]
    assert asked[2] == ["kubernetes", f"v{metadata.version('pulumi-kubernetes')}"]
    assert asked[3] == ["kubernetes", "v4.19.0"]
    assert bool(market.bought) is not bool(lacks)


def judged(verdict: Verdict, **more: Any) -> Judgement:
    [pin] = [pin for pin in unverified_pins("kimi-k3") if isinstance(pin, ImagePin) and pin.of_model]
    return Judgement(pin=pin, verdict=verdict, sentence="It is so.", **more)


@pytest.mark.parametrize("digest", [f"sha256:{'0a' * 32}", None])
def test_the_digest_that_the_registry_named_is_kept_for_all_updates(
    market: Market, target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch, digest: str | None
) -> None:
    asked: list[str | None] = []

    def pins(target: Target, model: str, image_prefix: str | None) -> tuple[Judgement, ...]:
        asked.append(image_prefix)
        return (judged("verified", digest=digest),)

    monkeypatch.setattr(module, "require_pins", pins)
    folder = begin(requests(image_registry_prefix="mirror.example", image_pull_secret="hub"), target, yes)
    record = Journal(folder.journal).record()
    assert (record.image_digest, asked) == (digest, ["mirror.example"])
    assert record.block is not None
    config = stack_config(record.request, record.block, record.image_digest)
    image = {key: value for key, value in config.items() if key.startswith("image")}
    expected = {"imageRegistryPrefix": "mirror.example", "imagePullSecret": "hub", "imageDigest": digest}
    assert image == {key: value for key, value in expected.items() if value}


def test_a_rate_limit_of_the_registry_is_a_warning_with_its_price(
    market: Market, target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = (judged("not known", rate_limited=True),)
    monkeypatch.setattr(module, "require_pins", lambda target, model, image_prefix: limited)
    heard: list[str] = []
    begin(requests(), target, yes, Heard(heard))
    assert market.bought
    [warning] = [what for what in heard if "HTTP 429" in what]
    assert "vllm/vllm-openai:v0.29.0" in warning
    assert "each hour costs US$129.17 of the block" in warning
    assert "--image-registry-prefix" in warning


def test_a_zone_without_a_control_plane_is_refused_before_the_purchase(
    market: Market, target: Target, requests: Requests, offer: Offer
) -> None:
    for zone_id in ("", "use1-az3"):
        market.offers[:] = [replace(offer, availability_zone_id=zone_id)]
        with pytest.raises(NoOffer, match="EKS makes no cluster in zone us-west-2b"):
            begin(requests(), target, yes)
    assert market.bought == []


def test_a_zone_without_a_machine_for_the_system_nodes_is_refused_before_the_purchase(
    market: Market, target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def nowhere(target: Target, instance_type: str) -> frozenset[str]:
        asked.append(instance_type)
        return frozenset({"us-west-2a"})

    monkeypatch.setattr(preflight.offers, "zones_with", nowhere)
    with pytest.raises(InvalidRequest, match=r"us-west-2b has no m7i\.large"):
        begin(requests(), target, lambda offer: pytest.fail("asked"))
    assert (asked, market.bought) == (["m7i.large"], [])


def test_a_stack_that_the_program_would_refuse_is_not_paid_for(
    market: Market, target: Target, requests: Requests, offer: Offer
) -> None:
    market.offers[:] = [replace(offer, availability_zone_id="usw2-az9")]
    with pytest.raises(InvalidRequest, match="usw2-az9"):
        begin(requests(), target, yes)
    assert market.bought == []


@pytest.mark.parametrize(
    ("session", "said"), [(boto3.Session("id", "key", "token"), 1), (boto3.Session("id", "key"), 0)]
)
def test_credentials_that_nobody_can_renew_are_told_before_the_fee_is_asked(
    market: Market, target: Target, requests: Requests, session: boto3.Session, said: int
) -> None:
    heard: list[str] = []
    with pytest.raises(Refused, match="not approved"):
        begin(requests(), replace(target, boto_session=session), lambda offer: None, Heard(heard))
    assert sum("session token that nobody can renew" in what for what in heard) == said


@pytest.mark.parametrize(
    ("answer", "said"), [("192.0.2.1\n", 0), ("198.51.100.9\n", 1), ("<html>sign in</html>", 0), (None, 0)]
)
def test_a_machine_that_its_own_cidrs_shut_out_is_told_before_the_purchase(
    target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch, answer: str | None, said: int
) -> None:
    def get(url: str, timeout: float) -> httpx.Response:
        if answer is None:
            raise httpx.ConnectError("no route")
        return httpx.Response(200, text=answer)

    monkeypatch.setattr(preflight.httpx, "get", get)
    told = list(preflight.warnings(replace(target, mode="aws"), requests()))
    assert sum("which --cidr does not include" in what for what in told) == said
    monkeypatch.setattr(preflight.httpx, "get", lambda *given, **more: pytest.fail("a rehearsal asks nobody outside"))
    assert list(preflight.warnings(target, requests())) == []


def test_the_best_useful_hour_is_bought_and_not_the_smallest_fee(
    market: Market, target: Target, requests: Requests, offer: Offer
) -> None:
    short = replace(offer, offering_id="cb-short", end=offer.start + timedelta(hours=3), fee_usd=Decimal(500))
    market.offers.insert(0, short)
    begin(requests(), target, yes)
    assert [offering for offering, _ in market.bought] == ["cb-1"]


@pytest.mark.parametrize("cap", [{"max_fee_usd": "3100.02"}, {"max_usd_per_useful_hour": "100"}])
def test_an_offer_above_a_cap_is_not_even_asked_about(
    market: Market, target: Target, requests: Requests, cap: dict[str, str]
) -> None:
    with pytest.raises(NoOffer, match="above the cap"):
        begin(requests(**cap), target, lambda offer: pytest.fail("asked"))
    assert (market.bought, sessions(target.home)) == ([], ())


def test_a_block_longer_than_asked_for_is_not_bought_however_cheap_its_hours(
    market: Market, target: Target, requests: Requests, offer: Offer
) -> None:
    long = replace(offer, offering_id="cb-long", end=offer.start + timedelta(hours=48), fee_usd=Decimal(3200))
    market.offers.append(long)
    begin(requests(), target, yes)
    assert [offering for offering, _ in market.bought] == ["cb-1"]
    refused = {each.offer.offering_id: each.refused for each in shortlist.search(requests(), target)}
    assert refused == {"cb-1": None, "cb-long": "it lasts 48 hours, and 24 were asked for"}


def test_two_who_rent_at_the_same_time_do_not_both_buy(market: Market, target: Target, requests: Requests) -> None:
    """Both would look, find nothing, and pay."""
    wish = requests(pay_usd="3100.03")

    def meanwhile(offer: Offer) -> Approval:
        with pytest.raises(Refused, match="Another rentblock of this machine"):
            begin(wish, target, yes)
        return yes(offer)

    begin(wish, target, meanwhile)
    assert market.bought == [("cb-1", Decimal("3100.03"))]


@pytest.mark.parametrize(
    "aside", [{"max_fee_usd": "3500"}, {"regions": ["us-west-2"]}, {"parallel": 8}, {"caches": "warm"}]
)
def test_a_fee_agreed_to_beforehand_is_agreed_to_once_whatever_else_is_said(
    market: Market, target: Target, requests: Requests, aside: dict[str, Any]
) -> None:
    begin(requests(pay_usd="3100.03"), target, yes)
    with pytest.raises(Refused, match="for such a request"):
        begin(requests(pay_usd="3100.03", **aside), target, yes)
    assert len(market.bought) == 1


def test_a_price_on_demand_that_is_agreed_to_beforehand_is_agreed_to_once(
    market: Market, target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortlist.offers, "on_demand_zone", lambda target, instance_type: ("us-west-2a", "usw2-az1"))
    wish = requests(capacity="on-demand", instance_type="g6.xlarge", model="qwen3-0.6b", hours=2, pay_usd="1.61")
    begin(wish, target, yes)
    with pytest.raises(Refused, match="for such a request"):
        begin(wish, target, yes)
    assert len(sessions(target.home)) == 1


def test_a_mistyped_region_is_told_before_aws_is_asked(market: Market, target: Target, requests: Requests) -> None:
    with pytest.raises(InvalidRequest, match="regions: unknown region 'us-wset-2'; known: "):
        begin(requests(regions=["us-west-2", "us-wset-2"]), target, yes)
    assert market.bought == []


def test_an_offer_in_a_region_that_the_program_does_not_know_is_passed_over(
    market: Market, target: Target, requests: Requests, offer: Offer
) -> None:
    market.offers.insert(0, replace(offer, offering_id="cb-new", region="us-west-9", fee_usd=Decimal(500)))
    begin(requests(), target, yes)
    assert [offering for offering, _ in market.bought] == ["cb-1"]


def test_why_no_offer_is_taken_is_told_of_one_of_the_length_that_was_asked_for(
    market: Market, target: Target, requests: Requests, offer: Offer
) -> None:
    long = replace(offer, offering_id="cb-long", end=offer.start + timedelta(hours=48), fee_usd=Decimal(6100))
    market.offers.insert(0, long)
    with pytest.raises(NoOffer, match=r"US\$3,100\.03 is above the cap of US\$3,000"):
        begin(requests(max_fee_usd="3000"), target, yes)


def test_a_no_buys_nothing_and_leaves_no_session(market: Market, target: Target, requests: Requests) -> None:
    with pytest.raises(Refused, match="not approved"):
        begin(requests(), target, lambda offer: None)
    assert (market.bought, sessions(target.home)) == ([], ())


@pytest.mark.parametrize("pay", [None, Decimal("3100.02"), Decimal("3100.04")])
def test_a_program_agrees_to_the_exact_fee_or_to_nothing(offer: Offer, pay: Decimal | None) -> None:
    with pytest.raises(Refused, match=r"3100\.03"):
        approve_exactly(pay)(offer)
    assert approve_exactly(Decimal("3100.03"))(offer) == yes(offer)


def test_no_offers_name_the_regions_that_were_silent(market: Market, target: Target, requests: Requests) -> None:
    market.offers.clear()
    with pytest.raises(NoOffer, match="me-south-1 did not answer"):
        begin(requests(), target, yes)


@pytest.mark.parametrize(
    "open_end", [PurchaseUnclear(happened="Lost.", remedy=""), MachineInTheWay(happened="Disk full.", remedy="")]
)
def test_a_failed_purchase_closes_its_session_and_one_that_may_have_happened_stays_open(
    market: Market, target: Target, requests: Requests, open_end: RentblockError
) -> None:
    market.fails = PurchaseFailed(happened="Sold out.", remedy="")
    with pytest.raises(PurchaseFailed):
        begin(requests(), target, yes)
    [closed] = sessions(target.home)
    assert Journal(closed.journal).record().outcome == "nothing bought"
    market.fails = open_end
    with pytest.raises(type(open_end)):
        begin(requests(), target, yes)
    outcomes = sorted(str(Journal(each.journal).record().outcome) for each in sessions(target.home))
    assert outcomes == ["None", "nothing bought"]


def test_nobody_closes_a_session_that_is_just_being_bought(
    market: Market, target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    buy = market.buy

    def watched(target: Target, offer: Offer, approval: Approval, journal: Journal, environ: object) -> None:
        [folder] = sessions(target.home)
        with pytest.raises(RunsElsewhere):
            rent._bought(target, folder)
        buy(target, offer, approval, journal, environ)

    monkeypatch.setattr(module, "buy", watched)
    folder = begin(requests(), target, yes)
    assert Journal(folder.journal).record().outcome is None
    assert len(market.bought) == 1


@pytest.mark.parametrize(("found", "error"), [(True, Refused), (False, PurchaseUnclear)])
def test_an_open_intent_of_any_session_is_looked_after_before_another_is_bought(
    market: Market,
    target: Target,
    requests: Requests,
    offer: Offer,
    monkeypatch: pytest.MonkeyPatch,
    found: bool,
    error: type[Exception],
) -> None:
    folder = session_folder(target.home, "rtb-20261201-open")
    folder.create()
    journal = Journal(folder.journal)
    now = target.clock.now()
    opened = Opened(at=now, session="x", mode="rehearsal", account_id="123456789012", request=requests())
    journal.write(opened)
    journal.write(PurchaseIntended(at=now, offer=offer))

    def settle(target: Target, journal: Journal) -> bool:
        if found:
            return True
        raise PurchaseUnclear(happened="Not known.", remedy="")

    monkeypatch.setattr(module, "settle", settle)
    with pytest.raises(error):
        begin(requests(), target, yes)
    assert market.bought == []


def test_a_fee_agreed_to_beforehand_buys_one_block_however_often_its_program_is_started(
    market: Market, target: Target, requests: Requests
) -> None:
    wish = requests(pay_usd="3100.03")
    folder = begin(wish, target, approve_exactly(wish.pay_usd))
    with pytest.raises(Refused, match=folder.session) as caught:
        begin(wish, target, approve_exactly(wish.pay_usd))
    assert f"rentblock rent --session {folder.session}" in caught.value.remedy
    assert len(market.bought) == 1
    Journal(folder.journal).write(Closed(at=target.clock.now(), outcome="ok"))
    begin(wish, target, approve_exactly(wish.pay_usd))
    begin(requests(), target, yes)
    assert len(market.bought) == 3


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"model": "kimi-k4"}, "kimi-k4"),
        ({"instance_type": "p9.48xlarge"}, "p9.48xlarge"),
        ({"hours": 25}, "no blocks of 25 hours"),
        ({"hours": 15 * 24}, "no blocks of 360 hours"),
        ({"instance_type": "g6.xlarge"}, "kimi-k3"),
    ],
)
def test_what_no_market_can_change_is_refused_first(requests: Requests, wish: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        check_request(requests(**wish))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"endpoint_cidrs": []}, "endpoint_cidrs"),
        ({"endpoint_cidrs": ["0.0.0.0/0"]}, "let anyone reach"),
        ({"endpoint_cidrs": ["my network"]}, "endpoint_cidrs"),
        ({"reservation_id": "cb-0123456789abcdef0"}, "reservation_id"),
        ({"weights_uri": "https://store"}, "weights_uri"),
        ({"instance_count": 65}, "instance_count"),
        ({"colour": "red"}, "colour"),
        ({"reservation_fee_usd": "3100.03"}, "reservation_fee_usd: it says what a block has cost"),
        ({"capacity": "on-demand", "reservation_id": "cr-0123456789abcdef0"}, "no reservation"),
    ],
)
def test_a_request_names_all_that_is_wrong_with_it(requests: Requests, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        requests(**wrong, parallel=0)
    told = invalid(field_problems(caught.value)).happened
    assert words in told
    assert "parallel: Input should be greater than or equal to 1" in told


def test_a_block_bought_before_is_taken_as_it_is(
    market: Market, target: Target, requests: Requests, block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(
        reservation_id=block.reservation_id,
        state="scheduled",
        instance_type=block.instance_type,
        instance_count=1,
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=block.start,
        end=block.end,
        session="rtb-20261130-lost",
    )
    monkeypatch.setattr(module.reservations, "by_id", lambda target, reservation_id: found)
    heard: list[str] = []
    wish = requests(reservation_id=block.reservation_id, reservation_fee_usd="2900.50")
    folder = begin(wish, target, lambda offer: pytest.fail("asked"), Heard(heard))
    assert any("rtb-20261130-lost bought cr-0123456789abcdef0" in what for what in heard)
    record = Journal(folder.journal).record()
    assert record.block is not None
    assert (record.block.reservation_id, record.block.offering_id) == (block.reservation_id, None)
    assert record.block.fee_usd == Decimal("2900.50")
    assert market.bought == []
    with pytest.raises(Refused, match=f"{folder.session} runs on cr-0123456789abcdef0"):
        begin(wish, target, lambda offer: pytest.fail("asked"))
    assert len(sessions(target.home)) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instance_type": "p5.48xlarge"}, "instance_type: cr-0123456789abcdef0 holds p5.48xlarge"),
        ({"instance_count": 2}, "instance_count: cr-0123456789abcdef0 holds 2, not 1"),
        ({"state": "expired"}, "reservation_id: cr-0123456789abcdef0 is expired"),
        ({"end": timedelta(hours=1)}, "reservation_id: cr-0123456789abcdef0 ends before"),
    ],
)
def test_a_block_that_is_not_what_was_asked_for_opens_no_session(
    market: Market,
    target: Target,
    requests: Requests,
    block: Block,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    words: str,
) -> None:
    found = Reservation(
        reservation_id=block.reservation_id,
        state="scheduled",
        instance_type=block.instance_type,
        instance_count=1,
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=block.start,
        end=block.end,
        session=None,
    )
    if "end" in changes:
        changes = {"end": block.start + changes["end"]}
    monkeypatch.setattr(module.reservations, "by_id", lambda target, reservation_id: replace(found, **changes))
    with pytest.raises(InvalidRequest) as caught:
        begin(requests(reservation_id=block.reservation_id), target, yes)
    assert words in caught.value.happened
    assert sessions(target.home) == ()


@pytest.mark.parametrize("cap", [{"max_fee_usd": "1"}, {"max_usd_per_useful_hour": "0.5"}])
def test_caps_hold_on_demand_too(
    market: Market, target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch, cap: dict[str, str]
) -> None:
    monkeypatch.setattr(shortlist.offers, "on_demand_zone", lambda target, instance_type: ("us-west-2a", "usw2-az1"))
    wish = requests(capacity="on-demand", instance_type="g6.xlarge", model="qwen3-0.6b", hours=2, **cap)
    with pytest.raises(NoOffer, match="above the cap"):
        begin(wish, target, lambda offer: pytest.fail("asked"))
    assert sessions(target.home) == ()


def test_on_demand_states_what_it_will_cost_and_buys_nothing(
    market: Market, target: Target, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortlist.offers, "on_demand_zone", lambda target, instance_type: ("us-west-2a", "usw2-az1"))
    asked: list[Offer] = []
    wish = requests(capacity="on-demand", instance_type="g6.xlarge", model="qwen3-0.6b", hours=2)
    folder = begin(wish, target, lambda offer: asked.append(offer) or yes(offer))  # type: ignore[func-returns-value]
    record = Journal(folder.journal).record()
    assert record.block is not None
    assert record.block.end - record.block.start == timedelta(hours=2)
    assert record.block.start > datetime.fromisoformat(str(record.opened))
    assert Decimal(0) < asked[0].fee_usd < Decimal(10)
    assert (record.block.fee_usd, market.bought) == (Decimal(0), [])
