"""The life of one pod that serves the model, from its node's point of view, in virtual time.

Bound -> image pulled, container runs -> weights loaded -> engine ready, server answers, pod ready. A container that is
not ready when its startup probe has used up its failures is ended, and one whose engine dies has ended: it starts again
from nothing, as a kubelet does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from automation.errors import ClusterFailed
from rehearsal.barrier import Barrier
from rehearsal.cluster_client import ClusterClient, Container, EnvVar, Manifest, Pod
from rehearsal.delays import Scenario
from rehearsal.model_server import Flaw, ModelServer
from rehearsal.serving_options import API_KEY_VARIABLE, BadArguments, serving_options
from rehearsal.world import World

CONTAINER = "vllm"
PORT = 8000
# What a container that was ended by SIGKILL exits with.
_KILLED = 137
_KWOK_API = "kwok.x-k8s.io/v1alpha1"


class _CannotStart(Exception):
    """The container's environment can't be made."""


@dataclass(frozen=True, kw_only=True)
class ModelHost:
    """What a pod gets from the node that it runs on."""

    world: World
    client: ClusterClient
    scenario: Scenario
    barrier: Barrier
    log_folder: Path
    flaws: frozenset[Flaw]
    became_ready: Callable[[], None]
    """Called after a pod has become ready, with the world's lock held."""


