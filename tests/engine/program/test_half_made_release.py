"""A Helm release that a killed engine was making, at any point of that, is made anew by the next `up`."""

from __future__ import annotations

import json
import warnings
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from gzip import compress, decompress
from types import SimpleNamespace
from typing import Any

import kr8s
import pytest
from kr8s.objects import Secret

from automation.ledger.folder import SessionFolder
from automation.target import Target
from tests.engine.program.conftest import CONFIG, SESSION, changes, without

with warnings.catch_warnings():
    # pulumi-eks warns while it is imported, whoever imports it.
    warnings.simplefilter("ignore", DeprecationWarning)
    from automation.session import child

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RELEASE = "kubernetes:helm.sh/v3:Release"


def notes_of_helm(place: Any) -> Iterator[Secret]:
    """What Helm keeps of its releases, in the cluster itself."""
    api = kr8s.api(kubeconfig=place.running.cluster.kubeconfig)
    for secret in api.get("secrets", namespace="vllm"):
        if secret.raw["type"] == "helm.sh/release.v1":
            yield secret


def before_helm_had_begun(place: Any) -> None:
    for note in notes_of_helm(place):
        note.delete()


def while_helm_was_at_work(place: Any) -> None:
    for note in notes_of_helm(place):
        release = json.loads(decompress(b64decode(b64decode(note.raw["data"]["release"]))))
        release["info"]["status"] = "pending-install"
        data = b64encode(b64encode(compress(json.dumps(release).encode()))).decode()
        note.patch({"data": {"release": data}, "metadata": {"labels": {"status": "pending-install"}}})


def after_helm_had_ended(place: Any) -> None:
    del place


def lose(place: Any) -> None:
    """Let the state be as if the engine had been killed between its request and the provider's answer."""
    [file] = place.running.folder.backend.glob(f".pulumi/stacks/*/{SESSION}.json")
    state = json.loads(file.read_text(encoding="utf-8"))
    latest = state["checkpoint"]["latest"]
    [release] = [each for each in latest["resources"] if each["type"] == RELEASE]
    latest["resources"].remove(release)
    latest["pending_operations"] = [{"type": "creating", "resource": without(release, "id", "outputs")}]
    file.write_text(json.dumps(state), encoding="utf-8")


def test_a_release_is_made_anew_whenever_the_engine_was_killed(
    place: Any, open_it: Callable[..., Any], folder: SessionFolder, target: Target
) -> None:
    stack = open_it(place)(CONFIG)
    made = sum(changes(stack.up(show_secrets=False).summary).values())
    work: Any = SimpleNamespace(
        stack=stack,
        folder=folder,
        target=target,
        environment={"PULUMI_BACKEND_URL": place.running.folder.backend.as_uri()},
        record=SimpleNamespace(request=SimpleNamespace(parallel=16)),
    )
    for killed in (after_helm_had_ended, while_helm_was_at_work, before_helm_had_begun):
        lose(place)
        killed(place)
        child._recover(work)
        assert folder.half_made_releases.exists()
        child.half_made.take_back(stack, folder)
        assert not folder.half_made_releases.exists()
        assert changes(stack.up(show_secrets=False).summary) == {"same": made - 1, "create": 1}, killed.__name__
        [note] = notes_of_helm(place)
        assert note.raw["metadata"]["labels"]["status"] == "deployed"
    stack.destroy(show_secrets=False)
    assert place.everything() == []
