"""The doctor tells a newcomer what a rehearsal can do without, and `make doctor` adds no alarm of its own."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from automation.cli import doctor
from automation.cli.doctor import Finding, closing
from automation.errors import CredentialsMissing, ExitCode
from automation.target import Target

PROJECT = Path(__file__).resolve().parents[3]


def lacking(part: str, *, rehearsal_needs_it: bool) -> Finding:
    return Finding(part=part, ok=False, detail="-", rehearsal_needs_it=rehearsal_needs_it)


ACCOUNT = lacking("AWS account", rehearsal_needs_it=False)
ENGINE = lacking("pulumi", rehearsal_needs_it=True)
NOT_KNOWN = Finding(part="pin", ok=None, detail="-", rehearsal_needs_it=False)


@pytest.mark.parametrize(
    ("findings", "sentences"),
    [
        ([NOT_KNOWN], ["Nothing lacks."]),
        (
            [ACCOUNT, NOT_KNOWN],
            ["Only a real session needs this: AWS account. `make rehearse` and `make test` need none of it."],
        ),
        (
            [ENGINE],
            ["A rehearsal needs this too: pulumi. `make setup` gets it, and `make rehearse` begins with that."],
        ),
    ],
)
def test_the_end_says_what_a_rehearsal_can_do_without(findings: Sequence[Finding], sentences: list[str]) -> None:
    assert list(closing(findings)) == sentences


def test_both_kinds_of_lacks_are_told_apart() -> None:
    assert [sentence.partition(".")[0] for sentence in closing([ACCOUNT, ENGINE])] == [
        "A rehearsal needs this too: pulumi",
        "Only a real session needs this: AWS account",
    ]


def test_a_machine_without_aws_lacks_nothing_that_a_rehearsal_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Target:
        raise CredentialsMissing(happened="No credentials.", remedy="Sign in.")

    monkeypatch.setattr("toolchain.describe", list)
    findings = list(doctor.examine(nobody, {"PATH": ""}))
    assert {finding.part for finding in findings if finding.ok is False} == {"aws command", "AWS account"}
    assert not any(finding.rehearsal_needs_it for finding in findings if finding.ok is False)


@pytest.mark.parametrize(("code", "made"), [(ExitCode.OK, 0), (ExitCode.LACKING, 0), (ExitCode.FAILED, 2)])
def test_make_doctor_is_alarmed_by_a_failure_and_by_no_lack(tmp_path: Path, code: ExitCode, made: int) -> None:
    command = tmp_path / "bin" / "rentblock"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho the list\nexit {code.value}\n", encoding="utf-8")
    command.chmod(0o755)
    (tmp_path / ".installed").touch()
    ended = subprocess.run(
        ["make", "--no-print-directory", "doctor", f"VENV={tmp_path}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (made, "the list\n")
    assert bool(ended.stderr) is bool(made)
