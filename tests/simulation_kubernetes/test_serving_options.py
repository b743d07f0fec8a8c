"""The model server is started with what the container's command line really says."""

from __future__ import annotations

import pytest

from rehearsal.cluster_client import Container
from rehearsal.model_server import ServingOptions
from rehearsal.serving_options import BadArguments, serving_options

EVERYTHING = ServingOptions(
    served_model_names=("Kimi-K3", "moonshotai/Kimi-K3"),
    api_key="a-key",
    max_model_len=131072,
    reasoning_parser="kimi_k3",
    tool_call_parser="kimi_k3",
    enable_auto_tool_choice=True,
    requires_key_everywhere=True,
)
ARGUMENTS = (
    "--trust-remote-code --tensor-parallel-size 8 --served-model-name Kimi-K3 moonshotai/Kimi-K3 --max-model-len=131072"
    " --reasoning-parser kimi_k3 --enable-auto-tool-choice --tool-call-parser kimi_k3"
    " --middleware require_key.RequireKey --shutdown-timeout 60"
)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ((), ("s3://weights/kimi-k3", *ARGUMENTS.split())),
        (("vllm", "serve"), ("s3://weights/kimi-k3", *ARGUMENTS.split())),
        (("/bin/sh", "-c"), (f"exec vllm serve s3://weights/kimi-k3 {ARGUMENTS}",)),
    ],
)
def test_every_way_to_write_the_command_line_is_read(command: tuple[str, ...], args: tuple[str, ...]) -> None:
    assert serving_options(Container(name="vllm", command=command, args=args), api_key="a-key") == EVERYTHING


@pytest.mark.parametrize("args", [("org/model",), ("--model", "org/model"), ("serve", "org/model", "--enforce-eager")])
def test_without_a_served_name_the_model_has_its_own(args: tuple[str, ...]) -> None:
    assert serving_options(Container(name="vllm", args=args), api_key=None).served_model_names == ("org/model",)


def test_a_shortened_argument_is_not_guessed() -> None:
    options = serving_options(Container(name="vllm", args=("org/model", "--reasoning", "kimi_k3")), api_key=None)
    assert options.reasoning_parser is None


def test_without_the_charts_middleware_vllms_own_paths_ask_for_the_key() -> None:
    assert not serving_options(Container(name="vllm", args=("org/model",)), api_key="k").requires_key_everywhere


@pytest.mark.parametrize(
    ("args", "what"), [("--middleware other.Thing", "other.Thing"), ("--shutdown-timeout soon", "--shutdown-timeout")]
)
def test_what_would_stop_the_start_is_said(args: str, what: str) -> None:
    with pytest.raises(BadArguments, match=what):
        serving_options(Container(name="vllm", args=("org/model", *args.split())), api_key=None)


def test_an_argument_without_its_value_stops_the_start() -> None:
    with pytest.raises(BadArguments, match="--reasoning-parser"):
        serving_options(Container(name="vllm", args=("org/model", "--reasoning-parser")), api_key=None)
