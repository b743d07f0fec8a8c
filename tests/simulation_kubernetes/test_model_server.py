"""The rehearsal's model server answers as vLLM does, and each flaw shows in one place only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion

from rehearsal.model_server import Flaw, ModelServer, ServingOptions, Speed

KEY, MODEL = "a-key-of-a-test", "kimi-k3"
NOW = datetime(2027, 1, 5, 12, 0, tzinfo=UTC)
OPTIONS = ServingOptions(
    served_model_names=(MODEL, "moonshotai/Kimi-K3"),
    api_key=KEY,
    max_model_len=4096,
    reasoning_parser="kimi_k3",
    tool_call_parser="kimi_k3",
    enable_auto_tool_choice=True,
    requires_key_everywhere=True,
)
SPEED = Speed(prefill_tokens_per_s=1000, decode_tokens_per_s=10)
WEATHER: openai.types.chat.ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city"],
        },
    },
}


def running(*flaws: Flaw, options: ServingOptions = OPTIONS) -> Iterator[ModelServer]:
    server = ModelServer(options, now=lambda: NOW, speed=SPEED, flaws=frozenset(flaws))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    yield from running()


@pytest.fixture
def client(server: ModelServer) -> Iterator[openai.OpenAI]:
    with openai_client(server) as client:
        yield client


def openai_client(server: ModelServer, key: str = KEY) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key=key, max_retries=0, timeout=20)


def say(client: openai.OpenAI, *, model: str = MODEL, max_tokens: int | None = None) -> ChatCompletion:
    user: openai.types.chat.ChatCompletionUserMessageParam = {"role": "user", "content": "Say pineapple."}
    return client.chat.completions.create(model=model, messages=[user], max_tokens=max_tokens)


def test_the_list_of_models_has_every_served_name(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL, "moonshotai/Kimi-K3"]


def test_a_chat_has_content_and_its_reasoning_in_a_field_of_its_own(client: openai.OpenAI) -> None:
    reply = say(client)
    message = reply.choices[0].message
    assert message.content is not None
    assert "Say pineapple." in message.content
    assert message.model_extra is not None
    assert message.model_extra["reasoning"]
    assert message.model_extra["reasoning"] not in message.content
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.created == NOW.timestamp()


def test_equal_requests_get_equal_answers(client: openai.OpenAI) -> None:
    assert say(client).choices == say(client).choices


def test_a_small_token_limit_is_spent_on_reasoning_alone(client: openai.OpenAI) -> None:
    reply = say(client, max_tokens=5)
    assert reply.choices[0].message.content is None
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 5


def test_a_stream_is_the_answer_in_pieces_with_usage_at_its_end(client: openai.OpenAI) -> None:
    whole = say(client)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Say pineapple."}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    assert any((delta.model_extra or {}).get("reasoning") for delta in deltas)
    assert chunks[-1].usage == whole.usage
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"


def test_a_tool_is_called_and_its_result_used(client: openai.OpenAI) -> None:
    question: openai.types.chat.ChatCompletionUserMessageParam = {"role": "user", "content": "How warm is it in Quito?"}
    reply = client.chat.completions.create(model=MODEL, messages=[question], tools=[WEATHER])
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Quito", "unit": "celsius"}

    result: openai.types.chat.ChatCompletionToolMessageParam = {
        "role": "tool",
        "tool_call_id": call.id,
        "content": "23 degrees",
    }
    called: openai.types.chat.ChatCompletionAssistantMessageParam = {
        "role": "assistant",
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
        ],
    }
    reply = client.chat.completions.create(model=MODEL, messages=[question, called, result], tools=[WEATHER])
    assert "23 degrees" in (reply.choices[0].message.content or "")


def test_a_call_that_the_client_names_ends_with_stop(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "How warm is it?"}],
        tools=[WEATHER],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
    )
    assert reply.choices[0].finish_reason == "stop"
    assert reply.choices[0].message.tool_calls


CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}


def statuses(server: ModelServer, **headers: str) -> dict[str, int]:
    """What each path answers to a request with these headers."""
    base = f"http://127.0.0.1:{server.port}"
    bodies = {"/v1/chat/completions": CHAT, "/invocations": CHAT, "/tokenize": {"model": MODEL, "prompt": "Hi"}}
    posted = {path: httpx.post(base + path, json=body, headers=headers) for path, body in bodies.items()}
    got = {path: httpx.get(base + path, headers=headers) for path in ("/v1/models", "/metrics", "/health")}
    return {path: answer.status_code for path, answer in {**posted, **got}.items()}


def test_by_itself_vllm_asks_for_the_key_below_v1_only() -> None:
    """Measured on vLLM 0.32.0; vllm-project/vllm issue 58144 has 0.27.1 and 0.29.0."""
    for server in running(options=replace(OPTIONS, requires_key_everywhere=False)):
        asked = {"/v1/chat/completions", "/v1/models"}
        assert {path for path, status in statuses(server).items() if status == 401} == asked
        assert {status for path, status in statuses(server).items() if path not in asked} == {200}


def test_with_the_charts_middleware_every_path_but_health_asks_for_the_key(server: ModelServer) -> None:
    assert {path for path, status in statuses(server).items() if status != 401} == {"/health"}
    assert set(statuses(server, Authorization=f"Bearer {KEY}").values()) == {200}


def test_a_wrong_key_is_refused_as_vllm_does_it(server: ModelServer) -> None:
    with openai_client(server, key="wrong") as stranger, pytest.raises(openai.AuthenticationError) as refused:
        say(stranger)
    assert refused.value.response.json() == {"error": "Unauthorized"}


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        say(client, model="gpt-2")
    error = refused.value.response.json()["error"]
    assert error == {
        "message": "The model `gpt-2` does not exist.",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }


@pytest.mark.parametrize(
    "body",
    [
        "no json",
        "{}",
        json.dumps({"model": MODEL, "messages": []}),
        json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 0}),
        json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100_000}),
        json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "tool_choice": "required"}),
    ],
)
def test_bad_input_is_refused_with_the_reason(server: ModelServer, body: str) -> None:
    answer = httpx.post(
        f"http://127.0.0.1:{server.port}/v1/chat/completions", content=body, headers={"Authorization": f"Bearer {KEY}"}
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "BadRequestError"
    assert answer.json()["error"]["message"]


def test_tool_choice_auto_needs_its_two_arguments() -> None:
    options = ServingOptions(served_model_names=(MODEL,), tool_call_parser="kimi_k3")
    for server in running(options=options):
        with openai_client(server) as client, pytest.raises(openai.BadRequestError, match="--enable-auto-tool-choice"):
            client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "?"}], tools=[WEATHER])


def test_without_a_reasoning_parser_the_reasoning_is_part_of_the_content() -> None:
    for server in running(options=ServingOptions(served_model_names=(MODEL,))):
        with openai_client(server) as client:
            message = say(client).choices[0].message
            assert message.model_extra is not None
            assert message.model_extra["reasoning"] is None
            assert message.content is not None
            assert "A rehearsal has no weights" in message.content


def test_metrics_move_with_requests(server: ModelServer, client: openai.OpenAI) -> None:
    usage = say(client).usage
    assert usage is not None
    say(client, max_tokens=5)
    key = {"Authorization": f"Bearer {KEY}"}
    metrics = httpx.get(f"http://127.0.0.1:{server.port}/metrics", headers=key).text.splitlines()
    model = f'model_name="{MODEL}"'
    assert f"vllm:generation_tokens_total{{{model}}} {usage.completion_tokens + 5}.0" in metrics
    assert f"vllm:prompt_tokens_total{{{model}}} {2 * usage.prompt_tokens}.0" in metrics
    assert f'vllm:request_success_total{{finished_reason="stop",{model}}} 1.0' in metrics
    assert f'vllm:request_success_total{{finished_reason="length",{model}}} 1.0' in metrics
    assert f"vllm:kv_cache_usage_perc{{{model}}} 0.0" in metrics


def test_model_seconds_follow_from_the_tokens_and_are_taken_once(server: ModelServer, client: openai.OpenAI) -> None:
    usage = say(client).usage
    assert usage is not None
    seconds = usage.prompt_tokens / 1000 + usage.completion_tokens / 10
    assert server.take_busy() == timedelta(seconds=seconds)
    assert server.take_busy() == timedelta()


def test_a_stopped_server_does_not_answer(server: ModelServer) -> None:
    server.stop()
    server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{server.port}/health")


def called(client: openai.OpenAI, question: str) -> object:
    """The arguments of the tool call that a question leads to; None when no tool is called."""
    user: openai.types.chat.ChatCompletionUserMessageParam = {"role": "user", "content": question}
    message = client.chat.completions.create(model=MODEL, messages=[user], tools=[WEATHER]).choices[0].message
    calls = message.tool_calls or []
    return json.loads(calls[0].function.arguments) if calls and calls[0].type == "function" else None


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("What is the weather in São Paulo in celsius?", {"city": "São Paulo", "unit": "celsius"}),
        ("Weather for Rio de Janeiro, in Fahrenheit please", {"city": "Rio de Janeiro", "unit": "fahrenheit"}),
        ("Is it cold in Ciudad de México?", {"city": "Ciudad de México", "unit": "celsius"}),
        # Without a city the model invents none.
        ("how warm is it?", {"city": "how warm is it?", "unit": "celsius"}),
    ],
)
def test_a_tool_is_called_with_what_was_asked(client: openai.OpenAI, question: str, arguments: object) -> None:
    assert called(client, question) == arguments


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("In one short sentence: what is the capital of Brazil?", "The capital of Brazil is Brasília."),
        ("And the capital of peru?", "The capital of Peru is Lima."),
        ("What is 17 plus 25?", "It is 42."),
        ("Count from three to five.", "three, four, five."),
        ("What is the capital of Atlantis?", "You wrote: What is the capital of Atlantis?"),
    ],
)
def test_a_question_that_the_model_knows_is_answered(client: openai.OpenAI, question: str, answer: str) -> None:
    user: openai.types.chat.ChatCompletionUserMessageParam = {"role": "user", "content": question}
    content = client.chat.completions.create(model=MODEL, messages=[user]).choices[0].message.content
    assert (content or "").splitlines()[0] == answer


def findings(server: ModelServer) -> set[str]:
    """What a careful client finds wrong, one word for each thing that a session's acceptance looks at."""
    found = set()
    with openai_client(server) as client, openai_client(server, key="wrong") as stranger:
        if MODEL not in [model.id for model in client.models.list()]:
            found.add("model_id")
        choice = say(client).choices[0]
        message = choice.message
        if not message.content or choice.finish_reason != "stop":
            found.add("chat")
        if not (message.model_extra or {}).get("reasoning"):
            found.add("reasoning")
        user: openai.types.chat.ChatCompletionUserMessageParam = {"role": "user", "content": "Say pineapple."}
        stream = client.chat.completions.create(model=MODEL, messages=[user], stream=True)
        if not any(choice.delta.content for chunk in stream for choice in chunk.choices):
            found.add("streaming")
        if called(client, "How warm is it in Quito?") != {"city": "Quito", "unit": "celsius"}:
            found.add("tool_call")
        with contextlib.suppress(openai.AuthenticationError):
            say(stranger)
            found.add("wrong_key")
        if {path for path, status in statuses(server).items() if status != 401} != {"/health"}:
            found.add("no_key")
        with contextlib.suppress(openai.NotFoundError):
            say(client, model="gpt-2")
            found.add("wrong_model")
    return found


def test_a_sound_server_has_no_flaw(server: ModelServer) -> None:
    assert findings(server) == set()


@pytest.mark.parametrize("flaw", list(Flaw))
def test_each_flaw_is_found_by_one_check_alone(flaw: Flaw) -> None:
    for server in running(flaw):
        assert findings(server) == {flaw.check}
