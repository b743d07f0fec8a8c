"""A stand-in never meets the real thing: a real verb that could change anything refuses, and says why.

Only the verbs of `rentblock` refuse. Who types `pulumi up` works with the engine alone, and takes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from automation.errors import ExitCode
from automation.ledger.folder import SessionFolder
from rehearsal.aws.server import SimulatedAws, start_aws
from rehearsal.delays import load_constants
from rehearsal.world import DEFAULT_START, World

PLUGINS = [f"pulumi-resource-{package}" for package in ("aws", "eks", "kubernetes", "aws-native")]
CHANGING = {
    "rent": ["rent", "--cidr", "192.0.2.1/32"],
    "rent, going on": ["rent", "--session", "rtb-20261201-a1b2"],
    "down": ["down", "--yes"],
    "rent, badly asked for": ["rent", "--hours", "25"],
}


def with_plugins(tmp_path: Path, *names: str) -> str:
    """A PATH on which these programs are."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def with_profile(tmp_path: Path, text: str) -> str:
    file = tmp_path / "config"
    file.write_text(text)
    return str(file)


def refused(answer: Any) -> bool:
    return (
        answer.code == ExitCode.REFUSED
        and answer.is_one_clear_block()
        and answer.words.startswith("A stand-in would meet the real AWS: ")
        and answer.words.endswith("Nothing was changed. Unset or remove it, or rehearse with `rentblock rehearse`.")
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PULUMI_DEBUG_PROVIDERS", "aws:12345"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:9"),
    ],
)
def test_a_variable_that_brings_a_stand_in_is_refused(rentblock: Any, variable: str, value: str) -> None:
    answer = rentblock(*CHANGING["rent"], **{variable: value})
    assert refused(answer), answer
    assert f"{variable} is set" in answer.words


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_on_path_is_refused(rentblock: Any, tmp_path: Path, plugin: str) -> None:
    answer = rentblock(*CHANGING["rent"], PATH=with_plugins(tmp_path, plugin))
    assert refused(answer), answer
    assert f"{plugin} is on PATH" in answer.words


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("[default]\nendpoint_url = http://127.0.0.1:9\n", "the AWS profile sets endpoint_url"),
        (
            "[default]\nservices = mine\n[services mine]\nec2 =\n  endpoint_url = http://127.0.0.1:9\n",
            "the AWS profile sets an endpoint_url for ec2",
        ),
    ],
)
def test_an_endpoint_in_the_profile_is_refused(rentblock: Any, tmp_path: Path, profile: str, words: str) -> None:
    answer = rentblock(*CHANGING["rent"], AWS_CONFIG_FILE=with_profile(tmp_path, profile))
    assert refused(answer), answer
    assert words in answer.words


@pytest.fixture(scope="module")
def pretender() -> Iterator[SimulatedAws]:
    """Something that answers as AWS does."""
    aws = start_aws(World(DEFAULT_START, 1, load_constants().delays))
    yield aws
    aws.stop()


@pytest.fixture
def everything(tmp_path: Path, pretender: SimulatedAws) -> Mapping[str, str]:
    """Every stand-in at once."""
    return {
        "PULUMI_DEBUG_PROVIDERS": "aws:12345",
        "AWS_ENDPOINT_URL": pretender.url,
        "AWS_CONFIG_FILE": with_profile(tmp_path, f"[default]\nendpoint_url = {pretender.url}\n"),
        "PATH": with_plugins(tmp_path, *PLUGINS),
    }


@pytest.mark.parametrize("verb", CHANGING.values(), ids=list(CHANGING))
def test_every_verb_that_could_change_anything_refuses_with_every_reason_and_asks_nobody(
    rentblock: Any, session: SessionFolder, pretender: SimulatedAws, everything: Mapping[str, str], verb: list[str]
) -> None:
    before, asked = session.journal.read_bytes(), pretender.calls
    answer = rentblock(*verb, **everything)
    assert refused(answer), answer
    for reason in ("PULUMI_DEBUG_PROVIDERS is set", "AWS_ENDPOINT_URL is set", "profile sets endpoint_url", *PLUGINS):
        assert reason in answer.words
    assert session.journal.read_bytes() == before
    assert pretender.calls == asked


def test_what_only_looks_works_with_all_of_them(
    rentblock: Any, session: SessionFolder, pretender: SimulatedAws, everything: Mapping[str, str]
) -> None:
    for verb in ("offers", "status", "report"):
        answer = rentblock(verb, **everything)
        assert answer.code == ExitCode.OK, answer
    assert not [call for call in pretender.calls if call.mutating]
