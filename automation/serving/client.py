"""How a session's requests reach the model: a port-forward through the cluster's API server.

The endpoint has no address outside the cluster, and the chart's NetworkPolicy keeps other pods and nodes from its port.
Whoever may forward ports in the cluster reaches it, and needs the API key for every path but `/health`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .cluster import Cluster

SERVICE_PORT = 8000


@contextmanager
def connect(kubeconfig: Path, namespace: str, service: str) -> Iterator[str]:
    """Reach the served model while the block lasts; gives the `base_url` for an OpenAI client, on 127.0.0.1.

    The address stays the same when the pod is replaced: the next connection goes to a pod that is ready then.
    Raises ClusterFailed when no pod of the Service is ready, or the cluster does not answer.
    """
    with Cluster(kubeconfig) as cluster, cluster.forward(namespace, service, SERVICE_PORT) as port:
        yield f"http://127.0.0.1:{port}/v1"
