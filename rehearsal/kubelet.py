"""What happens in the cluster when a simulated instance joins it or goes: nodes, their GPUs, and the model's pod.

Kubernetes itself is real: its scheduler and controllers run in real time. To virtual time their work is a barrier: the
world stands still while we wait for them, for a while that has a limit.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from rehearsal.barrier import Barrier
from rehearsal.cluster_client import ClusterClient, ClusterGone, Manifest, Pod, Workload
from rehearsal.delays import Scenario
from rehearsal.kubernetes import LocalCluster
from rehearsal.model_pod import ModelHost, ModelPod
from rehearsal.model_server import Flaw
from rehearsal.nodes import NodeSpec
from rehearsal.world import World

MODEL_LABEL = "app.kubernetes.io/name=vllm"
PLUGIN_LABEL = "app.kubernetes.io/name=nvidia-device-plugin"
GPU = "nvidia.com/gpu"


# Nothing that is planned here comes near these: weights are streamed, and a GPU node holds a handful of pods.
_DISK = "1Ti"
_PODS = "110"
_NODE_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


class Kubelet:
    """Plays the kubelet of every simulated node: a `NodeListener` of the simulated EC2.

    Calls and events run with the world's lock held. `barrier` limits each wait for real Kubernetes.
    """

    def __init__(
        self,
        world: World,
        cluster: LocalCluster,
        scenario: Scenario,
        *,
        log_folder: Path,
        flaws: frozenset[Flaw] = frozenset(),
        barrier: Barrier | None = None,
    ) -> None:
        self._world = world
        self._cluster = cluster
        self._client = ClusterClient(cluster.kubeconfig)
        self._scenario = scenario
        self._barrier = barrier or Barrier()
        self._host = ModelHost(
            world=world,
            client=self._client,
            scenario=scenario,
            barrier=self._barrier,
            log_folder=log_folder,
            flaws=flaws,
            became_ready=self._rollout_goes_on,
        )
        self._nodes: dict[str, NodeSpec] = {}
        self._with_gpus: set[str] = set()
        self._pods: dict[str, ModelPod] = {}
        self._pods_seen = 0
        self._busy = timedelta()

    def joined(self, node: NodeSpec) -> None:
        """The instance has booted: its node registers, Ready; GPUs come later, by the device plugin.

        Raises:
            ClusterFailed: the API server does not answer, or refuses the node.
        """
        with self._world.lock:
            self._nodes[node.name] = node
            self._client.create("/api/v1/nodes", _node_manifest(node, self._cluster.kubelet_port, self._world))
            self._world.note("node_ready", group=node.node_group, instance_type=node.instance_type)
            if node.gpus and self._device_plugin_runs(node):
                delay = self._world.draw(self._scenario.device_plugin)
                self._world.after(delay, "device plugin registers", lambda: self._show_gpus(node))

    def gone(self, name: str) -> None:
        """The instance has been terminated: its node and the pods on it go at once. An unknown name is fine, and so is
        a cluster that has gone before.

        Raises:
            ClusterFailed: the API server does not answer.
        """
        with self._world.lock:
            node = self._nodes.pop(name, None)
            if node is None:
                return
            self._with_gpus.discard(name)
            for uid in [uid for uid, pod in self._pods.items() if pod.node == name]:
                self._forget(uid)
            with suppress(ClusterGone):
                # The node first: the DaemonSet's controller would fill a node that is still there again.
                self._client.delete(f"/api/v1/nodes/{name}")
                for pod in self._client.pods(node=name):
                    self._client.delete(f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}")
            self._world.note("node_gone", group=node.node_group, instance_type=node.instance_type)

    def settle(self) -> None:
        """Take note of model pods that came or went by what others did: call it when an engine operation has ended.
        A cluster that has gone is fine.

        Raises:
            ClusterFailed: the API server does not answer.
        """
        with self._world.lock, suppress(ClusterGone):
            self._follow_deployments()

    def take_busy(self) -> timedelta:
        """How long the model has worked, on all nodes, since this was last asked."""
        with self._world.lock:
            busy, self._busy = self._busy, timedelta()
            return sum((pod.take_busy() for pod in self._pods.values()), busy)

    def close(self) -> None:
        """End the model servers and the connection to the cluster. Idempotent."""
        with self._world.lock:
            for uid in list(self._pods):
                self._forget(uid)
            self._client.close()

    def _follow_deployments(self) -> None:
        if self._with_gpus:
            self._barrier.passed(self._deployments_settled)
            self._await_scheduler()
        self._take_note_of_pods()

    def _rollout_goes_on(self) -> None:
        """A model pod has become ready: a rolling update replaces the next one now, without any engine operation."""
        if any(each.status.updated_replicas < each.spec.replicas for each in self._model_deployments()):
            self._follow_deployments()

    def _device_plugin_runs(self, node: NodeSpec) -> bool:
        """Wait for the plugin's pod on the node. Without it the node never shows its GPUs, as in real life."""
        if not self._client.workloads("daemonsets", label=PLUGIN_LABEL):
            self._world.note("fault", what="no device plugin: the cluster has no such DaemonSet, so GPUs never appear")
            return False

        def runs() -> bool:
            pods = self._client.pods(label=PLUGIN_LABEL, node=node.name)
            return any(pod.status.phase == "Running" for pod in pods)

        if self._barrier.passed(runs):
            return True
        what = "the device plugin's DaemonSet has no running pod on the node, so GPUs never appear; see its tolerations"
        self._world.note("fault", what=what)
        return False

    def _show_gpus(self, node: NodeSpec) -> None:
        if self._nodes.get(node.name) is not node:
            return
        amount = {GPU: str(node.gpus)}
        self._client.patch(f"/api/v1/nodes/{node.name}/status", {"status": {"capacity": amount, "allocatable": amount}})
        self._with_gpus.add(node.name)
        self._world.note("gpus_allocatable", group=node.node_group, gpus=node.gpus)
        self._await_scheduler()
        self._take_note_of_pods()

    def _await_scheduler(self) -> None:
        """Wait until no model pod is pending that a node of ours could hold by its GPUs."""
        if self._barrier.passed(lambda: not self._could_be_placed()):
            return
        for pod in self._could_be_placed():
            self._world.note("fault", what=f"the model's pod stays pending; the scheduler says: {pod.scheduler_says}")

    def _could_be_placed(self) -> list[Pod]:
        pods = self._client.pods(label=MODEL_LABEL)
        free = {name: self._nodes[name].gpus for name in self._with_gpus}
        for pod in pods:
            if pod.spec.node_name in free:
                free[pod.spec.node_name] -= pod.gpus
        most = max(free.values(), default=0)
        return [pod for pod in pods if pod.spec.node_name is None and 0 < pod.gpus <= most]

    def _deployments_settled(self) -> bool:
        """Whether the controller has made, or removed, all pods that it can before another one is ready."""
        deployments = self._model_deployments()
        ready = sum(pod.is_ready for pod in self._client.pods(label=MODEL_LABEL))
        # The controller reads pods a moment after us: until it has counted the ready ones, its word is old.
        counted = sum(deployment.status.ready_replicas for deployment in deployments)
        return counted == ready and all(deployment.is_settled for deployment in deployments)

    def _model_deployments(self) -> tuple[Workload, ...]:
        return self._client.workloads("deployments", label=MODEL_LABEL)

    def _take_note_of_pods(self) -> None:
        on_nodes = {pod.metadata.uid: pod for pod in self._client.pods(label=MODEL_LABEL) if pod.spec.node_name}
        for uid in [uid for uid in self._pods if uid not in on_nodes]:
            self._forget(uid)
        for uid, pod in on_nodes.items():
            if uid not in self._pods and pod.spec.node_name in self._with_gpus:
                self._pods_seen += 1
                self._pods[uid] = ModelPod(pod, self._host, number=self._pods_seen)
                self._pods[uid].bound()

    def _forget(self, uid: str) -> None:
        pod = self._pods.pop(uid)
        pod.gone()
        self._busy += pod.take_busy()


def _node_manifest(node: NodeSpec, kubelet_port: int, world: World) -> Manifest:
    """The Node as EKS's AMI registers it, with its status; kwok plays its kubelet because of the annotation."""
    now = world.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        **node.labels,
    }
    metadata = {"name": node.name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints]
    amounts = {"cpu": str(node.cpu), "memory": f"{node.memory_mib}Mi", "ephemeral-storage": _DISK, "pods": _PODS}
    conditions = [
        {"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now}
        for kind, status, reason in _NODE_CONDITIONS
    ]
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions,
        # Where the API server reaches every node's kubelet, which is kwok. It would prefer a host name, and resolve it.
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
    }
    spec = {"providerID": f"aws:///{node.availability_zone}/{node.instance_id}", "taints": taints}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}
