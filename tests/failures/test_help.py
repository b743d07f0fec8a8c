"""The help of every verb shows examples that can be copied and the exit codes, in eighty columns."""

from __future__ import annotations

import re
from typing import Any

import pytest

from automation.errors import MEANINGS

VERBS = ["offers", "rent", "status", "down", "report", "doctor", "rehearse"]


def exit_codes(help_text: str) -> dict[int, str]:
    after = help_text.partition("Exit codes:")[2]
    return {int(code): meaning for code, meaning in re.findall(r"^ +(\d+)  (.+?) *$", after, re.MULTILINE)}


@pytest.mark.parametrize("verb", VERBS)
def test_examples_stand_one_by_one_and_name_flags_that_exist(rentblock: Any, verb: str) -> None:
    answer = rentblock(verb, "--help")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert max(map(len, lines)) <= 80
    text = answer.out.partition("Examples:")[2].partition("╭")[0]
    commands = re.sub(r"\\ *\n", " ", text).strip().splitlines()
    assert len(commands) >= 2
    for command in commands:
        assert re.match(rf" *\$ rentblock {verb}( |$)", command), command
        for flag in re.findall(r" (--[a-z-]+)", command.partition(" -- ")[0]):
            assert re.search(rf"^│ +{flag} ", answer.out, re.MULTILINE), flag
    assert exit_codes(answer.out) == {int(code): meaning for code, meaning in MEANINGS.items()}


def test_the_first_help_lists_every_verb_and_every_exit_code(rentblock: Any) -> None:
    answer = rentblock("--help")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert re.findall(r"^│ ([a-z]+)  ", answer.out, re.MULTILINE) == VERBS
    assert exit_codes(answer.out) == {int(code): meaning for code, meaning in MEANINGS.items()}
