"""A stand-in for vLLM on the simulated node: its HTTP API, without a model behind it.

Shapes are those of vLLM 0.27 to 0.32 (`vllm/entrypoints`): reasoning in `reasoning`, error bodies, metric names with
`_total`, `/invocations` and `/tokenize` beside `/v1`. Listens on 127.0.0.1 only.
"""

from __future__ import annotations

import socket
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path

import pydantic
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from automation.errors import ClusterFailed
from rehearsal.key_guard import KeyGuard
from rehearsal.model_answers import Answer, ChatRequest, NamedToolChoice, TokenizeRequest, answer
from rehearsal.model_replies import Reply, events, metric, refusal

_SPEED = Path(__file__).with_name("model_speed.toml")
_START_S = 30
_OTHER_ARGUMENTS = '{"city": "Lima", "unit": "celsius"}'


class Flaw(Enum):
    """What can be wrong with a server that starts and answers. `check` is the acceptance check that must find it: the
    value, without what follows a colon in it."""

    MODEL_ID = "model_id"
    """The list of models shows another id."""
    CUT_OFF = "chat"
    """A plain chat ends with `length`, although the request's limit was not reached."""
    REASONING_IN_CONTENT = "reasoning"
    """The reasoning stands in the content, as without `--reasoning-parser`."""
    BROKEN_STREAM = "streaming"
    """A stream ends without content and usage."""
    TOOL_CALL_AS_TEXT = "tool_call"
    """A tool call stands in the content, as with the wrong `--tool-call-parser`."""
    TOOL_CALL_FOR_ANOTHER_CITY = "tool_call:another city"
    """A tool is called in the right shape with what nobody asked for."""
    ANY_KEY = "wrong_key"
    """Every API key is accepted, but not a request without one."""
    OPEN_PATHS = "no_key"
    """Only vLLM's own prefixes ask for the key, as without the chart's middleware."""
    ANY_MODEL = "wrong_model"
    """Every model name is served."""

    @property
    def check(self) -> str:
        return self.value.partition(":")[0]


