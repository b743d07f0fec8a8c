"""The versions that a report names: what made this session what it was."""

import platform
from importlib.metadata import version

from components.versions import KUBERNETES

_PACKAGES = ("pulumi", "pulumi-aws", "pulumi-eks", "pulumi-kubernetes", "boto3", "openai")


def versions() -> dict[str, str]:
    """Name and version of each program and package that a session rests on."""
    return {"python": platform.python_version(), "kubernetes": KUBERNETES} | {name: version(name) for name in _PACKAGES}
