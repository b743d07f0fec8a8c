"""ASGI middleware for vLLM: every path but /health needs the API key.

vLLM checks its key below a few prefixes only (`/v1`, `/v2`, `/inference`, `/cohere`). `/invocations` runs the same
inference without it, and `/tokenize` and `/pause` are open too: https://docs.vllm.ai/en/stable/usage/security/ and
vllm-project/vllm issue 58144, measured on 0.27.1 and 0.29.0. vLLM loads the class with
`--middleware require_key.RequireKey`. It runs in vLLM's image, so it imports the standard library only.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

# The kubelet's probes carry no key.
OPEN_PATHS = frozenset({"/health"})
KEY_VARIABLE = "VLLM_API_KEY"
_BODY = b'{"error":"Unauthorized"}'


class RequireKey:
    """Answers 401 unless the request has the header `Authorization: Bearer <value of VLLM_API_KEY>`.

    Raises KeyError where the variable is not set, so that vLLM does not start without a key.
    """

    def __init__(self, app: App) -> None:
        key = os.environ[KEY_VARIABLE]
        if not key:
            raise ValueError(f"{KEY_VARIABLE} is empty")
        self._app = app
        self._expected = _digest(key.encode())

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if self._lets_in(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            # A close before the handshake is answered with 403; 1008 is "policy violation" (RFC 6455).
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _BODY})

    def _lets_in(self, scope: Message) -> bool:
        # Start and stop of the app have no headers. A browser sends OPTIONS without the key, and it runs nothing.
        if scope["type"] not in ("http", "websocket") or scope.get("method") == "OPTIONS":
            return True
        if scope["path"] in OPEN_PATHS:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, key = given.partition(b" ")
        return bool(scheme.lower() == b"bearer" and hmac.compare_digest(_digest(key), self._expected))


def _digest(key: bytes) -> bytes:
    """Digests have one length, so comparing them tells nothing about the key's."""
    return hashlib.sha256(key).digest()
