"""The versions that a report names: what made this session what it was."""

import platform
from importlib.metadata import version

from components.versions import KUBERNETES

_PACKAGES = ("pulumi", "pulumi-aws", "pulumi-eks", "pulumi-kubernetes", "boto3", "openai")


def versions() -> dict[str, str]:
    """Name and version of each program and package that a session rests on."""
    # The engine has a version of its own; the package `pulumi` is its SDK.
    names = {name: "pulumi-sdk" if name == "pulumi" else name for name in _PACKAGES}
    packages = {shown: version(name) for name, shown in names.items()}
    return {"python": platform.python_version(), "kubernetes": KUBERNETES} | packages
