"""Helm releases that a killed engine was making: taken back, so that the next `up` makes them anew.

Helm keeps the name of a release from its first moment on. It neither installs over one that it was making when it was
killed, nor completes it, so without this every later `up` would fail, for the rest of a paid block. The other objects
in the cluster can be asked for a second time.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pulumi import automation as auto

from automation.ledger.folder import SessionFolder, write_whole

_HELM_RELEASE = "kubernetes:helm.sh/v3:Release"
_NO_SUCH_RELEASE = "release: not found"


def remember(folder: SessionFolder, pending_operations: Iterable[Mapping[str, Any]]) -> None:
    """Keep those of a stack's pending creations that are releases: importing a state drops what is pending.

    Raises MachineInTheWay when this machine does not let us."""
    releases = [
        operation["resource"]
        for operation in pending_operations
        if operation["type"] == "creating" and operation["resource"]["type"] == _HELM_RELEASE
    ]
    if releases:
        write_whole(folder.half_made_releases, json.dumps(releases))


def take_back(stack: auto.Stack, folder: SessionFolder) -> None:
    """Uninstall what is remembered, then forget it. Whoever is killed here begins here again.

    Raises auto.CommandError."""
    if not folder.half_made_releases.exists():
        return
    for release in json.loads(folder.half_made_releases.read_text(encoding="utf-8")):
        _uninstall(stack, release)
    folder.half_made_releases.unlink()


def _uninstall(stack: auto.Stack, release: Mapping[str, Any]) -> None:
    exported = stack.export_stack()
    others = [each for each in (exported.deployment or {})["resources"] if each["urn"] != release["urn"]]
    inputs = release["inputs"]
    # As the provider gives it: only what stands in the state can be asked to go.
    known = {**release, "id": f"{inputs['namespace']}/{inputs['name']}", "outputs": inputs}
    _import(stack, exported, [*others, known])
    try:
        stack.destroy(target=[release["urn"]], show_secrets=False, suppress_outputs=True, color="never")
    except auto.CommandError as error:
        if _NO_SUCH_RELEASE not in str(error):
            raise
        # The engine was killed before Helm had begun.
        _import(stack, exported, others)


def _import(stack: auto.Stack, exported: auto.Deployment, resources: list[Mapping[str, Any]]) -> None:
    deployment = {**(exported.deployment or {}), "resources": resources}
    stack.import_stack(auto.Deployment(version=exported.version, deployment=deployment))
