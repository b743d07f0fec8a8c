"""A pin is missing when AWS's answer rules it out; a question without an answer proves nothing, and stops nothing."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.stub import Stubber

from automation import pins
from automation.cli import doctor
from automation.errors import CredentialsMissing, ExitCode, PinsMissing
from automation.pins import judge_addon, judge_image, judge_kubernetes, judge_node_ami, node_ami_parameters
from automation.registry import RegistryAnswer
from automation.target import Target
from components import versions
from components.versions import AddonPin, ImagePin, KubernetesPin, NodeAmiPin, Pin, unverified_pins
from planning.catalogue import load

HERE = {"what_to_check": "look", "where": "components/versions.py"}
KUBERNETES = KubernetesPin(name="Kubernetes of EKS", value="1.35", **HERE)
ADDON = AddonPin(name="EKS add-on coredns", value="v1.13.2-eksbuild.1", addon="coredns", kubernetes="1.35", **HERE)
AMI = NodeAmiPin(name="EKS node AMI release", value="1.35.7-20260903", variant="nvidia", **HERE)
IMAGE, RELEASE, NEWEST = node_ami_parameters(AMI)

STANDARD, EXTENDED = "STANDARD_SUPPORT", "EXTENDED_SUPPORT"


class Clients(boto3.Session):
    """Gives the stubbed clients to whoever asks."""

    def __init__(self, clients: dict[str, BaseClient]) -> None:
        super().__init__(region_name="us-west-2")
        self.clients = clients

    def client(self, service_name: str, **_: object) -> BaseClient:  # type: ignore[override]
        return self.clients[service_name]


@pytest.fixture(scope="session")
def clients() -> dict[str, BaseClient]:
    session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-west-2")
    return {"eks": session.client("eks"), "ssm": session.client("ssm")}


@pytest.fixture
def eks(clients: dict[str, BaseClient]) -> Iterator[Stubber]:
    with Stubber(clients["eks"]) as stubber:
        yield stubber


@pytest.fixture
def ssm(clients: dict[str, BaseClient]) -> Iterator[Stubber]:
    with Stubber(clients["ssm"]) as stubber:
        yield stubber


@pytest.fixture
def target(clients: dict[str, BaseClient], tmp_path: Path) -> Target:
    return Target(
        mode="rehearsal",
        account_id="123456789012",
        region="us-west-2",
        boto_session=Clients(clients),
        endpoint_url=None,
        clock=SimpleNamespace(),  # type: ignore[arg-type]
        home=tmp_path,
        engine_environment={},
    )


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[Pin]:
    """What the program pins, as the test fills it in."""
    found: list[Pin] = []
    for module in (pins, doctor):
        monkeypatch.setattr(module, "unverified_pins", lambda model=None, image_prefix=None: tuple(found))
    return found


def addon_version(version: str, **fields: Any) -> dict[str, Any]:
    return {"addonVersion": version, "compatibilities": [{"clusterVersion": "1.35"}], **fields}


@pytest.mark.parametrize(
    ("listed", "verdict", "words"),
    [
        ({"1.35": STANDARD}, "verified", "in standard support"),
        ({"1.35": EXTENDED, "1.36": STANDARD, "1.9": STANDARD}, "missing", "only in extended support; .* 1.36"),
        ({"1.34": EXTENDED}, "missing", r"no longer, or not yet\.$"),
        ({"1.35": "UNSUPPORTED", "1.36": STANDARD}, "missing", "the newest in standard is 1.36"),
        ({}, "not known", "no Kubernetes versions at all"),
    ],
)
def test_kubernetes_must_be_in_standard_support(listed: dict[str, Any], verdict: str, words: str) -> None:
    judged = judge_kubernetes(KUBERNETES, [{"clusterVersion": k, "versionStatus": v} for k, v in listed.items()])
    assert judged.verdict == verdict
    assert re.search(words, judged.sentence)


@pytest.mark.parametrize(
    ("listed", "verdict", "words"),
    [
        (["v1.14.1-eksbuild.2", "v1.13.2-eksbuild.1"], "verified", "for Kubernetes 1.35"),
        (["v1.13.2-eksbuild.9", "v1.13.2-eksbuild.10"], "missing", r"the newest there is v1.13.2-eksbuild.10\.$"),
        ([], "missing", r"does not have it for Kubernetes 1.35\.$"),
    ],
)
def test_an_add_on_must_go_with_the_kubernetes_version(listed: list[str], verdict: str, words: str) -> None:
    judged = judge_addon(ADDON, listed)
    assert judged.verdict == verdict
    assert re.search(words, judged.sentence)


@pytest.mark.parametrize(
    ("published", "verdict", "words"),
    [
        ({RELEASE: AMI.value, NEWEST: "1.35.9-20261101"}, "verified", "publishes it"),
        ({NEWEST: AMI.value}, "verified", "publishes it"),
        ({NEWEST: "1.35.6-20260801"}, "missing", "the newest is 1.35.6-20260801"),
        ({IMAGE: "ami-1", RELEASE: "1.35.6-20260903"}, "missing", "of that day it has 1.35.6-20260903"),
        ({IMAGE: "ami-1", NEWEST: "1.35.9-20261101"}, "not known", "does not say its release"),
        ({}, "not known", "none at all"),
    ],
)
def test_a_node_image_must_have_been_published(published: dict[str, str], verdict: str, words: str) -> None:
    judged = judge_node_ami(AMI, published)
    assert judged.verdict == verdict
    assert re.search(words, judged.sentence)


@pytest.mark.parametrize(
    ("outcome", "digest", "verdict"),
    [
        ("found", f"sha256:{'0a' * 32}", "verified"),
        ("found", None, "verified"),
        ("missing", None, "missing"),
        ("rate limited", None, "not known"),
        ("not known", None, "not known"),
    ],
)
def test_an_image_is_missing_only_when_its_registry_says_so(outcome: Any, digest: str | None, verdict: str) -> None:
    answer = RegistryAnswer(outcome=outcome, digest=digest, sentence="It answered.")
    [pin] = [pin for pin in unverified_pins("kimi-k3") if isinstance(pin, ImagePin) and pin.of_model]
    judged = judge_image(pin, answer)
    assert (judged.verdict, judged.digest, judged.rate_limited) == (verdict, digest, outcome == "rate limited")
    assert ("To check: the tag exists" in judged.sentence) is (verdict == "not known")
    assert pins.image_digest([judged]) == digest


def test_an_image_below_a_prefix_is_looked_up_below_the_prefix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = load()
    verified = replace(known.model("kimi-k3"), image_digest=f"sha256:{'0b' * 32}")
    monkeypatch.setattr(versions, "load", lambda: replace(known, models={"kimi-k3": verified}))
    images = [pin for pin in unverified_pins("kimi-k3") if isinstance(pin, ImagePin)]
    assert [pin.of_model for pin in images] == [None]
    _, pin = [pin for pin in unverified_pins("kimi-k3", "mirror.example/hub") if isinstance(pin, ImagePin)]
    assert (pin.image.registry, pin.image.repository) == ("mirror.example", "hub/vllm/vllm-openai")
    assert pin.image.digest == verified.image_digest


def test_a_release_has_a_path_of_its_own_beside_the_newest() -> None:
    variant = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia"
    assert f"{variant}/amazon-eks-node-al2023-x86_64-nvidia-1.35-v20260903/image_id" == IMAGE
    assert f"{variant}/recommended/release_version" == NEWEST


def test_every_page_is_read_and_versions_for_another_kubernetes_do_not_count(
    target: Target, eks: Stubber, pinned: list[Pin]
) -> None:
    pinned.append(ADDON)
    other = addon_version("v1.13.2-eksbuild.1", compatibilities=[{"clusterVersion": "1.34"}])
    asked = {"addonName": "coredns", "kubernetesVersion": "1.35"}
    eks.add_response("describe_addon_versions", {"addons": [{"addonVersions": [other]}], "nextToken": "n"}, asked)
    second = {"addons": [{"addonVersions": [addon_version("v1.14.0-eksbuild.1")]}]}
    eks.add_response("describe_addon_versions", second, asked | {"nextToken": "n"})
    (judged,) = pins.check_pins(target)
    assert judged.verdict == "missing"
    assert "v1.14.0-eksbuild.1" in judged.sentence
    eks.assert_no_pending_responses()


def test_a_refusal_of_aws_makes_one_pin_not_known_and_the_next_is_asked(
    target: Target, eks: Stubber, ssm: Stubber, pinned: list[Pin]
) -> None:
    pinned.extend([KUBERNETES, AMI, Pin(name="engine image", value="vllm:v1", **HERE)])
    eks.add_client_error("describe_cluster_versions", "AccessDeniedException", "not authorized")
    ssm.add_response("get_parameters", {"Parameters": [{"Name": RELEASE, "Value": AMI.value}]})
    kubernetes, image, engine = pins.check_pins(target)
    assert [each.verdict for each in (kubernetes, image, engine)] == ["not known", "verified", "not known"]
    assert "AccessDeniedException" in kubernetes.sentence
    assert all("To check: look." in each.sentence for each in (kubernetes, engine))


def test_all_that_is_missing_is_told_at_once_with_the_way_out(
    target: Target, eks: Stubber, ssm: Stubber, pinned: list[Pin]
) -> None:
    pinned.extend([ADDON, AMI])
    eks.add_response("describe_addon_versions", {"addons": []})
    ssm.add_response("get_parameters", {"Parameters": [{"Name": NEWEST, "Value": "1.35.6-20260801"}]})
    with pytest.raises(PinsMissing) as caught:
        pins.require_pins(target, "kimi-k3")
    error = caught.value
    assert (error.exit_code, error.cost) == (ExitCode.LACKING, "Nothing was bought or created.")
    for words in ("us-west-2", "coredns v1.13.2-eksbuild.1", "1.35.7-20260903", "1.35.6-20260801"):
        assert words in error.happened
    assert "components/versions.py" in error.remedy


def test_what_is_not_known_stops_nothing_and_is_named(target: Target, pinned: list[Pin]) -> None:
    pinned.append(Pin(name="engine image of kimi-k3", value="vllm:v1", **HERE))
    unknown = pins.require_pins(target, "kimi-k3")
    assert "engine image of kimi-k3" in pins.not_known(unknown)


def test_a_session_asks_for_the_pins_of_its_own_model() -> None:
    names = " ".join(pin.name for pin in unverified_pins("kimi-k3"))
    assert "kimi-k3" in names
    assert "qwen" not in names
    assert versions.KUBERNETES in {pin.value for pin in unverified_pins("kimi-k3")}


def test_doctor_says_what_aws_has_what_it_lacks_and_what_it_cannot_tell(
    target: Target, eks: Stubber, pinned: list[Pin], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned.extend([KUBERNETES, ADDON, Pin(name="engine image", value="vllm:v1", **HERE)])
    monkeypatch.setattr("toolchain.describe", list)
    monkeypatch.setattr(doctor, "check_account", lambda target: None)
    listed = [{"clusterVersion": "1.35", "versionStatus": STANDARD}]
    eks.add_response("describe_cluster_versions", {"clusterVersions": listed}, {"includeAll": True})
    eks.add_response("describe_addon_versions", {"addons": [{"addonVersions": [addon_version("v1.14.0-eksbuild.1")]}]})
    found = {each.part: each for each in doctor.examine(lambda: target, {"PATH": ""})}
    verdicts = [found[f"pin {name}"].ok for name in (KUBERNETES.name, ADDON.name, "engine image")]
    assert verdicts == [True, False, None]
    lacking = found[f"pin {ADDON.name}"].detail
    assert "v1.14.0-eksbuild.1" in lacking
    assert "Change it in components/versions.py." in lacking


def test_without_an_account_every_pin_stays_unverified(
    target: Target, eks: Stubber, pinned: list[Pin], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned.extend([KUBERNETES, ADDON])
    monkeypatch.setattr("toolchain.describe", list)

    def closed(target: Target) -> None:
        raise CredentialsMissing(happened="No credentials.", remedy="Sign in.")

    monkeypatch.setattr(doctor, "check_account", closed)
    found = [each for each in doctor.examine(lambda: target, {"PATH": ""}) if each.part.startswith("pin ")]
    assert [each.ok for each in found] == [None, None]
    assert all("not checked here. To check: look." in each.detail for each in found)
