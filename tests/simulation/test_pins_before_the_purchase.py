"""A version that AWS does not have is found before the money is spent, in the region of the block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from automation.errors import ExitCode, PinsMissing
from automation.ledger.folder import sessions
from automation.ledger.journal import Journal
from automation.ledger.request import RentRequest
from automation.market.purchase import Approval
from automation.session.begin import begin
from automation.target import Target
from components import versions
from planning.catalogue import load
from planning.ranking import Offer
from rehearsal.delays import Constants, load_constants
from rehearsal.registry import RegistryMirror
from rehearsal.world import World


@dataclass(frozen=True)
class Clock:
    """The world's time."""

    world: World

    def now(self) -> datetime:
        return self.world.now

    def wait(self, until: datetime, operation: object = None) -> None:
        self.world.advance(until)


@dataclass
class Person:
    """Agrees to every fee, and hears what is said before."""

    agreed: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def approve(self, offer: Offer) -> Approval:
        self.agreed.append(offer.offering_id)
        return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd)

    def show(self, progress: object) -> None:
        raise AssertionError("nothing runs yet")

    def say(self, now: datetime, sentence: str) -> None:
        self.heard.append(sentence)


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryMirror]:
    mirror = RegistryMirror(load_constants().images)
    yield mirror
    mirror.stop()


@pytest.fixture
def target_in(tmp_path: Path, registry: RegistryMirror) -> Callable[..., Target]:
    def make(cloud: Any, registry: str = registry.url) -> Target:
        session = boto3.Session(aws_access_key_id="rehearsal", aws_secret_access_key="rehearsal")
        return Target(
            mode="rehearsal",
            account_id="123456789012",
            region="us-east-1",
            boto_session=session,
            endpoint_url=cloud.aws.url,
            clock=Clock(cloud.world),
            home=tmp_path,
            engine_environment={},
            registry_mirror_url=registry,
        )

    return make


@pytest.fixture
def wish() -> RentRequest:
    return RentRequest.model_validate({"endpoint_cidrs": ["192.0.2.1/32"], "regions": ["us-west-2"]})


def without(constants: Constants, addon: str) -> Constants:
    other = constants.addons[addon].model_copy(update={"version": "v1.22.0-eksbuild.1"})
    return replace(constants, addons={**constants.addons, addon: other})


def test_a_pin_that_aws_lacks_is_refused_and_nothing_is_bought(
    new_cloud: Callable[..., Any], target_in: Callable[..., Target], wish: RentRequest
) -> None:
    cloud, person = new_cloud(constants=without(load_constants(), "vpc-cni")), Person()
    target = target_in(cloud)
    with pytest.raises(PinsMissing) as caught:
        begin(wish, target, person.approve, person)
    for words in ("us-west-2", "EKS add-on vpc-cni", versions.VPC_CNI, "the newest there is v1.22.0-eksbuild.1"):
        assert words in caught.value.happened
    assert caught.value.exit_code == ExitCode.LACKING
    assert_nothing_happened(cloud, person, target)


def test_a_version_in_extended_support_is_refused_and_nothing_is_bought(
    new_cloud: Callable[..., Any], target_in: Callable[..., Target], wish: RentRequest
) -> None:
    constants = load_constants()
    pinned = constants.cluster_versions[versions.KUBERNETES]
    over = pinned.model_copy(update={"standard_until": date(2026, 12, 2)})
    constants = replace(constants, cluster_versions={**constants.cluster_versions, versions.KUBERNETES: over})
    cloud, person = new_cloud(constants=constants), Person()
    target = target_in(cloud)
    with pytest.raises(PinsMissing, match="only in extended support; the newest in standard is"):
        begin(wish, target, person.approve, person)
    assert_nothing_happened(cloud, person, target)


def test_pins_that_aws_has_are_no_obstacle_and_what_nobody_can_tell_is_said_first(
    cloud: Any, target_in: Callable[..., Target], wish: RentRequest
) -> None:
    person = Person()
    folder = begin(wish, target_in(cloud), person.approve, person)
    assert cloud.aws.meter.bill().purchases == 1
    (said,) = person.heard
    assert said.startswith("Not verified before the session: weights of kimi-k3. ")
    vllm = load_constants().images[f"docker.io/{load().model('kimi-k3').image}"]
    assert Journal(folder.journal).record().image_digest == vllm.digest
    asked = [call.region for call in cloud.aws.calls if call.service in ("eks", "ssm")]
    assert set(asked) == {"us-west-2"}


def test_an_image_that_does_not_exist_is_refused_before_the_purchase(
    cloud: Any, target_in: Callable[..., Target], wish: RentRequest
) -> None:
    images = load_constants().images
    empty, person = RegistryMirror({name: image for name, image in images.items() if "vllm" not in name}), Person()
    target = target_in(cloud, empty.url)
    try:
        with pytest.raises(
            PinsMissing, match=r"engine image of kimi-k3 vllm/vllm-openai:v0\.29\.0: docker\.io does not have"
        ):
            begin(wish, target, person.approve, person)
    finally:
        empty.stop()
    assert_nothing_happened(cloud, person, target)


def assert_nothing_happened(cloud: Any, person: Person, target: Target) -> None:
    assert cloud.aws.meter.bill().purchases == 0
    assert [call.action for call in cloud.aws.calls if call.mutating] == []
    assert (person.agreed, person.heard, sessions(target.home)) == ([], [], ())
