"""Every version that the program pins, where it was read, and which of them nobody has verified.

Verified means: seen on AWS or in the registry itself. `unverified_pins` lists what is not, so that `rentblock doctor`
can ask AWS and the registries before anything is created. Model images are pinned beside their model, in
planning/catalogue/models.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A pin that was not verified, and how to: `value` is what the program uses."""

    name: str
    value: str
    what_to_check: str


def image_reference(tag: str, digest: str) -> str:
    """`repository:tag@sha256:...`, or the bare tag while its digest is not known."""
    return f"{tag}@{digest}" if digest else tag


def unverified_pins() -> tuple[Pin, ...]:
    """All pins that could not be verified where they were chosen, those of the catalogue's models included."""
    addons = {
        "vpc-cni": VPC_CNI,
        "kube-proxy": KUBE_PROXY,
        "coredns": COREDNS,
        "eks-pod-identity-agent": POD_IDENTITY_AGENT,
    }
    pins = [
        Pin(
            name=f"EKS add-on {addon}",
            value=version,
            what_to_check=f"eks:DescribeAddonVersions --addon-name {addon} --kubernetes-version {KUBERNETES} lists it",
        )
        for addon, version in addons.items()
    ]
    pins.append(
        Pin(
            name="EKS node AMI release",
            value=NODE_AMI_RELEASE,
            what_to_check=f"ssm:GetParameter /aws/service/eks/optimized-ami/{KUBERNETES}/amazon-linux-2023/x86_64/"
            "{standard,nvidia}/recommended/release_version is this or later; driver r580 or later",
        )
    )
    if not DEVICE_PLUGIN_DIGEST:
        pins.append(_without_digest("NVIDIA device plugin image", DEVICE_PLUGIN_IMAGE, "components/versions.py"))
    for model in load().models.values():
        pins.extend(_model_pins(model))
    return tuple(pins)


def _model_pins(model: Model) -> list[Pin]:
    where = "planning/catalogue/models.toml"
    pins = []
    if not model.image_digest:
        pins.append(_without_digest(f"engine image of {model.name}", model.image, where))
    if not model.hub_revision:
        check = f"choose a commit of huggingface.co/{model.hub_id} and write it into {where}"
        pins.append(Pin(name=f"weights of {model.name}", value=f"{model.hub_id} without a commit", what_to_check=check))
    return pins


def _without_digest(name: str, image: str, where: str) -> Pin:
    check = f"the tag exists; write its amd64 digest into {where}"
    return Pin(name=name, value=image, what_to_check=check)