@dataclass(frozen=True, kw_only=True)
class ServingOptions:
    """What the server was started with: vLLM's arguments of the same names. Without a key no request needs one.

    `requires_key_everywhere`: the chart's middleware is loaded.
    """

    served_model_names: tuple[str, ...]
    api_key: str | None = None
    max_model_len: int | None = None
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    enable_auto_tool_choice: bool = False
    requires_key_everywhere: bool = False


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast the simulated model reads and writes, in tokens per second."""

    prefill_tokens_per_s: int
    decode_tokens_per_s: int

    def duration(self, said: Answer) -> timedelta:
        """How long the model takes for an answer when it works on nothing else."""
        reading = said.prompt_tokens / self.prefill_tokens_per_s
        return timedelta(seconds=reading + said.completion_tokens / self.decode_tokens_per_s)


def load_speed(path: Path = _SPEED) -> Speed:
    """Raises OSError, KeyError and tomllib.TOMLDecodeError."""
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    return Speed(
        prefill_tokens_per_s=values["prefill_tokens_per_s"]["value"],
        decode_tokens_per_s=values["decode_tokens_per_s"]["value"],
    )


class ModelServer:
    """One server, which has its `port` on 127.0.0.1 from the first and answers between `start` and `stop`.

    `now` gives the instant that answers carry; `flaws` is for tests of the acceptance.
    """

    def __init__(
        self,
        options: ServingOptions,
        *,
        now: Callable[[], datetime],
        speed: Speed | None = None,
        flaws: frozenset[Flaw] = frozenset(),
    ) -> None:
        self._options = options
        self._now = now
        self._speed = speed or load_speed()
        self._flaws = flaws
        self._lock = threading.Lock()
        self._busy = timedelta()
        self._counts: Counter[str] = Counter()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        # Bound but not listening: the port is ours, and refuses connections until the start.
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def start(self) -> None:
        """Listen and answer. Raises ClusterFailed when the server is not up within half a minute."""
        config = uvicorn.Config(self._app(), log_config=None, lifespan="off", ws="none", http="h11", loop="asyncio")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, name="model-server", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise ClusterFailed(happened="The rehearsal's model server did not start.", remedy="Try again.")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop answering, also in the middle of an answer. Idempotent."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = self._server.force_exit = True
            self._thread.join(timeout=_START_S)
            self._server = self._thread = None
        self._listener.close()

    def take_busy(self) -> timedelta:
        """How long the model has worked since this was last asked, by the modelled speed."""
        with self._lock:
            busy, self._busy = self._busy, timedelta()
        return busy

    def _app(self) -> ASGIApp:
        routes = [
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/v1/models", self._models),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            # vLLM's SageMaker routes are always there and take the same bodies.
            Route("/invocations", self._chat, methods=["POST"]),
            Route("/tokenize", self._tokenize, methods=["POST"]),
        ]
        return KeyGuard(
            Starlette(routes=routes),
            self._options.api_key,
            everywhere=self._options.requires_key_everywhere and Flaw.OPEN_PATHS not in self._flaws,
            any_key=Flaw.ANY_KEY in self._flaws,
        )

    async def _health(self, request: Request) -> Response:
        return Response()

    async def _models(self, request: Request) -> Response:
        names = ("another-model",) if Flaw.MODEL_ID in self._flaws else self._options.served_model_names
        card = {"object": "model", "created": self._timestamp(), "owned_by": "vllm", "parent": None, "permission": []}
        root = {"root": self._options.served_model_names[0], "max_model_len": self._options.max_model_len}
        return JSONResponse({"object": "list", "data": [{"id": name, **card, **root} for name in names]})

    async def _tokenize(self, request: Request) -> Response:
        try:
            asked = TokenizeRequest.model_validate_json(await request.body())
        except pydantic.ValidationError as error:
            return _refusal(400, "BadRequestError", str(error))
        count = len(asked.prompt.split())
        limit = self._options.max_model_len
        return JSONResponse({"count": count, "max_model_len": limit, "tokens": list(range(count)), "token_strs": None})

    async def _chat(self, request: Request) -> Response:
        try:
            asked = ChatRequest.model_validate_json(await request.body())
        except pydantic.ValidationError as error:
            return _refusal(400, "BadRequestError", str(error))
        refused = self._refused(asked)
        if refused is not None:
            return refused
        said = answer(asked)
        if self._too_long(asked, said):
            what = (
                f"This model's maximum context length is {self._options.max_model_len} tokens; the request needs more."
            )
            return _refusal(400, "BadRequestError", what)
        reply = Reply(
            said=said,
            request_id=f"chatcmpl-{self._account(said)}",
            created=self._timestamp(),
            model=asked.model,
            reasoning_apart=self._options.reasoning_parser is not None and Flaw.REASONING_IN_CONTENT not in self._flaws,
            tool_call_as_text=Flaw.TOOL_CALL_AS_TEXT in self._flaws,
            tool_arguments=_OTHER_ARGUMENTS if Flaw.TOOL_CALL_FOR_ANOTHER_CITY in self._flaws else None,
        )
        if not asked.stream:
            return JSONResponse(reply.whole(cut_off=Flaw.CUT_OFF in self._flaws))
        chunks = reply.chunks(usage=asked.stream_options.include_usage, broken=Flaw.BROKEN_STREAM in self._flaws)
        return StreamingResponse(events(chunks), media_type="text/event-stream")

    def _refused(self, asked: ChatRequest) -> Response | None:
        if asked.model not in self._options.served_model_names and Flaw.ANY_MODEL not in self._flaws:
            return _refusal(404, "NotFoundError", f"The model `{asked.model}` does not exist.", param="model")
        choice = asked.tool_choice or ("auto" if asked.tools else "none")
        if choice == "auto" and not (self._options.enable_auto_tool_choice and self._options.tool_call_parser):
            what = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            return _refusal(400, "BadRequestError", what)
        names = {tool.function.name for tool in asked.tools}
        if choice != "none" and not names:
            return _refusal(400, "BadRequestError", "When using `tool_choice`, `tools` must be set.", param="tools")
        if isinstance(choice, NamedToolChoice) and choice.function.name not in names:
            return _refusal(
                400, "BadRequestError", "The tool specified in `tool_choice` does not match any of `tools`."
            )
        return None

    def _too_long(self, asked: ChatRequest, said: Answer) -> bool:
        limit = self._options.max_model_len
        return limit is not None and said.prompt_tokens + (asked.token_limit or said.completion_tokens) > limit

    def _account(self, said: Answer) -> int:
        with self._lock:
            self._busy += self._speed.duration(said)
            self._counts["prompt_tokens"] += said.prompt_tokens
            self._counts["generation_tokens"] += said.completion_tokens
            self._counts[said.finish_reason] += 1
            self._counts["requests"] += 1
            return self._counts["requests"]

    def _timestamp(self) -> int:
        return int(self._now().timestamp())

    async def _metrics(self, request: Request) -> Response:
        label = f'model_name="{self._options.served_model_names[0]}"'
        with self._lock:
            counts = Counter(self._counts)
        # The engine knows no tool calls: for it such an answer has stopped.
        finished = {"stop": counts["stop"] + counts["tool_calls"], "length": counts["length"]}
        successes = {f'finished_reason="{why}",{label}': count for why, count in finished.items()}
        metrics = [
            metric("gauge", "num_requests_running", {label: 0}),
            metric("gauge", "num_requests_waiting", {label: 0}),
            metric("gauge", "kv_cache_usage_perc", {label: 0}),
            metric("counter", "prompt_tokens_total", {label: counts["prompt_tokens"]}),
            metric("counter", "generation_tokens_total", {label: counts["generation_tokens"]}),
            metric("counter", "request_success_total", successes),
        ]
        return PlainTextResponse("\n".join(metrics) + "\n", media_type="text/plain; version=0.0.4")


def _refusal(status: int, kind: str, message: str, *, param: str | None = None) -> Response:
    return JSONResponse(refusal(status, kind, message, param=param), status_code=status)
