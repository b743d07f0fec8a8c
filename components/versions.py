"""Every version that the program pins, where it was read, and which of them nobody has verified.

Verified means: seen on AWS or in the registry itself. `unverified_pins` lists what is not: `automation/pins.py` asks
AWS for it, and the registries for images, before anything is bought or created. Model images are pinned beside their
model, in planning/catalogue/models.toml.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.images import ImageReference, pull_reference
from planning.catalogue import Model, load

KUBERNETES = "1.35"  # standard support: 1.34 leaves it on 2026-12-02, and extended support costs six times as much

# Seen together in a public 1.35 configuration; https://docs.aws.amazon.com/eks/latest/userguide/eks-add-ons.html
VPC_CNI = "v1.21.1-eksbuild.3"
KUBE_PROXY = "v1.35.0-eksbuild.2"
COREDNS = "v1.13.2-eksbuild.1"
POD_IDENTITY_AGENT = "v1.3.10-eksbuild.3"

# Seen in entigolabs/entigo-infralib pull 1488. Since v20260714 the driver is r580, which CUDA 13 images need.
NODE_AMI_RELEASE = "1.35.7-20260903"

# awslabs/ai-on-eks pins 0.18.2 beside AL2023 nodes.
DEVICE_PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.18.2"
DEVICE_PLUGIN_DIGEST = ""

_HERE = "components/versions.py"


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A pin that was not verified, and how to: `value` is what the program uses, `where` the file that says so."""

    name: str
    value: str
    what_to_check: str
    where: str


@dataclass(frozen=True, kw_only=True)
class KubernetesPin(Pin):
    """The Kubernetes version of the EKS cluster, for example `1.35`."""


@dataclass(frozen=True, kw_only=True)
class AddonPin(Pin):
    """The version of an EKS add-on, for a cluster of that Kubernetes version."""

    addon: str
    kubernetes: str


NodeAmi = Literal["standard", "nvidia"]
"""The variants of AL2023 that the node groups take, by the names of EKS's public parameters."""


@dataclass(frozen=True, kw_only=True)
class NodeAmiPin(Pin):
    """The release of the EKS optimized AMI, for example `1.35.7-20260903`."""

    variant: NodeAmi


@dataclass(frozen=True, kw_only=True)
class ImagePin(Pin):
    """A container image by its tag, as nodes pull it. `of_model`: the model that it serves, None for all others."""

    image: ImageReference
    of_model: str | None


def unverified_pins(model: str | None = None, image_prefix: str | None = None) -> tuple[Pin, ...]:
    """All pins that could not be verified where they were chosen; of the catalogue's models those of `model`, or all.

    `image_prefix`: models' images are pulled from below it (`pull_reference`); then the digest of the catalogue was not
    verified there. Raises planning's UnknownName for a model that the catalogue does not have.
    """
    known = load()
    models = known.models.values() if model is None else (known.model(model),)
    pins = [_kubernetes_pin(), *_addon_pins(), *_node_ami_pins()]
    if not DEVICE_PLUGIN_DIGEST:
        pins.append(_image_pin("NVIDIA device plugin image", DEVICE_PLUGIN_IMAGE, _HERE, of_model=None))
    return (*pins, *(pin for each in models for pin in _model_pins(each, image_prefix)))


def _kubernetes_pin() -> Pin:
    check = "eks:DescribeClusterVersions shows it in STANDARD_SUPPORT"
    return KubernetesPin(name="Kubernetes of EKS", value=KUBERNETES, what_to_check=check, where=_HERE)


def _addon_pins() -> list[Pin]:
    addons = {
        "vpc-cni": VPC_CNI,
        "kube-proxy": KUBE_PROXY,
        "coredns": COREDNS,
        "eks-pod-identity-agent": POD_IDENTITY_AGENT,
    }
    return [
        AddonPin(
            name=f"EKS add-on {addon}",
            value=version,
            what_to_check=f"eks:DescribeAddonVersions --addon-name {addon} --kubernetes-version {KUBERNETES} lists it",
            where=_HERE,
            addon=addon,
            kubernetes=KUBERNETES,
        )
        for addon, version in addons.items()
    ]


def _node_ami_pins() -> list[Pin]:
    variants: tuple[NodeAmi, ...] = ("standard", "nvidia")
    return [
        NodeAmiPin(
            name=f"EKS node AMI release, {variant}",
            value=NODE_AMI_RELEASE,
            what_to_check=f"it is in ssm:GetParametersByPath --recursive --path /aws/service/eks/optimized-ami/"
            f"{KUBERNETES}/amazon-linux-2023/x86_64/{variant}",
            where=_HERE,
            variant=variant,
        )
        for variant in variants
    ]


def _model_pins(model: Model, image_prefix: str | None) -> list[Pin]:
    where = "planning/catalogue/models.toml"
    pins: list[Pin] = []
    if image_prefix or not model.image_digest:
        pulled = pull_reference(model.image, digest=model.image_digest, prefix=image_prefix)
        pins.append(_image_pin(f"engine image of {model.name}", pulled, where, of_model=model.name))
    if not model.hub_revision:
        check = f"choose a commit of huggingface.co/{model.hub_id} and write it into {where}"
        value = f"{model.hub_id} without a commit"
        pins.append(Pin(name=f"weights of {model.name}", value=value, what_to_check=check, where=where))
    return pins


def _image_pin(name: str, image: str, where: str, *, of_model: str | None) -> ImagePin:
    check = f"the tag exists; write its amd64 digest into {where}"
    reference = ImageReference.parse(image)
    return ImagePin(name=name, value=image, what_to_check=check, where=where, image=reference, of_model=of_model)
