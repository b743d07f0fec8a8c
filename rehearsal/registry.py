"""A mirror of image registries on loopback: it says which images exist, and gives out none.

It speaks as Docker Hub does to an anonymous client: 401 with a challenge, a token for anyone, then the manifest's head.
It answers for every registry, whose name comes in the parameter `ns`, as containerd asks its mirrors.
"""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from rehearsal.delays import RegistryImage

_TOKEN = "anyone"
_PULL = "/v2/"


class RegistryMirror:
    """Serves `images` (`registry/repository:tag`) until `stop`. Raises OSError if it cannot listen."""

    def __init__(self, images: Mapping[str, RegistryImage]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_class(images))
        self._server.daemon_threads = True
        # The interval is how long `stop` waits for the server to notice.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="registry-mirror", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def _handler_class(images: Mapping[str, RegistryImage]) -> type[BaseHTTPRequestHandler]:
    class RegistryHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if urlsplit(self.path).path == "/token":
                self._answer(200, body=json.dumps({"token": _TOKEN}).encode())
            else:
                self._manifest()

        def do_HEAD(self) -> None:
            self._manifest()

        def _manifest(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {_TOKEN}":
                host = self.headers.get("Host", "")
                challenge = f'Bearer realm="http://{host}/token",service="rehearsal"'
                self._answer(401, headers={"WWW-Authenticate": challenge})
                return
            asked = urlsplit(self.path)
            repository, _, reference = asked.path.removeprefix(_PULL).partition("/manifests/")
            registry = parse_qs(asked.query).get("ns", [""])[0]
            digest = _digest(images, f"{registry}/{repository}", reference)
            if digest is None:
                self._answer(404)
            else:
                self._answer(200, headers={"Docker-Content-Digest": digest})

        def _answer(self, status: int, *, headers: Mapping[str, str] | None = None, body: bytes = b"") -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: a rehearsal prints its own story."""

    return RegistryHandler


def _digest(images: Mapping[str, RegistryImage], repository: str, reference: str) -> str | None:
    """The digest behind a tag or a digest; None if there is no such image."""
    for name, image in images.items():
        of_repository, _, tag = name.rpartition(":")
        if of_repository == repository and reference in (tag, image.digest):
            return image.digest
    return None
