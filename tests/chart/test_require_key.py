"""The middleware that vLLM loads: every path but /health needs the key."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

SOURCE = Path(__file__).resolve().parents[2] / "charts" / "vllm" / "files" / "require_key.py"
KEY = "sesame-7c"
PATHS = ["/v1/chat/completions", "/invocations", "/tokenize", "/metrics", "/pause", "/", "/healthy", "/health/x"]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location("require_key", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def client(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("VLLM_API_KEY", KEY)

    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("in")
        await socket.close()

    paths = [Route(path, lambda _: PlainTextResponse("in"), methods=["GET", "POST", "OPTIONS"]) for path in PATHS]
    app = Starlette(routes=[*paths, Route("/health", lambda _: PlainTextResponse("")), WebSocketRoute("/ws", echo)])
    app.add_middleware(module.RequireKey)
    return TestClient(app)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer other"}, {"Authorization": KEY}, {"api-key": KEY}])
def test_without_the_key_every_path_is_refused(client: TestClient, path: str, headers: dict[str, str]) -> None:
    refused = client.post(path, headers=headers)
    assert refused.status_code == 401
    assert refused.json() == {"error": "Unauthorized"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_with_the_key_every_path_is_served(client: TestClient, path: str, scheme: str) -> None:
    assert client.post(path, headers={"Authorization": f"{scheme} {KEY}"}).text == "in"


def test_probes_and_preflights_need_no_key(client: TestClient) -> None:
    assert client.get("/health").status_code == 200
    assert client.options("/v1/chat/completions").status_code == 200


def test_a_websocket_needs_the_key_too(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/ws"):
        pass
    assert refused.value.code == 1008
    with client.websocket_connect("/ws", headers={"Authorization": f"Bearer {KEY}"}) as socket:
        assert socket.receive_text() == "in"


@pytest.mark.parametrize("key", [None, ""])
def test_vllm_does_not_start_without_a_key(
    module: ModuleType, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("VLLM_API_KEY", key)
    with pytest.raises((KeyError, ValueError), match="VLLM_API_KEY"):
        module.RequireKey(None)


def test_it_needs_nothing_that_vllms_image_may_lack() -> None:
    imports = [line for line in SOURCE.read_text().splitlines() if line.startswith(("import ", "from "))]
    allowed = ("__future__", "hashlib", "hmac", "os", "collections.abc", "typing")
    assert all(line.split()[1] in allowed for line in imports)
