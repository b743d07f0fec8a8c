"""A changed template of the chart reaches the cluster by `up`, on the real engine and with the real Helm."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kr8s
import pytest
from kr8s._async_utils import Portal
from kr8s.objects import ConfigMap, Deployment, NetworkPolicy, Service

from automation.ledger.folder import SessionFolder
from components.vllm import CHART_FOLDER
from tests.engine.program.conftest import CONFIG, changes

pytestmark = [
    pytest.mark.engine,
    # Pulumi's SDK leaves the event loop of a program open when its operation has failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_changed_service_is_deployed_and_restarts_no_model_server(
    place: Any, open_it: Any, folder: SessionFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stack = open_it(place)(CONFIG)
    made = stack.up(show_secrets=False)
    folder.kubeconfig.write_text(made.outputs["kubeconfig"].value)
    before, _ = in_cluster(folder.kubeconfig)

    charts = tmp_path / "charts"
    changed = Path(shutil.copytree(CHART_FOLDER, charts / "vllm"))
    template = changed / "templates" / "service.yaml"
    template.write_text(template.read_text().replace("  labels:\n", "  labels:\n    changed: here\n"))
    (folder.work / "charts").unlink()
    (folder.work / "charts").symlink_to(charts)
    monkeypatch.setattr("components.vllm.CHART_FOLDER", changed)
    # Opening the stack again would lead the link back to the charts of the checkout.
    updated = changes(stack.up(show_secrets=False).summary)
    assert updated == {"same": sum(changes(made.summary).values()) - 1, "update": 1}

    after, service = in_cluster(folder.kubeconfig)
    assert service.metadata.labels["changed"] == "here"
    # The pod's template decides about a rollout; the generation counts changed annotations too.
    assert after.spec == before.spec
    assert (
        after.metadata.annotations["rent-the-block/chart-hash"]
        != before.metadata.annotations["rent-the-block/chart-hash"]
    )
    assert changes(stack.up(show_secrets=False).summary).keys() == {"same"}
    stack.destroy(show_secrets=False)


def test_the_cluster_takes_the_network_policy_and_the_middleware(
    place: Any, open_it: Any, folder: SessionFolder
) -> None:
    """That a policy is enforced is the VPC CNI's part, which no rehearsal has."""
    stack = open_it(place)(CONFIG)
    folder.kubeconfig.write_text(stack.up(show_secrets=False).outputs["kubeconfig"].value)
    with cluster(folder.kubeconfig) as api:
        policy = NetworkPolicy.get("vllm", namespace="vllm", api=api)
        config = ConfigMap.get("vllm-middleware", namespace="vllm", api=api)
    assert policy.spec.policyTypes == ["Ingress"]
    assert "ingress" not in policy.spec
    assert config.data["require_key.py"] == (CHART_FOLDER / "files" / "require_key.py").read_text()
    stack.destroy(show_secrets=False)


@contextmanager
def cluster(kubeconfig: Path) -> Iterator[kr8s.Api]:
    api = kr8s.api(kubeconfig=str(kubeconfig))
    yield api
    # kr8s has no way to close its connection; left open, it would be told as a fault of whichever test runs later.
    if api._session:
        Portal().call(api._session.aclose)


def in_cluster(kubeconfig: Path) -> tuple[Deployment, Service]:
    with cluster(kubeconfig) as api:
        return Deployment.get("vllm", namespace="vllm", api=api), Service.get("vllm", namespace="vllm", api=api)
