"""The acceptance passes a sound endpoint, and each broken one fails exactly the check that stands for what broke."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from types import MappingProxyType

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
    "chat_names_another_city": "chat",
    "chat_repeats_the_question": "chat",
    "no_choices": "chat",
    "reasoning_in_content": "reasoning",
    "reasoning_missing": "reasoning",
    "reasoning_marks_in_content": "reasoning",
    "reasoned_to_no_answer": "reasoning",
    "reasoned_to_a_wrong_sum": "reasoning",
    "sum_inside_another_number": "reasoning",
    "stream_in_one_piece": "streaming",
    "stream_without_finish": "streaming",
    "stream_without_usage": "streaming",
    "stream_without_text": "streaming",
    "stream_cut": "streaming",
    "stream_is_no_json": "streaming",
    "stream_of_other_words": "streaming",
    "stream_in_another_order": "streaming",
    "stream_lacks_a_number": "streaming",
    "tool_call_as_text": "tool_call",
    "tool_arguments_broken": "tool_call",
    "tool_arguments_of_another_shape": "tool_call",
    "tool_of_another_name": "tool_call",
    "tool_for_another_city": "tool_call",
    "tool_in_another_unit": "tool_call",
    "any_key": "wrong_key",
    "key_refused_with_500": "wrong_key",
    "chat_open_without_key": "no_key",
    "invocations_open": "no_key",
    "tokenize_open": "no_key",
    "invocations_refused_for_their_body": "no_key",
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
    assert set(FLAWS.values()) == {flaw.check for flaw in Flaw} == set(CHECKS)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("chat", "A capital do Brasil é Brasília."),
        ("chat", "The capital of Brazil is BRASILIA!"),
        ("reasoning", "The answer is **42**."),
        ("reasoning", "17 + 25 = 42"),
        ("streaming", "1. One\n2. Two\n3. Three\n4. Four\n5. Five\n6. Six\n7. Seven\n8. Eight\n9. Nine\n10. Ten"),
        ("tool_call", '{"unit": "celsius", "city": "Sao Paulo"}'),
        ("tool_call", '{"city": "S\\u00e3o Paulo, Brazil", "unit": "celsius"}'),
        # The same letters, with the tilde as a character of its own.
        ("tool_call", '{"city": "Sa\\u0303o Paulo", "unit": "celsius"}'),
    ],
)
def test_a_right_answer_passes_however_it_is_written(check: str, said: str, serve: Callable[[Starlette], int]) -> None:
    assert false_checks(serve(vllm(said={check: said}))) == []


def test_a_server_that_repeats_the_question_passes_no_check_of_an_answer(serve: Callable[[Starlette], int]) -> None:
    """No question contains its answer."""
    assert false_checks(serve(vllm("echo"))) == ["chat", "reasoning", "streaming", "tool_call"]


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
                requires_key_everywhere=True,
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
    assert false_checks(simulated(flaw)) == [flaw.check]


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


def vllm(flaw: str | None = None, *, said: Mapping[str, str] = MappingProxyType({})) -> Starlette:
    """`said` replaces what the model says to the question of a check."""
    server = _Server(flaw, {**SAID, **said})
    return Starlette(
        routes=[
            Route("/v1/models", server.models),
            Route("/v1/chat/completions", server.chat, methods=["POST"]),
            Route("/invocations", server.invocations, methods=["POST"]),
            Route("/tokenize", server.tokenize, methods=["POST"]),
        ]
    )


SAID = {
    "chat": "It is Brasília.",
    "reasoning": "42.",
    "streaming": "one, two, three, four, five, six, seven, eight, nine, ten",
    "tool_call": '{"city": "São Paulo", "unit": "celsius"}',
}
WRONG = {
    "content_empty": " ",
    "chat_names_another_city": "It is Lima.",
    "reasoned_to_no_answer": "",
    "reasoned_to_a_wrong_sum": "43.",
    "sum_inside_another_number": "It is 1425.",
    "reasoning_in_content": "17 + 25. 42.",
    "reasoning_marks_in_content": "Seventeen.</think>42.",
    "stream_of_other_words": "red, green, blue, red, green, blue, red, green, blue, red",
    "stream_in_another_order": "ten, nine, eight, seven, six, five, four, three, two, one",
    "stream_lacks_a_number": "one, two, three, four, five, six, eight, nine, ten",
    "stream_without_text": "",
    "tool_arguments_broken": '{"city": "São Paulo", "unit": "cel',
    "tool_arguments_of_another_shape": '{"town": "São Paulo"}',
    "tool_for_another_city": '{"city": "Lima", "unit": "celsius"}',
    "tool_in_another_unit": '{"city": "São Paulo", "unit": "fahrenheit"}',
}


class _Server:
    def __init__(self, flaw: str | None, said: Mapping[str, str]) -> None:
        self.flaw = flaw
        self.said = said

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
        question = asked["messages"][0]["content"]
        if asked.get("stream"):
            return StreamingResponse(self._stream(self._says("streaming", question)), media_type="text/event-stream")
        if asked.get("tools"):
            return _answer(self._tool_message(self._says("tool_call", question)), "tool_calls")
        return self._reasoned(question) if "Think" in question else self._plain(question)

    def _says(self, check: str, question: str) -> str:
        if self.flaw == "echo" or (self.flaw == "chat_repeats_the_question" and check == "chat"):
            return question
        return WRONG[self.flaw] if self.flaw in WRONG and FLAWS[self.flaw] == check else self.said[check]

    async def invocations(self, request: Request) -> Response:
        if self.flaw == "invocations_open":
            return self._plain("")
        if self.flaw == "invocations_refused_for_their_body":
            return JSONResponse({"error": {"message": "Field required: prompt"}}, 400)
        return self._refused_key(request) or self._plain("")

    async def tokenize(self, request: Request) -> Response:
        if self.flaw == "tokenize_open":
            return JSONResponse({"count": 1, "max_model_len": 9, "tokens": [1]})
        # As where vLLM does not serve the path.
        return JSONResponse({"detail": "Not Found"}, 404)

    def _refused_key(self, request: Request) -> Response | None:
        given = request.headers.get("authorization")
        if given is None:
            is_open = self.flaw == "chat_open_without_key" and request.url.path == "/v1/chat/completions"
            return None if is_open else JSONResponse({"error": "Unauthorized"}, 401)
        if self.flaw == "any_key" or given == f"Bearer {API_KEY}":
            return None
        return JSONResponse({"error": "Unauthorized"}, 500 if self.flaw == "key_refused_with_500" else 401)

    def _plain(self, question: str) -> Response:
        said = None if self.flaw == "content_missing" else self._says("chat", question)
        message: dict[str, object] = {"role": "assistant", "reasoning": "Easy.", "content": said}
        if self.flaw == "no_choices":
            return JSONResponse({"id": "x", "object": "chat.completion", "choices": []})
        return _answer(message, "length" if self.flaw == "cut_off" else "stop")

    def _reasoned(self, question: str) -> Response:
        field = "reasoning_content" if self.flaw == "reasoning_missing" else "reasoning"
        message = {"role": "assistant", field: "17 + 25.", "content": self._says("reasoning", question)}
        return _answer(message, "stop")

    def _tool_message(self, arguments: str) -> dict[str, object]:
        if self.flaw == "tool_call_as_text":
            return {"role": "assistant", "content": '<tool_call>{"name": "get_weather"}</tool_call>'}
        name = "look_up" if self.flaw == "tool_of_another_name" else "get_weather"
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
        return {"role": "assistant", "content": None, "reasoning": "I shall ask.", "tool_calls": [call]}

    def _stream(self, text: str) -> Iterator[str]:
        pieces = [text] if self.flaw == "stream_in_one_piece" else re.findall(r"\s*\S+", text)
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
