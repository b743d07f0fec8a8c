"""How the session's own requests reach the model: a port-forward through the cluster's API server.

The endpoint has no address of its own by default, so nobody else reaches it: vLLM's API key guards only `/v1`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .cluster import Cluster

SERVICE_PORT = 8000


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where an OpenAI client finds the model: `openai.OpenAI(base_url=..., api_key=...)`. The key is never printed."""

    base_url: str
    api_key: str = field(repr=False)


@contextmanager
def connect(kubeconfig: Path, namespace: str, service: str, api_key: str) -> Iterator[Endpoint]:
    """Reach the served model on 127.0.0.1 while the block lasts.

    The address stays the same when the pod is replaced: the next connection goes to a pod that is ready.
    Raises ClusterFailed when no pod of the Service is ready, or the cluster does not answer.
    """
    with Cluster(kubeconfig) as cluster, cluster.forward(namespace, service, SERVICE_PORT) as port:
        yield Endpoint(base_url=f"http://127.0.0.1:{port}/v1", api_key=api_key)
