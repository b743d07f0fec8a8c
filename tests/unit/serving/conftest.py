"""A Kubernetes API server that holds what a test puts into it, and forwards ports as the real one does.

kr8s speaks to it over HTTP and WebSocket, so what is tested is what runs against a cluster.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

_RESOURCES = [
    {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]},
    {"name": "services", "singularName": "service", "namespaced": True, "kind": "Service", "verbs": ["get", "list"]},
]


@dataclass
class KubeApi:
    """What the API server holds, by plural; logs by pod; and where a pod's port really is, by pod."""

    kubeconfig: Path
    objects: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    pod_ports: dict[str, int] = field(default_factory=dict)
    silent: bool = False
    has_no_logs: bool = False
    token: str = ""
    refusal: int = 401

    @property
    def credential(self) -> Path:
        """What the kubeconfig's command prints, as `aws eks get-token` does."""
        return self.kubeconfig.with_name("credential.json")

    @property
    def sign_ins(self) -> int:
        """How often the kubeconfig's command was run."""
        return len(self.kubeconfig.with_name("sign-ins").read_text().splitlines())

    def take_only(self, token: str) -> None:
        """Refuse every request from here on that was not signed in for anew."""
        self.credential.write_text(json.dumps({"status": {"token": token}}))
        self.token = token

    def app(self) -> Starlette:
        namespaced = "/api/v1/namespaces/{namespace}"
        return Starlette(
            routes=[
                Route("/version", self._version),
                Route("/api", _always({"versions": ["v1"]})),
                Route("/apis", _always({"groups": []})),
                Route("/api/v1", _always({"groupVersion": "v1", "resources": _RESOURCES})),
                Route("/api/v1/{plural}", self._list),
                Route(namespaced + "/{plural}", self._list),
                Route(namespaced + "/{plural}/{name}", self._get),
                Route(namespaced + "/pods/{pod}/log", self._log),
                WebSocketRoute(namespaced + "/pods/{pod}/portforward", self._forward),
            ],
            middleware=[Middleware(self._only_signed_in)],
        )

    def _only_signed_in(self, app: ASGIApp) -> ASGIApp:
        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if HTTPConnection(scope).headers.get("Authorization") == f"Bearer {self.token}":
                await app(scope, receive, send)
                return
            refusal = JSONResponse({"message": "refused"}, status_code=self.refusal)
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).send_denial_response(refusal)
            else:
                await refusal(scope, receive, send)

        return guarded

    async def _version(self, _: Request) -> Response:
        if self.silent:
            await asyncio.sleep(60)
        return JSONResponse({"gitVersion": "v1.35.4"})

    async def _list(self, request: Request) -> Response:
        wanted = dict(part.split("=") for part in request.query_params.get("labelSelector", "").split(",") if part)
        name = dict(
            part.split("=") for part in request.query_params.get("fieldSelector", "").split(",") if "=" in part
        ).get("metadata.name")
        items = [
            item
            for item in self.objects.get(request.path_params["plural"], [])
            if wanted.items() <= item["metadata"].get("labels", {}).items() and name in (None, item["metadata"]["name"])
        ]
        return JSONResponse({"kind": "List", "metadata": {}, "items": items})

    async def _get(self, request: Request) -> Response:
        for item in self.objects.get(request.path_params["plural"], []):
            if item["metadata"]["name"] == request.path_params["name"]:
                return JSONResponse(item)
        return JSONResponse({"message": "not found"}, status_code=404)

    async def _log(self, request: Request) -> Response:
        if self.has_no_logs:
            return JSONResponse({"message": "dial tcp 10.0.0.9:10250: i/o timeout"}, status_code=502)
        return PlainTextResponse(self.logs.get(request.path_params["pod"], ""))

    async def _forward(self, socket: WebSocket) -> None:
        port = self.pod_ports.get(socket.path_params["pod"])
        if port is None:
            await socket.send_denial_response(JSONResponse({"message": "pod not found"}, status_code=404))
            return
        await socket.accept()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        # The protocol begins with the port number on both channels, two bytes little-endian.
        for channel in (b"\x00", b"\x01"):
            await socket.send_bytes(channel + (8000).to_bytes(2, "little"))
        back = asyncio.create_task(_copy_back(reader, socket))
        try:
            while True:
                writer.write((await socket.receive_bytes())[1:])
                await writer.drain()
        except (WebSocketDisconnect, ConnectionError):
            pass
        finally:
            back.cancel()
            writer.close()


def _always(answer: dict[str, object]) -> Callable[[Request], Awaitable[Response]]:
    async def say(_: Request) -> Response:
        return JSONResponse(answer)

    return say


async def _copy_back(reader: asyncio.StreamReader, socket: WebSocket) -> None:
    while data := await reader.read(65536):
        await socket.send_bytes(b"\x00" + data)
    await socket.close()


class Server:
    """An ASGI app on a random port of 127.0.0.1, in a thread that ends with the test."""

    def __init__(self, app: Starlette) -> None:
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="wsproto", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> int:
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.005)
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._server.force_exit = self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def kube_api(tmp_path: Path) -> Iterator[KubeApi]:
    api = KubeApi(kubeconfig=tmp_path / "kubeconfig")
    api.take_only("t")
    sign_in = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "sh",
        "args": ["-c", 'echo >> "$0/sign-ins" && cat "$0/credential.json"', str(tmp_path)],
    }
    with Server(api.app()) as port:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"exec": sign_in}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        api.kubeconfig.write_text(yaml.safe_dump(config))
        yield api


@pytest.fixture
def serve() -> Iterator[Callable[[Starlette], int]]:
    """Serves apps until the test ends; gives each one's port."""
    with ExitStack() as servers:
        yield lambda app: servers.enter_context(Server(app))