class ModelPod:
    """One pod on its node. All methods are called with the world's lock held."""

    def __init__(self, pod: Pod, host: ModelHost, *, number: int) -> None:
        """`number` counts the model pods of a world from 1; it becomes the last part of the pod's address."""
        self._pod = pod
        self._host = host
        self._address = f"10.64.0.{number}"
        self._container = _serving_container(pod)
        self._bound_at = self._started_at = self._unready_since = host.world.now
        self._restarts = 0
        self._last_end: Manifest | None = None
        self._server: ModelServer | None = None
        self._busy = timedelta()
        self._plan = 0
        """Events carry the number of the plan that they belong to; those of a plan that was given up do nothing."""

    @property
    def node(self) -> str:
        return self._pod.spec.node_name or ""

    def bound(self) -> None:
        """The scheduler has chosen this node: pull the image."""
        self._note("pod_scheduled")
        self._patch_status("Pending", state={"waiting": {"reason": "ContainerCreating"}})
        self._after(self._draw(self._host.scenario.image), "image pulled", self._start_container)

    def gone(self) -> None:
        """The pod has been deleted, or its node has ended: its server answers no more."""
        self._note("pod_gone")
        self._end_server()

    def take_busy(self) -> timedelta:
        """How long the model has worked since this was last asked."""
        busy, self._busy = self._busy, timedelta()
        return busy + (self._server.take_busy() if self._server is not None else timedelta())

    def _start_container(self) -> None:
        try:
            options = serving_options(self._container, api_key=self._api_key())
        except _CannotStart as error:
            self._stays_down("CreateContainerConfigError", str(error))
            return
        except BadArguments as error:
            self._stays_down("CrashLoopBackOff", str(error))
            return
        self._server = ModelServer(options, now=lambda: self._host.world.now, flaws=self._host.flaws)
        self._started_at = self._host.world.now
        self._note("container_started", restarts=self._restarts)
        self._say("vLLM API server of a rehearsal: its answers come from no model.")
        self._patch_status("Running", state=self._running)
        self._publish(self._server.port)
        probe = self._container.startup_probe
        if probe is not None:
            self._after(timedelta(seconds=probe.allowed_s), "startup probe", self._startup_probe_gives_up)
        took = self._draw(self._host.scenario.weights_load)
        self._after(took, "weights loaded", lambda: self._weights_loaded(took))

    def _stays_down(self, reason: str, message: str) -> None:
        """A real kubelet would try again for ever; here it is said once, and somebody has to repair the pod."""
        self._note("fault", what=message)
        self._patch_status("Pending", state={"waiting": {"reason": reason, "message": message}})

    def _api_key(self) -> str | None:
        """The key as the container's environment has it; None when it has none, and the server then asks for none."""
        variable = next(
            (env for env in self._container.env if env.name == API_KEY_VARIABLE), EnvVar(name=API_KEY_VARIABLE)
        )
        reference = variable.value_from.secret_key_ref if variable.value_from is not None else None
        if reference is None:
            return variable.value or None
        value = self._host.client.secret_value(self._pod.metadata.namespace, reference.name, reference.key)
        if value is None:
            raise _CannotStart(f"the cluster has no secret {reference.name} with key {reference.key}")
        return value

    def _weights_loaded(self, took: timedelta) -> None:
        self._note("weights_loaded")
        self._say(f"Loading weights took {took.total_seconds():.2f} seconds")
        took = self._draw(self._host.scenario.engine)
        self._after(took, "engine ready", lambda: self._engine_ready(took))

    def _engine_ready(self, took: timedelta) -> None:
        self._plan += 1  # The startup probe has succeeded: it does not end the container any more.
        self._say(f"init engine (profile, create kv cache, warmup model) took {took.total_seconds():.2f} seconds")
        self._say("Application startup complete.")
        if self._server is not None:
            self._server.start()
        self._patch_status("Running", state=self._running, ready=True)
        self._note("pod_ready")
        self._host.became_ready()
        if self._host.scenario.engine_crash and not self._restarts:
            self._after(self._draw(self._host.scenario.engine_crash), "engine dies", self._engine_dies)

    def _startup_probe_gives_up(self) -> None:
        self._container_ended("startup probe failed", exit_code=_KILLED)

    def _engine_dies(self) -> None:
        self._unready_since = self._host.world.now
        self._container_ended("engine died", exit_code=1)

    def _container_ended(self, why: str, *, exit_code: int) -> None:
        self._note("container_ended", why=why, restarts=self._restarts)
        self._end_server()
        times = {"startedAt": _timestamp(self._started_at), "finishedAt": _timestamp(self._host.world.now)}
        self._last_end = {"terminated": {"exitCode": exit_code, "reason": "Error", **times}}
        self._restarts += 1
        self._start_container()

    def _end_server(self) -> None:
        self._plan += 1
        if self._server is not None:
            self._server.stop()
            self._busy += self._server.take_busy()
            self._server = None

    def _note(self, kind: str, **facts: str | int) -> None:
        # A pod's name ends in random letters, which have no place in a story.
        self._host.world.note(kind, app=CONTAINER, **facts)

    def _draw(self, delay: str) -> timedelta:
        return self._host.world.draw(delay)

    def _after(self, delay: timedelta, name: str, action: Callable[[], None]) -> None:
        plan = self._plan

        def act() -> None:
            if self._plan == plan:
                action()

        self._host.world.after(delay, name, act)

    def _log_file(self, restart: int) -> Path:
        metadata = self._pod.metadata
        return self._host.log_folder / f"{metadata.namespace}_{metadata.name}" / f"{restart}.log"

    def _say(self, text: str) -> None:
        """A line of the container's log, in the format in which container runtimes keep them."""
        file = self._log_file(self._restarts)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as log:
            log.write(f"{_timestamp(self._host.world.now)} stdout F INFO {text}\n")

    def _publish(self, port: int) -> None:
        """Tell kwok, which answers for the kubelet, where the container's port and its log are; see that it knows."""
        forward = {"ports": [PORT], "target": {"address": "127.0.0.1", "port": port}}
        self._put("portforwards", "PortForward", {"forwards": [forward]})
        log: dict[str, object] = {"containers": [self._container.name], "logsFile": str(self._log_file(self._restarts))}
        if self._restarts:
            log["previousLogsFile"] = str(self._log_file(self._restarts - 1))
        self._put("logs", "Logs", {"logs": [{**log, "follow": True}]})
        pod = self._pod.metadata
        if not self._host.barrier.passed(
            lambda: self._host.client.log_is_readable(pod.namespace, pod.name, self._container.name)
        ):
            happened = "The rehearsal's cluster does not give the log of the model's pod."
            raise ClusterFailed(happened=happened, remedy="Run the rehearsal again.")

    def _put(self, resource: str, kind: str, spec: Manifest) -> None:
        """Create or change kwok's object for this pod: it has the pod's name, and goes when the pod goes."""
        metadata = self._pod.metadata
        collection = f"/apis/{_KWOK_API}/namespaces/{metadata.namespace}/{resource}"
        if self._host.client.patch(f"{collection}/{metadata.name}", {"spec": spec}):
            return
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid}
        name = {"name": metadata.name, "namespace": metadata.namespace, "ownerReferences": [owner]}
        self._host.client.create(collection, {"apiVersion": _KWOK_API, "kind": kind, "metadata": name, "spec": spec})

    @property
    def _running(self) -> Manifest:
        return {"running": {"startedAt": _timestamp(self._started_at)}}

    def _patch_status(self, phase: str, *, state: Manifest, ready: bool = False) -> None:
        bound = _timestamp(self._bound_at)
        since = _timestamp(self._host.world.now if ready else self._unready_since)
        status = {
            "phase": phase,
            "startTime": bound,
            "podIP": self._address,
            "podIPs": [{"ip": self._address}],
            "conditions": [
                _condition("PodScheduled", True, bound),
                _condition("Initialized", True, bound),
                _condition("ContainersReady", ready, since),
                _condition("Ready", ready, since),
            ],
            "containerStatuses": [
                {
                    "name": container.name,
                    "image": container.image,
                    "imageID": "",
                    "ready": ready,
                    "started": ready,
                    "restartCount": self._restarts,
                    "state": state,
                    **({"lastState": self._last_end} if self._last_end is not None else {}),
                }
                for container in self._pod.spec.containers
            ],
        }
        metadata = self._pod.metadata
        path = f"/api/v1/namespaces/{metadata.namespace}/pods/{metadata.name}/status"
        self._host.client.patch(path, {"status": status})


def _condition(kind: str, holds: bool, since: str) -> Manifest:
    return {"type": kind, "status": str(holds), "lastTransitionTime": since}


def _serving_container(pod: Pod) -> Container:
    """The container that serves the model; the others, if there are any, are taken to do what it does."""
    named = [container for container in pod.spec.containers if container.name == CONTAINER]
    return (named or list(pod.spec.containers))[0]


def _timestamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
