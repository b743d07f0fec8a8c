"""A GPU node in a real cluster: GPUs by the device plugin, the model's pod by virtual time, and all gone at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import kr8s
import openai
import pytest
from kr8s._async_utils import Portal
from kr8s.objects import DaemonSet, Deployment, Namespace, Node, Pod, Secret

from rehearsal.barrier import Barrier
from rehearsal.delays import Delay, Delays, Scenario, load_constants, load_scenario
from rehearsal.kubelet import Kubelet
from rehearsal.kubernetes import LocalCluster
from rehearsal.nodes import NodeSpec, Taint
from rehearsal.world import World

pytestmark = pytest.mark.engine

START = datetime(2027, 1, 5, 11, 30, tzinfo=UTC)
KEY = "a-key-of-a-test"
GPU_NODE = NodeSpec(
    name="ip-10-0-1-10.ec2.internal",
    instance_id="i-0123456789abcdef0",
    instance_type="p6-b300.48xlarge",
    node_group="gpu",
    availability_zone="us-east-1a",
    labels={"rent-the-block/role": "gpu"},
    taints=(Taint(key="nvidia.com/gpu", value="present"),),
    gpus=8,
    cpu=192,
    memory_mib=3_877_198,
)
SYSTEM_NODE = replace(
    GPU_NODE,
    name="system",
    node_group="system",
    labels={"eks.amazonaws.com/nodegroup": "system"},
    taints=(),
    gpus=0,
    cpu=4,
    memory_mib=15_000,
)
# The chart's (charts/vllm/templates/deployment.yaml).
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
SECONDS = {"device_plugin": 30, "image_pull": 60, "weights_staged": 240, "engine_warm": 120}

Applied = TypeVar("Applied", DaemonSet, Deployment, Secret)
Eventually = Callable[[Callable[[], bool]], bool]


@pytest.fixture(scope="module")
def api(cluster: LocalCluster) -> Iterator[kr8s.Api]:
    api = kr8s.api(kubeconfig=str(cluster.kubeconfig))
    Namespace({"metadata": {"name": "vllm"}}, api=api).create()
    yield api
    # kr8s has no way to close its connection; left open, it would be told as a fault of whichever test runs later.
    if api._session:
        Portal().call(api._session.aclose)


@pytest.fixture
def scenario() -> Scenario:
    return load_scenario("default")


def exact_delays() -> Delays:
    """The delays of a start, each with one possible length."""
    delays = load_constants().delays
    exact = {
        name: Delay(low_s=seconds, high_s=seconds, source="this test", date="2027-01-01", confidence="assumed")
        for name, seconds in SECONDS.items()
    }
    return replace(delays, by_name={**delays.by_name, **exact})


@pytest.fixture
def world() -> World:
    return World(START, 1, exact_delays())


@pytest.fixture
def kubelet(world: World, cluster: LocalCluster, scenario: Scenario, tmp_path: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(world, cluster, scenario, log_folder=tmp_path / "pod-logs", barrier=Barrier(limit_s=60))
    yield kubelet
    for name in (GPU_NODE.name, SYSTEM_NODE.name):
        kubelet.gone(name)
    kubelet.close()


@pytest.fixture
def device_plugin(api: kr8s.Api) -> Iterator[None]:
    with applied(DaemonSet, daemon_set(), api):
        yield


@pytest.fixture
def deployment(api: kr8s.Api, eventually: Eventually) -> Iterator[None]:
    with applied(Secret, secret(), api), deployed(api, eventually, model()):
        yield


@contextmanager
def applied(kind: type[Applied], manifest: dict[str, object], api: kr8s.Api) -> Iterator[Applied]:
    thing = kind(manifest, api=api)
    thing.create()
    try:
        yield thing
    finally:
        thing.delete()


@contextmanager
def deployed(api: kr8s.Api, eventually: Eventually, manifest: dict[str, object]) -> Iterator[Deployment]:
    """The model's Deployment with its one pod made; afterwards without any."""
    with applied(Deployment, manifest, api) as deployment:
        assert eventually(lambda: len(model_pods(api)) == 1)
        yield deployment
    assert eventually(lambda: not model_pods(api))


