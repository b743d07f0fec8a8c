"""The acceptance passes a sound endpoint, and each broken one fails exactly the check that stands for what broke."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from automation.serving.acceptance import CHECKS, run
from rehearsal.model_server import Flaw, ModelServer, ServingOptions

API_KEY = "right"
MODEL = "Kimi-K3"

# Each flaw, and the one check that must notice it.
FLAWS = {
    "models_lists_another": "model_id",
    "content_empty": "chat",
    "content_missing": "chat",
    "cut_off": "chat",
    "no_choices": "chat",
    "reasoning_in_content": "reasoning",
    "reasoning_missing": "reasoning",
    "reasoning_marks_in_content": "reasoning",
    "stream_in_one_piece": "streaming",
    "stream_without_finish": "streaming",
    "stream_without_usage": "streaming",
    "stream_without_text": "streaming",
    "stream_cut": "streaming",
    "stream_is_no_json": "streaming",
    "tool_call_as_text": "tool_call",
    "tool_arguments_broken": "tool_call",
    "tool_arguments_of_another_shape": "tool_call",
    "tool_of_another_name": "tool_call",
    "any_key": "wrong_key",
    "key_refused_with_500": "wrong_key",
    "any_model": "wrong_model",
    "model_refused_with_400": "wrong_model",
}


def false_checks(port: int) -> list[str]:
    results = run(f"http://127.0.0.1:{port}/v1", API_KEY, MODEL)
    assert [result.check for result in results] == list(CHECKS)
    assert all(result.detail for result in results)
    return [result.check for result in results if not result.ok]


def test_a_sound_endpoint_passes_every_check(serve: Callable[[Starlette], int]) -> None:
    assert false_checks(serve(vllm())) == []


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_fails_its_own_check_and_no_other(flaw: str, serve: Callable[[Starlette], int]) -> None:
    assert false_checks(serve(vllm(flaw))) == [FLAWS[flaw]]


def test_every_check_is_proved_able_to_fail() -> None:
    assert set(FLAWS.values()) == {flaw.value for flaw in Flaw} == set(CHECKS)


@pytest.fixture
def simulated() -> Iterator[Callable[..., int]]:
    """Starts the model server of a rehearsal with flaws; gives its port."""
    with ExitStack() as servers:

        def start(*flaws: Flaw) -> int:
            options = ServingOptions(
                served_model_names=(MODEL,),
                api_key=API_KEY,
                max_model_len=32768,
                reasoning_parser="kimi_k3",
                tool_call_parser="kimi_k3",
                enable_auto_tool_choice=True,
            )
            server = ModelServer(options, now=lambda: datetime(2026, 12, 1, tzinfo=UTC), flaws=frozenset(flaws))
            servers.callback(server.stop)
            server.start()
            return server.port

        yield start


def test_the_model_of_a_rehearsal_passes_every_check(simulated: Callable[..., int]) -> None:
    assert false_checks(simulated()) == []


@pytest.mark.parametrize("flaw", Flaw)
def test_each_flaw_of_a_rehearsals_model_fails_its_own_check(flaw: Flaw, simulated: Callable[..., int]) -> None:
    assert false_checks(simulated(flaw)) == [flaw.value]


def test_an_endpoint_that_is_not_there_fails_every_check() -> None:
    assert false_checks(port=1) == list(CHECKS)


def test_the_key_is_in_no_detail(serve: Callable[[Starlette], int]) -> None:
    port = serve(vllm("any_key"))
    assert not any("sesame-7c" in result.detail for result in run(f"http://127.0.0.1:{port}/v1", "sesame-7c", MODEL))


def test_a_proxy_of_this_machine_is_not_asked(
    serve: Callable[[Starlette], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert false_checks(serve(vllm())) == []


# A small server that answers as vLLM does, and can be broken in one place at a time.


def vllm(flaw: str | None = None) -> Starlette:
    return Starlette(
        routes=[
            Route("/v1/models", _Server(flaw).models),
            Route("/v1/chat/completions", _Server(flaw).chat, methods=["POST"]),
        ]
    )


class _Server:
    def __init__(self, flaw: str | None) -> None:
        self.flaw = flaw

    async def models(self, request: Request) -> Response:
        if refused := self._refused_key(request):
            return refused
        name = "another" if self.flaw == "models_lists_another" else MODEL
        return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"}]})

    async def chat(self, request: Request) -> Response:
        if refused := self._refused_key(request):
            return refused
        asked = json.loads(await request.body())
        assert asked["reasoning_effort"] == "low"
        assert asked["max_tokens"] >= 512
        if asked["model"] != MODEL and self.flaw != "any_model":
            status = 400 if self.flaw == "model_refused_with_400" else 404
            return JSONResponse({"error": {"message": f"The model `{asked['model']}` does not exist."}}, status)
        if asked.get("stream"):
            return StreamingResponse(self._stream(), media_type="text/event-stream")
        if asked.get("tools"):
            return _answer(self._tool_message(), "tool_calls")
        question = asked["messages"][0]["content"]
        return self._reasoned() if "prime" in question else self._plain()

    def _refused_key(self, request: Request) -> Response | None:
        if self.flaw == "any_key" or request.headers["authorization"] == f"Bearer {API_KEY}":
            return None
        return JSONResponse({"error": "Unauthorized"}, 500 if self.flaw == "key_refused_with_500" else 401)

    def _plain(self) -> Response:
        message: dict[str, object] = {"role": "assistant", "reasoning": "Easy.", "content": "It is Brasília."}
        if self.flaw == "content_empty":
            message["content"] = " "
        if self.flaw == "content_missing":
            message["content"] = None
        if self.flaw == "no_choices":
            return JSONResponse({"id": "x", "object": "chat.completion", "choices": []})
        return _answer(message, "length" if self.flaw == "cut_off" else "stop")

    def _reasoned(self) -> Response:
        message = {"role": "assistant", "reasoning": "91 = 7 x 13.", "content": "No."}
        if self.flaw == "reasoning_in_content":
            message["content"] = "91 = 7 x 13. No."
        if self.flaw == "reasoning_missing":
            message = {"role": "assistant", "reasoning_content": "91 = 7 x 13.", "content": "No."}
        if self.flaw == "reasoning_marks_in_content":
            message["content"] = "Seven.</think>No."
        return _answer(message, "stop")

    def _tool_message(self) -> dict[str, object]:
        if self.flaw == "tool_call_as_text":
            return {"role": "assistant", "content": '<tool_call>{"name": "get_weather"}</tool_call>'}
        arguments = '{"city": "São Paulo", "unit": "celsius"}'
        if self.flaw == "tool_arguments_broken":
            arguments = arguments[:-4]
        if self.flaw == "tool_arguments_of_another_shape":
            arguments = '{"town": "São Paulo"}'
        name = "look_up" if self.flaw == "tool_of_another_name" else "get_weather"
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
        return {"role": "assistant", "content": None, "reasoning": "I shall ask.", "tool_calls": [call]}

    def _stream(self) -> Iterator[str]:
        pieces = ["one, ", "two, ", "three"]
        if self.flaw == "stream_in_one_piece":
            pieces = ["".join(pieces)]
        if self.flaw == "stream_without_text":
            pieces = ["", ""]
        yield _event({"role": "assistant", "content": ""})
        yield _event({"reasoning": "Count."})
        for piece in pieces:
            yield _event({"content": piece})
        if self.flaw == "stream_is_no_json":
            yield "data: {oops\n\n"
        if self.flaw == "stream_cut":
            raise ConnectionError("the engine died")
        if self.flaw != "stream_without_finish":
            yield _event({}, finish_reason="stop")
        if self.flaw != "stream_without_usage":
            usage = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
            yield "data: " + json.dumps({"object": "chat.completion.chunk", "choices": [], "usage": usage}) + "\n\n"
        yield "data: [DONE]\n\n"


def _answer(message: dict[str, object], finish_reason: str) -> Response:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return JSONResponse({"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice]})


def _event(delta: dict[str, object], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return "data: " + json.dumps({"object": "chat.completion.chunk", "choices": [choice]}) + "\n\n"
