"""An AWS that does not answer, or lets nobody in, costs a clear sentence and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from automation.errors import ExitCode
from automation.ledger.folder import SessionFolder
from automation.target import unasked_aws_target

VERBS = [
    pytest.param(["offers"], id="offers"),
    pytest.param(["rent", "--cidr", "192.0.2.1/32"], id="rent"),
    pytest.param(["rent", "--session", "rtb-20261201-a1b2"], id="rent-on"),
    pytest.param(["down", "--yes"], id="down"),
]


@pytest.mark.parametrize("verb", VERBS)
def test_an_aws_that_does_not_answer_is_said_so(rentblock: Any, session: SessionFolder, verb: list[str]) -> None:
    before = session.journal.read_bytes()
    answer = rentblock(*verb)
    assert answer.code == ExitCode.AWS_UNREACHABLE, answer.err
    assert answer.is_one_clear_block(), answer.err
    assert "AWS did not answer while asking STS" in answer.words
    assert "Nothing was changed. What already runs in AWS goes on and is billed." in answer.words
    assert "Check network, proxy and region, then run the same verb again." in answer.words
    assert session.journal.read_bytes() == before


@pytest.mark.parametrize("verb", VERBS[:2])
def test_missing_credentials_are_said_so(rentblock: Any, session: SessionFolder, verb: list[str]) -> None:
    answer = rentblock(*verb, without=["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    assert answer.code == ExitCode.CREDENTIALS, answer.err
    assert answer.is_one_clear_block(), answer.err
    assert "No usable AWS credentials" in answer.words
    assert "Sign in (`aws sso login`) or set AWS_PROFILE" in answer.words


def test_a_profile_that_does_not_exist_is_named(rentblock: Any) -> None:
    answer = rentblock("offers", AWS_PROFILE="nobody")
    assert answer.code == ExitCode.CREDENTIALS
    assert answer.is_one_clear_block(), answer.err
    assert "The config profile (nobody) could not be found" in answer.words


def test_status_tells_what_the_journal_says(rentblock: Any, session: SessionFolder) -> None:
    answer = rentblock("status")
    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert session.session in answer.out
    assert "AWS was not asked" in answer.out


def test_report_needs_no_aws(rentblock: Any, session: SessionFolder) -> None:
    answer = rentblock("report")
    assert (answer.code, answer.err) == (ExitCode.OK, "")
    assert (session.root / "report.html").exists()


def test_silence_is_noticed_well_within_a_minute() -> None:
    config: Any = unasked_aws_target("us-west-2").client("sts").meta.config
    assert config.connect_timeout * config.retries["total_max_attempts"] <= 20
