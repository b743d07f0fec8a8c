"""What the simulated model says: a pure function of the request, so equal requests get equal answers.

Like Kimi K3 it always reasons first, so a small `max_tokens` is used up before any content comes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rehearsal.model_knowledge import arguments_for, known_answer

FinishReason = Literal["stop", "length", "tool_calls"]

_ECHOED_CHARACTERS = 400


class TextPart(BaseModel):
    """One part of a message; parts that are no text (images) are counted as nothing."""

    text: str = ""


class Message(BaseModel):
    """A message of the conversation. Fields that only a real model needs are ignored, as vLLM ignores unknown ones."""

    role: str
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return " ".join(part.text for part in self.content)
        return self.content or ""


class Function(BaseModel):
    """A function that the model may call, and the JSON schema of its parameters."""

    name: str
    parameters: dict[str, object] = Field(default_factory=dict)


class Tool(BaseModel):
    type: Literal["function"] = "function"
    function: Function


class NamedFunction(BaseModel):
    name: str


class NamedToolChoice(BaseModel):
    """The client names the function that must be called."""

    type: Literal["function"]
    function: NamedFunction


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel):
    """What `POST /v1/chat/completions` takes, as far as the simulated model cares."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[Message] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    stream: bool = False
    stream_options: StreamOptions = Field(default_factory=StreamOptions)
    tools: list[Tool] = Field(default_factory=list)
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | None = None

    @property
    def token_limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


class TokenizeRequest(BaseModel):
    """What `POST /tokenize` takes."""

    prompt: str


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer in the pieces (tokens) in which it is streamed. Content and tool call exclude each other."""

    reasoning: tuple[str, ...]
    content: tuple[str, ...]
    tool_call: ToolCall | None
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int


def answer(request: ChatRequest) -> Answer:
    """What the model says to `request`."""
    limit = request.token_limit
    reasoning = _pieces(_reasoning(request))
    function = _function_to_call(request)
    said = (
        json.dumps(arguments_for(function.parameters, _last_user_text(request.messages)), sort_keys=True)
        if function is not None
        else _content(request.messages)
    )
    pieces = _pieces(said)
    spent = len(reasoning) + len(pieces)
    cut = limit is not None and spent > limit
    tool_call = ToolCall(name=function.name, arguments=said) if function is not None and not cut else None
    return Answer(
        reasoning=reasoning[:limit],
        content=() if function is not None else pieces[: None if limit is None else max(0, limit - len(reasoning))],
        tool_call=tool_call,
        finish_reason="length" if cut else _finish_reason(request, tool_call),
        prompt_tokens=sum(len(_pieces(message.text)) + 4 for message in request.messages),
        completion_tokens=min(spent, limit) if limit is not None else spent,
    )


def _finish_reason(request: ChatRequest, tool_call: ToolCall | None) -> FinishReason:
    # vLLM ends a call that the client named with `stop`: the model did not decide to call anything.
    named = isinstance(request.tool_choice, NamedToolChoice)
    return "tool_calls" if tool_call is not None and not named else "stop"


def _pieces(text: str) -> tuple[str, ...]:
    """Words with the space before them: joined they are the text again."""
    return tuple(re.findall(r"\s*\S+", text))


def _last_user_text(messages: list[Message]) -> str:
    texts = [message.text for message in messages if message.role == "user"]
    return texts[-1][:_ECHOED_CHARACTERS] if texts else ""


def _reasoning(request: ChatRequest) -> str:
    return (
        f"The conversation has {len(request.messages)} message(s) and offers {len(request.tools)} tool(s). "
        "A rehearsal has no weights to think with, so this is what thinking looks like on the wire: some tokens that "
        "come before the answer, count against the limit, and belong in a field of their own."
    )


def _content(messages: list[Message]) -> str:
    if messages[-1].role == "tool":
        return f"The tool answered: {messages[-1].text[:_ECHOED_CHARACTERS]}"
    question = _last_user_text(messages)
    answered = known_answer(question)
    repeated = f"You wrote: {question}\nThis is the model of a rehearsal, which repeats what it reads."
    return f"{answered}\n{repeated}" if answered else repeated


def _function_to_call(request: ChatRequest) -> Function | None:
    """The function to call: the named one, else the one whose name the user mentions, else the first."""
    functions = {tool.function.name: tool.function for tool in request.tools}
    if isinstance(request.tool_choice, NamedToolChoice):
        return functions.get(request.tool_choice.function.name)
    if not functions or request.tool_choice == "none" or request.messages[-1].role == "tool":
        return None
    text = _last_user_text(request.messages)
    return next((function for name, function in functions.items() if name in text), next(iter(functions.values())))
