"""Whether AWS and the image registries have what the program pins: asked by `doctor`, and again before a purchase.

A pin is missing only if the answer rules it out. A pin without an answer (no permission, a private registry, weights)
is not known, and that stops nothing. The `judge_...` are pure.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from automation.aws_errors import aws_errors
from automation.errors import PinsMissing, RentblockError
from automation.registry import RegistryAnswer, ask_registry
from automation.target import Target
from components.versions import AddonPin, ImagePin, KubernetesPin, NodeAmiPin, Pin, unverified_pins

if TYPE_CHECKING:
    from mypy_boto3_eks.type_defs import ClusterVersionInformationTypeDef

Verdict = Literal["verified", "missing", "not known"]

_NODE_AMIS = "/aws/service/eks/optimized-ami"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What AWS or a registry says to a pin; `sentence` is for people, and names what AWS has instead of a missing one.

    `digest`: of an image that was found. `rate_limited`: its registry refuses requests from this machine for now.
    """

    pin: Pin
    verdict: Verdict
    sentence: str
    digest: str | None = None
    rate_limited: bool = False


def check_pins(target: Target, model: str | None = None, image_prefix: str | None = None) -> tuple[Judgement, ...]:
    """Ask AWS, in the target's region, for every pin of the program and of `model` (None: of all models).

    Models' images are looked for below `image_prefix`. Never raises because of AWS or a registry: a pin for which there
    is no answer is not known.
    """
    return tuple(_check(target, pin) for pin in unverified_pins(model, image_prefix))


def require_pins(target: Target, model: str, image_prefix: str | None = None) -> tuple[Judgement, ...]:
    """What `check_pins` finds. Raises PinsMissing with all pins that do not exist."""
    judgements = check_pins(target, model, image_prefix)
    missing = [each for each in judgements if each.verdict == "missing"]
    if missing:
        listed = "; ".join(f"{each.pin.name} {each.pin.value}: {each.sentence}" for each in missing)
        files = ", ".join(sorted({each.pin.where for each in missing}))
        raise PinsMissing(
            happened=f"Pinned versions do not exist (AWS was asked in {target.region}): {listed}",
            cost="Nothing was bought or created.",
            remedy=f"Change it in {files}, then look again with `rentblock doctor`.",
        )
    return judgements


def image_digest(judgements: Iterable[Judgement]) -> str | None:
    """The digest that the registry named for the image of the session's model; None if it is not known."""
    found = (each.digest for each in judgements if isinstance(each.pin, ImagePin) and each.pin.of_model)
    return next(found, None)


def not_known(judgements: Iterable[Judgement]) -> str | None:
    """One sentence that names the pins that are not known; None if all are known."""
    names = ", ".join(each.pin.name for each in judgements if each.verdict == "not known")
    if not names:
        return None
    return f"Not verified before the session: {names}. `rentblock doctor` says why, and what to check."


def judge_kubernetes(pin: KubernetesPin, versions: Collection["ClusterVersionInformationTypeDef"]) -> Judgement:
    """By what DescribeClusterVersions lists. The stack's upgrade policy is STANDARD, so extended support is none."""
    status = {each.get("clusterVersion", ""): each.get("versionStatus") for each in versions}
    if not status:
        return Judgement(pin=pin, verdict="not known", sentence="AWS lists no Kubernetes versions at all.")
    found = status.get(pin.value, "UNSUPPORTED")
    if found == "STANDARD_SUPPORT":
        return Judgement(pin=pin, verdict="verified", sentence="EKS has it in standard support.")
    standard = [version for version, each in status.items() if each == "STANDARD_SUPPORT"]
    state = "only in extended support" if found == "EXTENDED_SUPPORT" else "no longer, or not yet"
    return Judgement(pin=pin, verdict="missing", sentence=f"EKS has it {state}{_newest(standard, 'in standard')}.")


def judge_addon(pin: AddonPin, versions: Collection[str]) -> Judgement:
    """By the versions of the add-on that go with the pinned Kubernetes."""
    fits = f"for Kubernetes {pin.kubernetes}"
    if pin.value in versions:
        return Judgement(pin=pin, verdict="verified", sentence=f"EKS has it {fits}.")
    return Judgement(pin=pin, verdict="missing", sentence=f"EKS does not have it {fits}{_newest(versions, 'there')}.")


