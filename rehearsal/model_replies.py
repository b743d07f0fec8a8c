"""How vLLM writes an answer: as one JSON object, or as the chunks of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rehearsal.model_answers import Answer

Json = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer on its way to the client.

    Without `reasoning_apart` the reasoning stands before the content, and with `tool_call_as_text` a call is content:
    both are what a missing or wrong parser gives. `tool_arguments` replaces the arguments of a call.
    """

    said: Answer
    request_id: str
    created: int
    model: str
    reasoning_apart: bool
    tool_call_as_text: bool = False
    tool_arguments: str | None = None

    def whole(self, *, cut_off: bool = False) -> Json:
        """The body of a `chat.completion`. With `cut_off` a plain answer says that it reached a limit."""
        text = "".join(self._content())
        message = {
            "role": "assistant",
            "content": text or None,
            "refusal": None,
            "tool_calls": list(self._calls),
            "reasoning": "".join(self._reasoning()) or None,
        }
        finish_reason = "length" if cut_off and not self._calls else self._finish_reason
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head("chat.completion"), "choices": [{**choice, "stop_reason": None}], "usage": self._usage}

    def chunks(self, *, usage: bool, broken: bool = False) -> Iterator[Json]:
        """The `chat.completion.chunk`s. With `broken` the stream ends after its first one."""
        yield self._chunk({"role": "assistant", "content": ""})
        if broken:
            return
        for piece in self._reasoning():
            yield self._chunk({"reasoning": piece})
        for piece in self._content():
            yield self._chunk({"content": piece})
        for call in self._calls:
            yield self._chunk({"tool_calls": [{"index": 0, **call}]})
        yield self._chunk({}, finish_reason=self._finish_reason)
        if usage:
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage}

    def _reasoning(self) -> Sequence[str]:
        return self.said.reasoning if self.reasoning_apart else ()

    def _content(self) -> Sequence[str]:
        before = () if self.reasoning_apart else self.said.reasoning
        call = self.said.tool_call
        return (*before, *self.said.content, *((call.arguments,) if call and self.tool_call_as_text else ()))

    @property
    def _calls(self) -> Sequence[Json]:
        call = self.said.tool_call
        if call is None or self.tool_call_as_text:
            return ()
        function = {"name": call.name, "arguments": self.tool_arguments or call.arguments}
        # The form of ids that Kimi's models are trained on.
        return ({"id": f"functions.{call.name}:0", "type": "function", "function": function},)

    @property
    def _finish_reason(self) -> str:
        return "stop" if self.tool_call_as_text and self.said.tool_call else self.said.finish_reason

    @property
    def _usage(self) -> Json:
        read, written = self.said.prompt_tokens, self.said.completion_tokens
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    def _head(self, kind: str) -> Json:
        return {"id": self.request_id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, delta: Json, *, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}


def events(chunks: Iterable[Json]) -> Iterator[str]:
    """Server-sent events, with the line that ends a stream."""
    for chunk in chunks:
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def refusal(status: int, kind: str, message: str, *, param: str | None) -> Json:
    """The body of an error as vLLM gives it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def metric(kind: Literal["counter", "gauge"], name: str, values: Mapping[str, int]) -> str:
    """One metric in Prometheus's text format; `values` by their labels."""
    full = f"vllm:{name}"
    samples = [f"{full}{{{labels}}} {value}.0" for labels, value in values.items()]
    # The exposition names a counter's family without `_total`.
    return "\n".join([f"# TYPE {full.removesuffix('_total')} {kind}", *samples])
