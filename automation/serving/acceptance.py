"""The checks that prove an endpoint, made with the openai client as a user would.

`/health` says only that a process lives: an engine whose kernels are broken answers 200 there. So each check here sends
the request that a user would send, and looks for the one thing that it stands for, so that one broken thing makes one
check false. Each check that reads an answer also looks whether it answers the question (`questions.py`). It does not
judge the reasoning's words: they depend on the model and on its effort, and nonsense there does not end in a right
answer. Kimi K3 always reasons and a small `max_tokens` would cut its answer off before the first word of it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import httpx2
import openai
from openai.types.chat import ChatCompletionToolParam
from pydantic import ValidationError

from ..ledger.record import CheckResult
from . import questions
from .answer_shapes import Answer, Choice, Chunk

MAX_TOKENS = 2048
# The first request after a start may compile kernels; it is still part of the paid start-up, not of serving.
_TIMEOUT = httpx2.Timeout(300.0, connect=10.0)
_LOW_EFFORT = {"reasoning_effort": "low"}
# What stands in the text when no reasoning parser is set (Kimi's and Qwen's marks).
_REASONING_MARKS = ("<think>", "</think>", "◁think▷", "◁/think▷")
# An answer that is quoted in a finding; a model that talks on must not fill the report.
_QUOTED_CHARACTERS = 160


class NotAsPromised(Exception):
    """A check's finding: what the endpoint did instead, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class _Endpoint:
    client: openai.OpenAI
    http: httpx2.Client
    root_url: str
    served_model: str

    def ask(self, prompt: str, *, model: str | None = None, tools: Iterable[ChatCompletionToolParam] = ()) -> Choice:
        answer = self.client.chat.completions.create(
            model=model or self.served_model,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=MAX_TOKENS,
            tools=list(tools) or openai.omit,
            extra_body=_LOW_EFFORT,
        )
        return Answer.model_validate(answer.to_dict(warnings=False)).choices[0]


def run(base_url: str, api_key: str, served_model: str) -> tuple[CheckResult, ...]:
    """Every check of CHECKS in order, each with its finding in a sentence; one that fails never stops the others."""
    # trust_env=False: a proxy of this machine must not see requests to 127.0.0.1.
    http_client = openai.DefaultHttpxClient(trust_env=False, timeout=_TIMEOUT)
    with openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0, http_client=http_client) as client:
        root_url = base_url.removesuffix("/v1")
        endpoint = _Endpoint(client=client, http=http_client, root_url=root_url, served_model=served_model)
        return tuple(_result(name, check, endpoint) for name, check in CHECKS.items())


def _result(name: str, check: Callable[[_Endpoint], str], endpoint: _Endpoint) -> CheckResult:
    try:
        return CheckResult(check=name, ok=True, detail=check(endpoint))
    except NotAsPromised as finding:
        return CheckResult(check=name, ok=False, detail=str(finding))
    except openai.APIStatusError as error:
        return CheckResult(check=name, ok=False, detail=f"The endpoint answered {error.status_code}: {error.message}")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return CheckResult(check=name, ok=False, detail=f"The answer has another shape: {where}: {first['msg']}.")
    # A stream that breaks is told by httpx2, a body that is no JSON by ValueError; the openai client wraps neither.
    except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
        return CheckResult(check=name, ok=False, detail=f"No usable answer: {type(error).__name__}: {error}")


def _model_id(endpoint: _Endpoint) -> str:
    served = [model.id for model in endpoint.client.models.list()]
    if endpoint.served_model not in served:
        raise NotAsPromised(f"/v1/models lists {', '.join(served) or 'nothing'}, not {endpoint.served_model}.")
    return f"/v1/models lists {endpoint.served_model}."


def _chat(endpoint: _Endpoint) -> str:
    choice = endpoint.ask(questions.CAPITAL)
    text = (choice.message.content or "").strip()
    if not text:
        raise NotAsPromised(f"The answer's content is empty (finish_reason {choice.finish_reason}).")
    if choice.finish_reason != "stop":
        raise NotAsPromised(f"The answer ended with {choice.finish_reason}, not with stop.")
    if not questions.names_the_capital(text):
        raise NotAsPromised(f"Asked for the capital of Brazil, it answers: {_quoted(text)}")
    return f"{len(text)} characters of content that answer the question, ended with stop."


def _reasoning(endpoint: _Endpoint) -> str:
    message = endpoint.ask(questions.SUM).message
    reasoning, text = (message.reasoning or "").strip(), message.content or ""
    if not reasoning:
        raise NotAsPromised("The answer has no reasoning field; is the reasoning parser set?")
    if reasoning in text or any(mark in text for mark in _REASONING_MARKS):
        raise NotAsPromised("The reasoning stands in the content too.")
    if not questions.gives_the_sum(text):
        raise NotAsPromised(f"Asked for 17 plus 25, it answers: {_quoted(text)}")
    return f"{len(reasoning)} characters of reasoning, apart from the content, which has the right sum."


