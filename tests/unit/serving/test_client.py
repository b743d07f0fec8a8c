"""The way to the model: through the API server, and back again after the pod was replaced."""

import base64
import os
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from automation.errors import ClusterFailed
from automation.serving import cluster
from automation.serving.client import connect

LABELS = {"app.kubernetes.io/name": "vllm"}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "vllm", "namespace": "vllm"},
    "spec": {"selector": LABELS, "ports": [{"name": "http", "port": 8000}]},
}


def pod(name: str, *, ready: bool = True) -> dict[str, Any]:
    conditions = [{"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "vllm", "labels": LABELS},
        "status": {"phase": "Running", "conditions": conditions},
    }


def model(answer: str) -> Starlette:
    async def say(_: Request) -> PlainTextResponse:
        return PlainTextResponse(answer)

    return Starlette(routes=[Route("/v1/models", say)])


@pytest.fixture
def get() -> Callable[[str], str]:
    def fetch(base_url: str) -> str:
        return httpx.get(f"{base_url}/models", timeout=5, trust_env=False).text

    return fetch


@contextmanager
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) <= before


def test_the_model_is_reached_through_the_api_server(kube_api, serve, get) -> None:
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1")]}
    kube_api.pod_ports["vllm-1"] = serve(model("one"))
    with connect(kube_api.kubeconfig, "vllm", "vllm") as base_url:
        assert base_url.startswith("http://127.0.0.1:")
        assert get(base_url) == "one"


def test_the_address_survives_the_replacement_of_the_pod(kube_api, serve, get) -> None:
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1")]}
    kube_api.pod_ports["vllm-1"] = serve(model("one"))
    with connect(kube_api.kubeconfig, "vllm", "vllm") as base_url:
        assert get(base_url) == "one"
        kube_api.objects["pods"] = [pod("vllm-2")]
        kube_api.pod_ports = {"vllm-2": serve(model("two"))}
        assert get(base_url) == "two"


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that gives back what it is sent, for as long as a connection is open."""

    class GiveBack(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while said := self.request.recv(1024):
                self.request.sendall(said)

    class Server(socketserver.ThreadingTCPServer):
        request_queue_size = 200

    with Server(("127.0.0.1", 0), GiveBack) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def begin(kube_api, echo: int) -> Iterator[Callable[[int], list[socket.socket]]]:
    """Opens so many connections through a forward, which then stay open."""
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1")]}
    kube_api.pod_ports["vllm-1"] = echo
    with connect_to(kube_api) as base_url, ExitStack() as stack:
        address = ("127.0.0.1", httpx.URL(base_url).port)
        yield lambda count: [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(count)]


def answers(connections: list[socket.socket]) -> set[bytes]:
    """What comes back when all of them say something at once; nothing from one that was cut."""
    for connection in connections:
        connection.sendall(b"go on")
    return {connection.recv(1024) for connection in connections}


def test_a_token_that_runs_out_cuts_no_answer_short_and_is_renewed_once_for_all(kube_api, begin) -> None:
    under_way = []
    for sign_ins, token in enumerate(("second", "third"), start=2):
        kube_api.take_only(token)
        late = begin(10)
        assert answers(late) == {b"go on"}
        under_way += late
        assert answers(under_way) == {b"go on"}
        assert kube_api.sign_ins == sign_ins


def test_what_is_forbidden_meanwhile_cuts_no_answer_short(kube_api, begin) -> None:
    """kr8s then signs in again by itself."""
    under_way = begin(1)
    assert answers(under_way) == {b"go on"}
    kube_api.refusal = 403
    kube_api.take_only("second")
    assert answers(begin(1)) == {b"go on"}
    assert answers(under_way) == {b"go on"}


def test_a_sign_in_that_is_refused_is_said_after_one_more(kube_api) -> None:
    kube_api.token = "somebody else's"
    with pytest.raises(ClusterFailed, match="401 Unauthorized"), connect_to(kube_api):
        pass
    assert kube_api.sign_ins == 2


def test_more_than_a_hundred_answers_are_under_way_at_once(begin) -> None:
    # httpx's own limit is 100 connections.
    assert answers(begin(101)) == {b"go on"}


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        yield somebody.getsockname()[1]


def test_a_port_that_was_taken_meanwhile_costs_nothing_but_another_try(
    kube_api, serve, get, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1")]}
    kube_api.pod_ports["vllm-1"] = serve(model("one"))
    free = cluster._free_port
    ports = iter([taken, taken])
    monkeypatch.setattr(cluster, "_free_port", lambda: next(ports, None) or free())
    with connect(kube_api.kubeconfig, "vllm", "vllm") as base_url:
        assert str(taken) not in base_url
        assert get(base_url) == "one"
    assert next(ports, None) is None


def test_a_machine_without_a_free_port_is_said(kube_api, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1")]}
    monkeypatch.setattr(cluster, "_free_port", lambda: taken)
    with pytest.raises(ClusterFailed, match="opening a port-forward"), connect_to(kube_api):
        pass


def test_no_ready_pod_is_said_at_once(kube_api) -> None:
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1", ready=False)]}
    with pytest.raises(ClusterFailed, match="no pod of Service vllm is ready"), connect_to(kube_api):
        pass


def test_a_cluster_that_does_not_answer_is_said_with_its_address(tmp_path: Path, kube_api) -> None:
    kube_api.kubeconfig.write_text(kube_api.kubeconfig.read_text().replace("127.0.0.1:", "127.0.0.1:1#"))
    with pytest.raises(ClusterFailed), connect_to(kube_api):
        pass


def test_a_kubeconfig_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(ClusterFailed), connect(tmp_path / "nowhere", "vllm", "vllm"):
        pass


def test_an_open_connection_does_not_hold_up_the_end(kube_api, serve) -> None:
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1")]}
    kube_api.pod_ports["vllm-1"] = serve(model("one"))
    with httpx.Client(timeout=5, trust_env=False) as client:
        with no_thread_is_left(), connect(kube_api.kubeconfig, "vllm", "vllm") as base_url:
            assert client.get(f"{base_url}/models").text == "one"
        with pytest.raises(httpx.TransportError):
            client.get(f"{base_url}/models")


def test_no_key_of_the_kubeconfig_is_left_in_a_temporary_file(
    kube_api, serve, get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    config = yaml.safe_load(kube_api.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(
        Path(certifi.where()).read_bytes()
    ).decode()
    kube_api.kubeconfig.write_text(yaml.safe_dump(config))
    kube_api.objects = {"services": [SERVICE], "pods": [pod("vllm-1")]}
    kube_api.pod_ports["vllm-1"] = serve(model("one"))
    with connect_to(kube_api) as base_url:
        for token in ("t", "second"):
            kube_api.take_only(token)
            os.utime(scratch, (0, 0))
            assert get(base_url) == "one"
            assert not list(scratch.iterdir())
    # The keys were there: the second sign-in wrote them and took them away.
    assert scratch.stat().st_mtime > 0


def connect_to(kube_api):
    return connect(kube_api.kubeconfig, "vllm", "vllm")