def labelled(name: str, namespace: str) -> dict[str, object]:
    return {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": name}}


def workload(name: str, namespace: str, container: dict[str, object], **pod_spec: object) -> dict[str, object]:
    labels = {"app.kubernetes.io/name": name}
    spec = {"containers": [container], **pod_spec}
    return {
        "metadata": labelled(name, namespace),
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def daemon_set(**pod_spec: object) -> dict[str, object]:
    spec = {"tolerations": TOLERATIONS, "nodeSelector": {"rent-the-block/role": "gpu"}, **pod_spec}
    return workload("nvidia-device-plugin", "kube-system", {"name": "plugin", "image": "plugin"}, **spec)


def secret() -> dict[str, object]:
    return {"metadata": {"name": "vllm-api-key", "namespace": "vllm"}, "stringData": {"api-key": KEY}}


def model(
    *, startup_probe: dict[str, int] | None = None, gpus: int = 8, node_selector: dict[str, str] | None = None
) -> dict[str, object]:
    container: dict[str, object] = {
        "name": "vllm",
        "image": "vllm/vllm-openai",
        "args": ["moonshotai/Kimi-K3", "--served-model-name=kimi-k3", "--reasoning-parser=kimi_k3"],
        "env": [{"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "vllm-api-key", "key": "api-key"}}}],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    if startup_probe is not None:
        container["startupProbe"] = {"httpGet": {"path": "/health", "port": 8000}, **startup_probe}
    return workload("vllm", "vllm", container, tolerations=TOLERATIONS, nodeSelector=node_selector or {})


def model_pods(api: kr8s.Api) -> list[Pod]:
    return [
        pod
        for pod in api.get("pods", namespace="vllm", label_selector="app.kubernetes.io/name=vllm")
        if isinstance(pod, Pod)
    ]


def ready_pods(api: kr8s.Api) -> set[str]:
    """The uids of model pods that are Ready and stay."""
    return {
        pod.metadata.uid
        for pod in model_pods(api)
        if "deletionTimestamp" not in pod.metadata
        # A pod that was just created has no conditions.
        and any(each.type == "Ready" and each.status == "True" for each in pod.status.get("conditions", ()))
    }


def the_pod(api: kr8s.Api) -> Pod:
    (pod,) = model_pods(api)
    return pod


def condition(thing: Node | Pod, kind: str) -> tuple[str, str]:
    """Status and time of a condition."""
    (found,) = [condition for condition in thing.status.conditions if condition.type == kind]
    return found.status, found.lastTransitionTime


def gpus(api: kr8s.Api) -> str | None:
    amount = Node.get(GPU_NODE.name, api=api).status.allocatable.get("nvidia.com/gpu")
    return None if amount is None else str(amount)


def stamp(after_start_s: int) -> str:
    return (START + timedelta(seconds=after_start_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def kinds(world: World) -> list[str]:
    return [entry.kind for entry in world.story]


def pass_time(world: World, seconds: int) -> None:
    world.advance(START + timedelta(seconds=seconds))


@pytest.mark.usefixtures("device_plugin", "deployment")
def test_a_pod_waits_for_its_node_and_is_ready_by_virtual_time(world: World, kubelet: Kubelet, api: kr8s.Api) -> None:
    kubelet.joined(GPU_NODE)
    assert condition(Node.get(GPU_NODE.name, api=api), "Ready") == ("True", stamp(0))
    assert gpus(api) is None
    assert the_pod(api).status.phase == "Pending"

    pass_time(world, 29)
    assert gpus(api) is None
    pass_time(world, 30)
    assert gpus(api) == "8"
    pod = the_pod(api)
    assert pod.spec.nodeName == GPU_NODE.name
    assert pod.status.phase == "Pending"
    assert pod.status.containerStatuses[0].state.waiting.reason == "ContainerCreating"
    assert condition(pod, "PodScheduled") == ("True", stamp(30))

    pass_time(world, 90)
    pod = the_pod(api)
    assert pod.status.phase == "Running"
    assert pod.status.containerStatuses[0].state.running.startedAt == stamp(90)
    assert condition(pod, "Ready") == ("False", stamp(30))

    pass_time(world, 449)
    assert condition(the_pod(api), "Ready")[0] == "False"
    pass_time(world, 450)
    assert condition(the_pod(api), "Ready") == ("True", stamp(450))
    assert the_pod(api).status.containerStatuses[0].restartCount == 0
    assert kinds(world) == [
        "node_ready",
        "gpus_allocatable",
        "pod_scheduled",
        "container_started",
        "weights_loaded",
        "pod_ready",
    ]


@pytest.mark.usefixtures("device_plugin", "deployment")
def test_a_ready_pod_is_read_and_spoken_to_through_the_api_server(
    world: World, kubelet: Kubelet, api: kr8s.Api
) -> None:
    kubelet.joined(GPU_NODE)
    pass_time(world, 400)
    log = list(the_pod(api).logs(container="vllm", timestamps=True))
    assert any("Loading weights took 240.00 seconds" in line and line.startswith(stamp(330)[:-1]) for line in log)
    assert not any("startup complete" in line for line in log)

    pass_time(world, 450)
    assert any("Application startup complete." in line for line in the_pod(api).logs(container="vllm"))
    forward = the_pod(api).portforward(remote_port=8000, local_port="auto")
    with forward as port, openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, max_retries=0) as client:
        assert [card.id for card in client.models.list()] == ["kimi-k3"]
        user: openai.types.chat.ChatCompletionUserMessageParam = {"role": "user", "content": "Say pineapple."}
        reply = client.chat.completions.create(model="kimi-k3", messages=[user], timeout=30)
        assert "pineapple" in (reply.choices[0].message.content or "")
        assert reply.created == world.now.timestamp()
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()
    assert kubelet.take_busy() > timedelta()
    assert kubelet.take_busy() == timedelta()


# Its engine dies after the delay of an image pull: a minute after it was ready.
DIES = load_scenario("engine-crash").model_copy(update={"engine_crash": "image_pull"})


@pytest.mark.parametrize("scenario", [DIES], ids=["engine-crash"])
@pytest.mark.usefixtures("device_plugin", "deployment")
def test_an_engine_that_dies_loads_anew_and_says_when_it_died(world: World, kubelet: Kubelet, api: kr8s.Api) -> None:
    kubelet.joined(GPU_NODE)
    pass_time(world, 510)
    assert condition(the_pod(api), "Ready") == ("False", stamp(510))
    [container] = the_pod(api).status.containerStatuses
    assert (container.restartCount, container.lastState.terminated.finishedAt) == (1, stamp(510))
    pass_time(world, 870)
    assert condition(the_pod(api), "Ready") == ("True", stamp(870))
    story = kinds(world)
    pass_time(world, 10_000)
    assert kinds(world) == story


@pytest.mark.usefixtures("device_plugin", "deployment")
def test_a_terminated_instance_takes_its_node_and_pods_along_at_once(
    world: World, kubelet: Kubelet, api: kr8s.Api, eventually: Eventually
) -> None:
    kubelet.joined(GPU_NODE)
    pass_time(world, 450)
    before = the_pod(api)
    kubelet.gone(GPU_NODE.name)
    kubelet.gone(GPU_NODE.name)
    assert not before.exists()
    assert not Node(GPU_NODE.name, api=api).exists()
    assert not list(api.get("pods", namespace=kr8s.ALL, field_selector=f"spec.nodeName={GPU_NODE.name}"))
    assert kinds(world)[-2:] == ["pod_gone", "node_gone"]
    # The Deployment asks for its pod again: it waits for the next node.
    assert eventually(lambda: len(model_pods(api)) == 1)
    assert the_pod(api).status.phase == "Pending"
    story = kinds(world)
    pass_time(world, 10_000)
    assert kinds(world) == story


@pytest.mark.usefixtures("device_plugin", "deployment")
def test_two_equal_worlds_tell_one_story(
    cluster: LocalCluster, scenario: Scenario, tmp_path: Path, api: kr8s.Api, eventually: Eventually
) -> None:
    stories = []
    for number in range(2):
        world = World(START, 7, load_constants().delays)
        kubelet = Kubelet(world, cluster, scenario, log_folder=tmp_path / str(number))
        kubelet.joined(GPU_NODE)
        pass_time(world, 3600)
        kubelet.gone(GPU_NODE.name)
        kubelet.close()
        stories.append(world.story_lines())
        assert eventually(lambda: [pod.status.phase for pod in model_pods(api)] == ["Pending"])
    assert stories[0] == stories[1]
    assert "pod_ready" in " ".join(stories[0])


def test_without_a_device_plugin_gpus_never_appear(world: World, kubelet: Kubelet, api: kr8s.Api) -> None:
    kubelet.joined(GPU_NODE)
    pass_time(world, 3600)
    assert gpus(api) is None
    assert kinds(world) == ["node_ready", "fault"]
    assert "no such DaemonSet" in str(world.story[-1].facts["what"])


def test_a_device_plugin_that_does_not_tolerate_the_taint_brings_no_gpus(
    world: World, cluster: LocalCluster, scenario: Scenario, tmp_path: Path, api: kr8s.Api
) -> None:
    impatient = Kubelet(world, cluster, scenario, log_folder=tmp_path, barrier=Barrier(limit_s=2))
    with applied(DaemonSet, daemon_set(tolerations=[]), api):
        impatient.joined(GPU_NODE)
        pass_time(world, 3600)
        assert gpus(api) is None
        impatient.gone(GPU_NODE.name)
        impatient.close()
    assert "see its tolerations" in str([entry.facts["what"] for entry in world.story if entry.kind == "fault"])


@pytest.mark.usefixtures("device_plugin")
def test_a_pod_that_the_scheduler_can_not_place_is_a_fault_in_its_own_words(
    world: World, cluster: LocalCluster, scenario: Scenario, tmp_path: Path, api: kr8s.Api, eventually: Eventually
) -> None:
    impatient = Kubelet(world, cluster, scenario, log_folder=tmp_path, barrier=Barrier(limit_s=3))
    with deployed(api, eventually, model(node_selector={"rent-the-block/role": "no-such-role"})):
        impatient.joined(GPU_NODE)
        pass_time(world, 3600)
        impatient.gone(GPU_NODE.name)
        impatient.close()
    assert "didn't match Pod's node affinity/selector" in str(world.story[2].facts["what"])


@pytest.mark.usefixtures("device_plugin")
def test_ordinary_pods_run_at_once_on_a_system_node(kubelet: Kubelet, api: kr8s.Api, eventually: Eventually) -> None:
    kubelet.joined(SYSTEM_NODE)
    manifest = workload("coredns", "kube-system", {"name": "coredns", "image": "coredns"})
    with applied(Deployment, manifest, api) as coredns:
        assert eventually(lambda: coredns.ready())
    node = Node.get(SYSTEM_NODE.name, api=api)
    assert node.status.allocatable["cpu"] == "4"
    assert node.labels["eks.amazonaws.com/nodegroup"] == "system"
    assert node.labels["kubernetes.io/hostname"] == "system"
    assert node.spec.providerID == f"aws:///us-east-1a/{SYSTEM_NODE.instance_id}"


@pytest.mark.usefixtures("device_plugin")
def test_a_startup_probe_that_is_too_short_ends_the_container_and_the_load_begins_again(
    world: World, kubelet: Kubelet, api: kr8s.Api, eventually: Eventually
) -> None:
    probe = {"periodSeconds": 10, "failureThreshold": 30}
    with applied(Secret, secret(), api), deployed(api, eventually, model(startup_probe=probe)):
        kubelet.joined(GPU_NODE)
        pass_time(world, 90 + 299)
        assert the_pod(api).status.containerStatuses[0].restartCount == 0
        pass_time(world, 90 + 300)
        status = the_pod(api).status.containerStatuses[0]
        assert status.restartCount == 1
        assert status.lastState.terminated.finishedAt == stamp(390)
        assert status.state.running.startedAt == stamp(390)
        pass_time(world, 90 + 900)
        assert "pod_ready" not in kinds(world)
        assert any("took 240.00" in line for line in the_pod(api).logs(container="vllm", previous=True))


@pytest.mark.usefixtures("device_plugin")
def test_a_pod_without_its_secret_does_not_start_and_says_why(
    world: World, kubelet: Kubelet, api: kr8s.Api, eventually: Eventually
) -> None:
    with deployed(api, eventually, model()):
        kubelet.joined(GPU_NODE)
        pass_time(world, 3600)
        assert the_pod(api).status.containerStatuses[0].state.waiting.reason == "CreateContainerConfigError"
    assert "no secret vllm-api-key" in str(world.story[-1].facts["what"])


@pytest.mark.usefixtures("device_plugin")
def test_a_pod_that_comes_after_its_node_is_noticed_when_the_operation_has_ended(
    world: World, kubelet: Kubelet, api: kr8s.Api, eventually: Eventually
) -> None:
    kubelet.joined(GPU_NODE)
    pass_time(world, 100)
    with applied(Secret, secret(), api), applied(Deployment, model(gpus=4), api):
        kubelet.settle()
        pass_time(world, 100 + 420)
        assert condition(the_pod(api), "Ready") == ("True", stamp(520))
    assert eventually(lambda: not model_pods(api))
    kubelet.settle()
    assert kinds(world)[-1] == "pod_gone"


@pytest.mark.usefixtures("device_plugin")
def test_an_update_of_two_model_servers_stops_one_at_a_time(
    world: World, kubelet: Kubelet, api: kr8s.Api, eventually: Eventually
) -> None:
    """The real Deployment controller carries the chart's strategy out; each start takes 420 s of virtual time."""
    second = replace(GPU_NODE, name="second")
    kubelet.joined(GPU_NODE)
    kubelet.joined(second)
    pass_time(world, 100)
    manifest = model()
    manifest["spec"] |= {"replicas": 2, "strategy": ROLLING}  # type: ignore[operator]
    with applied(Secret, secret(), api), applied(Deployment, manifest, api) as deployment:
        kubelet.settle()
        pass_time(world, 520)
        before = {pod.metadata.uid for pod in model_pods(api)}
        assert ready_pods(api) == before
        assert len(before) == 2

        deployment.patch({"spec": {"template": {"metadata": {"annotations": {"changed": "yes"}}}}})
        kubelet.settle()
        assert len(ready_pods(api)) == 1
        assert ready_pods(api) < before
        pass_time(world, 520 + 419)
        assert len(ready_pods(api)) == 1
        # The first new one is ready: now, and not before, the second old one goes.
        pass_time(world, 520 + 421)
        assert len(ready_pods(api)) == 1
        assert not ready_pods(api) & before
        pass_time(world, 520 + 2 * 420)
        assert len(ready_pods(api)) == 2
        assert not ready_pods(api) & before
    assert eventually(lambda: not model_pods(api))
    kubelet.gone(second.name)


@pytest.mark.usefixtures("device_plugin", "deployment")
def test_the_audit_log_tells_the_kubelet_from_the_others(world: World, kubelet: Kubelet, cluster: LocalCluster) -> None:
    kubelet.joined(GPU_NODE)
    pass_time(world, 450)
    events = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]
    makers = {event["userAgent"].split("/")[0] for event in events if event["objectRef"]["resource"] == "deployments"}
    assert "rentblock-rehearsal-kubelet" not in makers
    assert {event["userAgent"] for event in events if event["objectRef"]["resource"] == "nodes"} >= {
        "rentblock-rehearsal-kubelet"
    }
