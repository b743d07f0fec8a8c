"""One control plane stands behind every EKS cluster of a world, one after the other: each new one finds it empty.

What is in a cluster of AWS goes with the cluster, and Pulumi does not delete it one by one. Here it would stay, and the
next cluster of the same world would meet it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from automation.errors import ClusterFailed
from rehearsal.barrier import Barrier
from rehearsal.cluster_client import USER_AGENT, ClusterClient
from rehearsal.kubernetes import LocalCluster

# Who makes things of its own accord: the control plane, and the simulated kubelet, whose nodes go with their instances.
_ITSELF = ("kube-", "kwok", USER_AGENT)


class _Lenient(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class _Object(_Lenient):
    """What an audited request was about."""

    resource: str
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    api_version: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        group = f"/apis/{self.api_group}" if self.api_group else "/api"
        # A namespace is said to lie in itself.
        place = f"/namespaces/{self.namespace}" if self.namespace and self.resource != "namespaces" else ""
        return f"{group}/{self.api_version}{place}/{self.resource}/{self.name}"


class _Status(_Lenient):
    code: int = 0


class _Change(_Lenient):
    """A line of the audit log."""

    user_agent: str = ""
    object_ref: _Object | None = None
    response_status: _Status = Field(default_factory=_Status)


class Reuse:
    """Knows from the audit log what has been put into the control plane, and takes it out again."""

    def __init__(self, cluster: LocalCluster, barrier: Barrier | None = None) -> None:
        self._cluster = cluster
        self._barrier = barrier or Barrier()
        self._lines_read = 0

    def empty(self) -> None:
        """Delete what others than the control plane have made since the last call, and wait until it is gone.

        Raises:
            ClusterFailed: the API server does not answer, or something does not go.
        """
        made = set(self._made())
        if not made:
            return
        with ClusterClient(self._cluster.kubeconfig) as client:
            for path in made:
                client.delete(path)
            if not self._barrier.passed(lambda: not any(client.exists(path) for path in made)):
                left = ", ".join(path for path in sorted(made) if client.exists(path))
                happened = f"The rehearsal's control plane can't be emptied for a new cluster: {left} does not go."
                raise ClusterFailed(happened=happened, remedy="Run the rehearsal again.")

    def _made(self) -> Iterator[str]:
        lines = self._cluster.audit_log.read_text(encoding="utf-8").splitlines()
        new, self._lines_read = lines[self._lines_read :], len(lines)
        for change in (_Change.model_validate(json.loads(line)) for line in new):
            about = change.object_ref
            made = change.response_status.code == HTTPStatus.CREATED and not change.user_agent.startswith(_ITSELF)
            if made and about and about.name and not about.subresource:
                yield about.path
