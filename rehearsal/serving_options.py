"""What vLLM would make of a container's command line and environment."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from rehearsal.cluster_client import Container
from rehearsal.model_server import ServingOptions

API_KEY_VARIABLE = "VLLM_API_KEY"
# The chart's (charts/vllm/files). Another middleware could do anything, so it is refused.
_REQUIRE_KEY = "require_key.RequireKey"


class BadArguments(Exception):
    """Arguments that vLLM does not take."""


def serving_options(container: Container, *, api_key: str | None) -> ServingOptions:
    """vLLM's options of a container. `api_key` is the value of `VLLM_API_KEY`, if the container has one.

    Raises:
        BadArguments: vLLM would end at once with its usage message.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--model")
    parser.add_argument("--served-model-name", nargs="+", default=[])
    parser.add_argument("--api-key")
    parser.add_argument("--max-model-len")
    parser.add_argument("--reasoning-parser")
    parser.add_argument("--tool-call-parser")
    parser.add_argument("--enable-auto-tool-choice", action="store_true")
    parser.add_argument("--middleware", action="append", default=[])
    parser.add_argument("--shutdown-timeout", type=int, default=0)
    words = _words(container)
    try:
        options, _ = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise BadArguments(f"vLLM would not start with its arguments: {error}") from error
    unknown = [path for path in options.middleware if path != _REQUIRE_KEY]
    if unknown:
        raise BadArguments(f"The rehearsal does not have the middleware {', '.join(unknown)}; it has {_REQUIRE_KEY}.")
    model = options.model or _positional_model(words)
    length = options.max_model_len or ""
    return ServingOptions(
        served_model_names=tuple(options.served_model_name) or (model,),
        api_key=options.api_key or api_key,
        # vLLM also takes lengths such as `1M` and `auto`; the rehearsal then sets no limit.
        max_model_len=int(length) if length.isdecimal() else None,
        reasoning_parser=options.reasoning_parser,
        tool_call_parser=options.tool_call_parser,
        enable_auto_tool_choice=options.enable_auto_tool_choice,
        requires_key_everywhere=bool(options.middleware),
    )


def _words(container: Container) -> list[str]:
    """The command line; a script given to a shell is taken apart as the shell would."""
    words = [*container.command, *container.args]
    return shlex.split(" ".join(words[2:])) if words[1:2] == ["-c"] else words


def _positional_model(words: Sequence[str]) -> str:
    """The model of `vllm serve MODEL`; the image's own entry point takes it as its first word."""
    after = words[words.index("serve") + 1 :] if "serve" in words else words
    return after[0] if after and not after[0].startswith("-") else "model"