def judge_node_ami(pin: NodeAmiPin, parameters: Mapping[str, str]) -> Judgement:
    """By those of `node_ami_parameters` that exist. An old release stays; EKS refuses one that never was."""
    image, release, recommended = (parameters.get(name) for name in node_ami_parameters(pin))
    if pin.value in (release, recommended):
        return Judgement(pin=pin, verdict="verified", sentence="AWS publishes it.")
    if release or (recommended and not image):
        has = f"of that day it has {release}" if release else f"the newest is {recommended}"
        return Judgement(pin=pin, verdict="missing", sentence=f"AWS does not publish it; {has}.")
    why = "AWS has an image of that day and does not say its release" if image else "AWS publishes none at all here"
    return Judgement(pin=pin, verdict="not known", sentence=f"{why}.")


def node_ami_parameters(pin: NodeAmiPin) -> tuple[str, str, str]:
    """The names of the public parameters that tell of a release: its image, its release, the newest release.

    `recommended` is documented (https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html); a release's
    own path is how Karpenter finds a pinned image (aws/karpenter-provider-aws, pkg/providers/amifamily/al2023.go).
    That `release_version` stands beside `image_id` there too is confidence C, so nothing rests on it alone.
    """
    version, _, day = pin.value.partition("-")
    kubernetes = version.rpartition(".")[0]
    variant = f"{_NODE_AMIS}/{kubernetes}/amazon-linux-2023/x86_64/{pin.variant}"
    dated = f"{variant}/amazon-eks-node-al2023-x86_64-{pin.variant}-{kubernetes}-v{day}"
    return f"{dated}/image_id", f"{dated}/release_version", f"{variant}/recommended/release_version"


def judge_image(pin: ImagePin, answer: RegistryAnswer) -> Judgement:
    """By what the image's registry answered."""
    verdicts: dict[str, Verdict] = {"found": "verified", "missing": "missing"}
    verdict = verdicts.get(answer.outcome, "not known")
    check = f" To check: {pin.what_to_check}." if verdict == "not known" else ""
    return Judgement(
        pin=pin,
        verdict=verdict,
        sentence=f"{answer.sentence}{check}",
        digest=answer.digest,
        rate_limited=answer.outcome == "rate limited",
    )


def _check(target: Target, pin: Pin) -> Judgement:
    try:
        with aws_errors(f"asking for {pin.name}"):
            return _ask(target, pin)
    except RentblockError as error:
        return Judgement(pin=pin, verdict="not known", sentence=f"{error.happened} To check: {pin.what_to_check}.")


def _ask(target: Target, pin: Pin) -> Judgement:
    match pin:
        case KubernetesPin():
            versions = target.client("eks").get_paginator("describe_cluster_versions").paginate(includeAll=True)
            return judge_kubernetes(pin, [each for page in versions for each in page["clusterVersions"]])
        case AddonPin():
            return judge_addon(pin, _addon_versions(target, pin))
        case NodeAmiPin():
            found = target.client("ssm").get_parameters(Names=list(node_ami_parameters(pin)))["Parameters"]
            return judge_node_ami(pin, {each["Name"]: each["Value"] for each in found})
        case ImagePin():
            return judge_image(pin, ask_registry(pin.image, mirror_url=target.registry_mirror_url))
        case _:
            return Judgement(pin=pin, verdict="not known", sentence=f"AWS can't tell. To check: {pin.what_to_check}.")


def _addon_versions(target: Target, pin: AddonPin) -> list[str]:
    pages = target.client("eks").get_paginator("describe_addon_versions")
    asked = pages.paginate(addonName=pin.addon, kubernetesVersion=pin.kubernetes)
    return [
        version["addonVersion"]
        for page in asked
        for addon in page["addons"]
        for version in addon.get("addonVersions", [])
        if any(each.get("clusterVersion") == pin.kubernetes for each in version.get("compatibilities", []))
    ]


def _newest(versions: Collection[str], where: str) -> str:
    if not versions:
        return ""
    return f"; the newest {where} is {max(versions, key=_by_its_numbers)}"


def _by_its_numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