def _streaming(endpoint: _Endpoint) -> str:
    stream = endpoint.client.chat.completions.create(
        model=endpoint.served_model,
        messages=[{"role": "user", "content": questions.COUNT}],
        max_tokens=MAX_TOKENS,
        stream=True,
        stream_options={"include_usage": True},
        extra_body=_LOW_EFFORT,
    )
    chunks = [Chunk.model_validate(chunk.to_dict(warnings=False)) for chunk in stream]
    choices = [choice for chunk in chunks for choice in chunk.choices]
    pieces = [choice.delta.content for choice in choices if choice.delta.content]
    if len(pieces) < 2:
        raise NotAsPromised(f"The text came in {len(pieces)} piece(s), not as a stream.")
    if not any(choice.finish_reason == "stop" for choice in choices[-1:]):
        raise NotAsPromised("The stream ended without finish_reason stop.")
    if chunks[-1].usage is None:
        raise NotAsPromised("The stream ended without the usage that was asked for.")
    if not questions.counts_to_ten("".join(pieces)):
        raise NotAsPromised(f"Asked to count from one to ten, it streams: {_quoted(''.join(pieces))}")
    return f"{len(pieces)} pieces, {chunks[-1].usage.completion_tokens} tokens, ended with stop and usage."


def _tool_call(endpoint: _Endpoint) -> str:
    tool: ChatCompletionToolParam = {
        "type": "function",
        "function": {
            "name": questions.TOOL,
            "description": "The weather of a city now.",
            "parameters": questions.WeatherArguments.model_json_schema(),
        },
    }
    calls = endpoint.ask(questions.WEATHER, tools=[tool]).message.tool_calls or ()
    if not calls:
        raise NotAsPromised("The answer calls no tool; is the tool call parser set?")
    function = calls[0].function
    if function.name != questions.TOOL:
        raise NotAsPromised(f"The answer calls {function.name}, which was not offered.")
    try:
        arguments = questions.WeatherArguments.model_validate_json(function.arguments)
    except ValidationError as error:
        raise NotAsPromised(f"The arguments do not fit the schema: {function.arguments}") from error
    called = f"{questions.TOOL}({json.dumps(arguments.model_dump(), ensure_ascii=False)})"
    if not arguments.are_those_of_the_question():
        raise NotAsPromised(f"Asked for São Paulo in celsius, it calls {called}.")
    return f"{called}, as the question and the schema ask."


def _quoted(text: str) -> str:
    return json.dumps(text[:_QUOTED_CHARACTERS], ensure_ascii=False)


def _wrong_key(endpoint: _Endpoint) -> str:
    try:
        endpoint.client.with_options(api_key="not-the-key-of-this-session").models.list()
    except openai.AuthenticationError:
        return "A wrong key is refused with 401."
    raise NotAsPromised("A wrong key is let in.")


def _no_key(endpoint: _Endpoint) -> str:
    """vLLM itself lets /invocations and /tokenize in without a key: the chart's middleware refuses them.

    These requests come by port-forward, which no NetworkPolicy sees. So this says nothing about other pods and nodes.
    """
    chat = {"model": endpoint.served_model, "messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 16}
    tokenize = {"model": endpoint.served_model, "prompt": "Say yes."}
    bodies = {"/v1/chat/completions": chat, "/invocations": chat, "/tokenize": tokenize}
    answers = {path: endpoint.http.post(endpoint.root_url + path, json=body) for path, body in bodies.items()}
    let_in = [f"{path} ({answer.status_code})" for path, answer in answers.items() if not _refuses(answer)]
    if let_in:
        raise NotAsPromised(f"Without a key the endpoint does not refuse {', '.join(let_in)}.")
    return f"Without a key {', '.join(bodies)} are refused or not served."


def _refuses(answer: httpx2.Response) -> bool:
    """Whether the request was stopped before its body was looked at; a 400 means that it came further."""
    return answer.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN, httpx2.codes.NOT_FOUND)


def _wrong_model(endpoint: _Endpoint) -> str:
    model = f"{endpoint.served_model}-that-is-not-served"
    try:
        endpoint.ask("Say yes.", model=model)
    except openai.NotFoundError:
        return "A model that is not served is refused with 404."
    raise NotAsPromised(f"{model} is answered, though it is not served.")


CHECKS: Mapping[str, Callable[[_Endpoint], str]] = {
    "model_id": _model_id,
    "chat": _chat,
    "reasoning": _reasoning,
    "streaming": _streaming,
    "tool_call": _tool_call,
    "wrong_key": _wrong_key,
    "no_key": _no_key,
    "wrong_model": _wrong_model,
}
