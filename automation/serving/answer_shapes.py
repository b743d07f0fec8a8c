"""The parts of vLLM's answers that the acceptance reads. vLLM sends more, and more with every version."""

from pydantic import BaseModel, ConfigDict, Field


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Function(_Lenient):
    """A call's name and its arguments, which are JSON text."""

    name: str
    arguments: str


class ToolCall(_Lenient):
    function: Function


class Message(_Lenient):
    """A message, or the part of one that a chunk brings."""

    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None


class Choice(_Lenient):
    message: Message
    finish_reason: str | None = None


class Answer(_Lenient):
    """A `chat.completion`."""

    choices: tuple[Choice, ...] = Field(min_length=1)


class Usage(_Lenient):
    completion_tokens: int


class ChunkChoice(_Lenient):
    delta: Message
    finish_reason: str | None = None


class Chunk(_Lenient):
    """A `chat.completion.chunk`; the last one has the usage and no choice."""

    choices: tuple[ChunkChoice, ...] = ()
    usage: Usage | None = None
