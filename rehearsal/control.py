"""How the processes inside a world reach its clock: a small HTTP server on loopback, with a token.

`GET /now` and `POST /advance {"until": ...}`; both answer `{"now": ...}`.
"""

import json
import secrets
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

from automation.errors import RentblockError

Json = object
Handler = Callable[[Mapping[str, str]], Json]

# An advance over a whole day runs real Kubernetes steps (barriers), each with a deadline of its own well below this.
_ANSWER_TIMEOUT_S = 600


class WorldUnreachable(RentblockError):
    """The world that this process was started in has ended."""


@dataclass(frozen=True, kw_only=True)
class WorldAddress:
    """What a child needs to know of its world; written with mode 0600 because of the token."""

    control_url: str
    token: str
    endpoint_url: str
    region: str
    account_id: str
    registry_url: str
    providers: Mapping[str, str] = field(default_factory=dict)

    def write(self, file: Path) -> None:
        file.touch(mode=0o600)
        file.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(file: Path) -> "WorldAddress":
        return WorldAddress(**json.loads(file.read_text()))

    def ask(self, method: Literal["GET", "POST"], path: str, **body: str) -> Json:
        """Ask the world.

        Raises:
            WorldUnreachable: nothing answers there any more.
        """
        request = urllib.request.Request(
            self.control_url + path,
            method=method,
            data=json.dumps(body).encode() if method == "POST" else None,
            headers={"Authorization": f"Bearer {self.token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise WorldUnreachable(
                happened=f"The simulated world refused {path}: {error.read().decode(errors='replace')}",
                cost="Nothing: this is a rehearsal.",
                remedy="Run the rehearsal again; the sentence above names the step.",
            ) from error
        except OSError as error:
            raise WorldUnreachable(
                happened=f"The simulated world of this process no longer answers ({error}).",
                cost="Nothing: this is a rehearsal.",
                remedy="Start `rentblock rehearse` again.",
            ) from error


class ControlServer:
    """Serves `routes` ("GET /now" -> handler) until `stop`."""

    def __init__(self, routes: Mapping[str, Handler]) -> None:
        self.token = secrets.token_urlsafe(24)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_class(routes, self.token))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="world-control", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def _handler_class(routes: Mapping[str, Handler], token: str) -> type[BaseHTTPRequestHandler]:
    class ControlHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve("GET", {})

        def do_POST(self) -> None:
            self._serve("POST", json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"))

        def _serve(self, method: str, body: Mapping[str, str]) -> None:
            if not secrets.compare_digest(self.headers.get("Authorization", ""), f"Bearer {token}"):
                self._answer(401, "this world belongs to another user")
                return
            handler = routes.get(f"{method} {self.path}")
            if handler is None:
                self._answer(404, f"no such question: {method} {self.path}")
                return
            try:
                self._answer(200, handler(body))
            except (RentblockError, ValueError, KeyError) as error:
                self._answer(409, str(error))

        def _answer(self, status: int, content: Json) -> None:
            payload = json.dumps(content, default=str).encode()
            # Whoever asked may have been ended while it waited, by Ctrl-C for example.
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the world's questions are not news."""

    return ControlHandler
