"""The few calls that the simulated kubelet makes to the API server.

They carry a user agent of their own, so that the audit log tells them from everyone else's changes; kr8s, which
sessions use, has a fixed one.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import httpx
import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from automation.errors import ClusterFailed

Manifest = Mapping[str, object]
USER_AGENT = "rentblock-rehearsal-kubelet"
_TIMEOUT_S = 30


class _Lenient(BaseModel):
    """A part of an object as the API server gives it; what is not named here is ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Metadata(_Lenient):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    generation: int = 0
    deletion_timestamp: str | None = None


class SecretKeyRef(_Lenient):
    name: str
    key: str


class ValueFrom(_Lenient):
    secret_key_ref: SecretKeyRef | None = None


class EnvVar(_Lenient):
    name: str
    value: str = ""
    value_from: ValueFrom | None = None


class Resources(_Lenient):
    limits: dict[str, str] = Field(default_factory=dict)


class Probe(_Lenient):
    """Kubernetes's own defaults."""

    initial_delay_seconds: int = 0
    period_seconds: int = 10
    failure_threshold: int = 3

    @property
    def allowed_s(self) -> int:
        """After so many seconds of failures the kubelet ends the container."""
        return self.initial_delay_seconds + self.period_seconds * self.failure_threshold


class Container(_Lenient):
    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: Resources = Field(default_factory=Resources)
    startup_probe: Probe | None = None


class PodSpec(_Lenient):
    node_name: str | None = None
    containers: tuple[Container, ...]


class Condition(_Lenient):
    type: str
    status: str
    message: str = ""


class PodStatus(_Lenient):
    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()


class Pod(_Lenient):
    """A pod as far as a kubelet looks at it."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = Field(default_factory=PodStatus)

    @property
    def gpus(self) -> int:
        """GPUs that its containers ask for."""
        return sum(int(container.resources.limits.get("nvidia.com/gpu", "0")) for container in self.spec.containers)

    @property
    def is_ready(self) -> bool:
        """Whether it is Ready and stays."""
        ready = any(condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions)
        return ready and self.metadata.deletion_timestamp is None

    @property
    def scheduler_says(self) -> str:
        """Why the scheduler has found no node, in its own words."""
        return next((condition.message for condition in self.status.conditions if condition.message), "nothing")


class _PodList(_Lenient):
    items: tuple[Pod, ...]


class WorkloadSpec(_Lenient):
    replicas: int = 1


class WorkloadStatus(_Lenient):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0


class Workload(_Lenient):
    """A Deployment or a DaemonSet, as far as it tells whether its controller has caught up."""

    metadata: Metadata
    spec: WorkloadSpec = Field(default_factory=WorkloadSpec)
    status: WorkloadStatus = Field(default_factory=WorkloadStatus)

    @property
    def is_settled(self) -> bool:
        """Whether a Deployment's controller has no more to do until a pod becomes ready.

        A rolling update without surge stops in the middle: it has replaced one pod and waits until that is ready.
        """
        wanted, now = self.spec.replicas, self.status
        if now.observed_generation < self.metadata.generation or now.replicas != wanted:
            return False
        return now.updated_replicas == wanted or (now.updated_replicas > 0 and now.ready_replicas < wanted)


class _WorkloadList(_Lenient):
    items: tuple[Workload, ...]


class _Secret(_Lenient):
    data: dict[str, str] = Field(default_factory=dict)


class ClusterGone(ClusterFailed):
    """Nobody listens any more where the API server was: what the cluster held is gone with it."""


class ClusterClient:
    """One connection to the API server. Each call raises ClusterFailed when the server doesn't answer or says no."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self._http = httpx.Client(
            base_url=cluster["server"],
            verify=_tls(kubeconfig, cluster["certificate-authority-data"], user),
            headers={"User-Agent": USER_AGENT},
            timeout=_TIMEOUT_S,
            # A proxy of the user's has no business between two programs on this machine.
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def pods(self, *, label: str | None = None, node: str | None = None) -> tuple[Pod, ...]:
        """Pods of all namespaces, in the order of their names; those with a label `key=value`, those on a node."""
        selectors = {"labelSelector": label, "fieldSelector": None if node is None else f"spec.nodeName={node}"}
        answer = self._call("GET", "/api/v1/pods", params={name: value for name, value in selectors.items() if value})
        return _PodList.model_validate_json(answer.content).items

    def workloads(self, kind: Literal["deployments", "daemonsets"], *, label: str) -> tuple[Workload, ...]:
        """Deployments or DaemonSets of all namespaces with a label `key=value`."""
        answer = self._call("GET", f"/apis/apps/v1/{kind}", params={"labelSelector": label})
        return _WorkloadList.model_validate_json(answer.content).items

    def secret_value(self, namespace: str, name: str, key: str) -> str | None:
        """The value in clear, or None when there is no such Secret or no such key."""
        answer = self._call("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}", missing_ok=True)
        value = _Secret.model_validate_json(answer.content).data.get(key) if answer.is_success else None
        return None if value is None else base64.b64decode(value).decode()

    def log_is_readable(self, namespace: str, pod: str, container: str) -> bool:
        """Whether the kubelet (kwok) gives the container's log: it has then seen what we have told it about the pod."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        try:
            return self._call(
                "GET", path, params={"container": container, "limitBytes": "1"}, missing_ok=True
            ).is_success
        except ClusterFailed:
            return False

    def exists(self, path: str) -> bool:
        """Whether there is an object at `path`."""
        return self._call("GET", path, missing_ok=True).is_success

    def create(self, collection: str, manifest: Manifest) -> None:
        """Create an object in a collection such as `/api/v1/nodes`."""
        self._call("POST", collection, json=manifest)

    def patch(self, path: str, patch: Manifest) -> bool:
        """Merge `patch` into the object (or its `/status`) at `path`. Returns False when the object is gone."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._call("PATCH", path, json=patch, headers=headers, missing_ok=True).is_success

    def delete(self, path: str) -> None:
        """Delete at once, without a grace period. An object that is gone already is fine."""
        self._call("DELETE", path, json={"gracePeriodSeconds": 0}, missing_ok=True)

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Manifest | None = None,
        headers: Mapping[str, str] | None = None,
        missing_ok: bool = False,
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, params=params, json=json, headers=headers)
        except httpx.HTTPError as error:
            happened = f"The rehearsal's Kubernetes API did not answer {method} {path}: {error}."
            kind = ClusterGone if isinstance(error, httpx.ConnectError) else ClusterFailed
            raise kind(happened=happened, remedy="Run the rehearsal again.") from error
        if answer.is_success or (missing_ok and answer.status_code == httpx.codes.NOT_FOUND):
            return answer
        happened = f"The rehearsal's Kubernetes API refused {method} {path}: {answer.text}."
        raise ClusterFailed(happened=happened, remedy="Run the rehearsal again.")


def _tls(kubeconfig: Path, authority: str, user: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    # Python reads a client's certificate and key from a file only.
    pair = kubeconfig.with_suffix(".pem")
    pair.touch(mode=0o600)
    pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    context.load_cert_chain(pair)
    return context
