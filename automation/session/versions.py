"""The versions that a report names: what made this session what it was."""

import json
import platform
from importlib.metadata import version

from automation.ledger.folder import SessionFolder
from components.versions import KUBERNETES

_PACKAGES = ("pulumi", "pulumi-aws", "pulumi-eks", "pulumi-kubernetes", "boto3", "openai")


def versions(folder: SessionFolder) -> dict[str, str]:
    """Name and version of each program and package that a session rests on.

    `provider-aws` and `provider-eks` also say how the engine's provider was obtained.
    """
    # The engine has a version of its own; the package `pulumi` is its SDK.
    names = {name: "pulumi-sdk" if name == "pulumi" else name for name in _PACKAGES}
    packages = {shown: version(name) for name, shown in names.items()}
    return {"python": platform.python_version(), "kubernetes": KUBERNETES} | packages | _providers(folder)


def _providers(folder: SessionFolder) -> dict[str, str]:
    vendors = {name: f"{version(f'pulumi-{name}')}, the vendor's plugin" for name in ("aws", "eks")}
    try:
        given = json.loads(folder.providers.read_text(encoding="utf-8"))
    except FileNotFoundError:
        # No engine has run for this session.
        return {}
    return {f"provider-{name}": str(given.get(name, vendor)) for name, vendor in vendors.items()}
