"""Which requests the model server refuses for their key: as vLLM does by itself, or with the chart's middleware."""

from __future__ import annotations

import hmac

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

# vllm/entrypoints/serve/middleware/authenticate.py of 0.32.0; /invocations and /tokenize are not among them.
_GUARDED_BY_VLLM = ("/v1", "/v2", "/inference", "/cohere")
# charts/vllm/files/require_key.py
_OPEN_EVERYWHERE = "/health"


class KeyGuard:
    """Answers 401 without the key. Without an `api_key` it refuses no request.

    `everywhere`: on every path but /health. `any_key`: a wrong key is accepted, a missing one is not.
    """

    def __init__(self, app: ASGIApp, api_key: str | None, *, everywhere: bool, any_key: bool = False) -> None:
        self._app = app
        self._expected = None if api_key is None else f"Bearer {api_key}".encode()
        self._everywhere = everywhere
        self._any_key = any_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app if self._lets_in(scope) else JSONResponse({"error": "Unauthorized"}, status_code=401)
        await app(scope, receive, send)

    def _lets_in(self, scope: Scope) -> bool:
        path = scope.get("path", "")
        guarded = path != _OPEN_EVERYWHERE if self._everywhere else path.startswith(_GUARDED_BY_VLLM)
        if self._expected is None or not guarded:
            return True
        given = dict(scope["headers"]).get(b"authorization", b"")
        return bool(given) if self._any_key else hmac.compare_digest(given, self._expected)
