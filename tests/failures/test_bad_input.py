"""What is asked for wrongly is said at once, all of it, before anything is asked of AWS or written here."""

from __future__ import annotations

from typing import Any

import pytest

from automation.errors import ExitCode

CIDR = ["--cidr", "192.0.2.1/32"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["offers", "--hours", "30"], "--hours: AWS sells no blocks of 30 hours; ask for whole days up to 14"),
        (["rent"], "--cidr: name at least one address range that may reach the cluster"),
        (["rent", *CIDR, "--cidr", "0.0.0.0/0"], "--cidr: 0.0.0.0/0 would let anyone reach the cluster"),
        (["offers", "--instance-type", "g6.xlarge"], "--model: kimi-k3 needs 8 GPU(s) in one instance"),
        (
            ["rent", *CIDR, "--session", "rtb-20261201-a1b2"],
            "--session goes on with a session as it was asked for; --cidr would ask for another.",
        ),
    ],
)
def test_one_thing_that_is_wrong_is_told_by_its_flag(rentblock: Any, arguments: list[str], words: str) -> None:
    answer = rentblock(*arguments)
    assert answer.code == ExitCode.USAGE, answer
    assert answer.is_one_clear_block(), answer.err
    assert words in answer.words
    assert rentblock.written == []


def test_all_that_is_wrong_comes_in_one_message(rentblock: Any) -> None:
    wrong = {
        "--hours": "0",
        "--instance-type": "p6-b3",
        "--model": "gpt-2",
        "--count": "0",
        "--capacity": "spot",
        "--reservation": "cb-0123456789abcdef0",
        "--weights": "https://my-bucket/kimi-k3",
        "--yes-pay": "-1",
        "--parallel": "0",
    }
    flags = [word for flag in wrong.items() for word in flag]
    answer = rentblock("rent", *flags, "--cidr", "nonsense", "--cidr", "192.0.2.1/8")
    assert answer.code == ExitCode.USAGE
    assert "Traceback" not in answer.err
    for flag in (*wrong, "--cidr"):
        assert answer.words.count(f" {flag}: ") == 1, flag
    for said in ("unknown model 'gpt-2'; known: kimi-k3", "unknown instance type 'p6-b3'; known: g6.xlarge"):
        assert said in answer.words
    for said in ("--hours: Input should be greater than or equal to 1", "'nonsense'", "'192.0.2.1/8'"):
        assert said in answer.words
    assert answer.words.endswith("It costs nothing. Put this right and try again.")
    assert rentblock.written == []


def test_two_flags_that_contradict_are_told_with_the_rest(rentblock: Any) -> None:
    on_demand = ["--capacity", "on-demand", "--reservation", "cr-0123456789abcdef0"]
    answer = rentblock("rent", *on_demand, "--count", "65")
    assert answer.code == ExitCode.USAGE
    assert "--reservation: an on-demand session has no reservation; leave one of the two out" in answer.words
    assert "--count: Input should be less than or equal to 64" in answer.words
    assert "--cidr: name at least one" in answer.words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["offers", "--hours", "abc"], "--hours"),
        (["rent", "--yes-pay", "everything"], "everything is no amount of US$"),
        (["rehearse", "--seed", "abc"], "--seed"),
        (["down", "--force"], "--force"),
    ],
)
def test_what_is_no_command_line_is_a_wrong_usage(rentblock: Any, arguments: list[str], words: str) -> None:
    answer = rentblock(*arguments)
    assert answer.code == ExitCode.USAGE, answer
    assert words in answer.words
    assert "Traceback" not in answer.err
    assert rentblock.written == []


@pytest.mark.parametrize("verb", ["status", "report", "down", "rent"])
def test_a_session_that_nobody_knows_is_told_with_those_that_are_known(rentblock: Any, session: Any, verb: str) -> None:
    answer = rentblock(verb, "--session", "rtb-20260101-zzzz")
    assert answer.code == ExitCode.UNKNOWN_SESSION, answer
    assert answer.is_one_clear_block(), answer.err
    assert "There is no session rtb-20260101-zzzz." in answer.words
    assert session.session in answer.words


def test_a_scenario_that_nobody_knows_is_told_with_those_that_are_known(rentblock: Any) -> None:
    answer = rentblock("rehearse", "--scenario", "mars")
    assert answer.code == ExitCode.USAGE, answer
    assert answer.is_one_clear_block(after_lines=2), answer.err
    assert "There is no scenario 'mars'; there are: cold-cache, default" in answer.words
    assert rentblock.written == []
