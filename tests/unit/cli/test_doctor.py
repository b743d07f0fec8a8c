"""The doctor tells a newcomer what a rehearsal can do without, and `make doctor` adds no alarm of its own."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from automation.cli import doctor
from automation.cli.doctor import Finding, closing
from automation.errors import CredentialsMissing, ExitCode
from automation.target import Target
from toolchain.find import Part

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
            ["Only real AWS needs this: AWS account. `make rehearse` and `make test` need none of it."],
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
        "Only real AWS needs this: AWS account",
    ]


def test_a_machine_without_aws_lacks_nothing_that_a_rehearsal_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Target:
        raise CredentialsMissing(happened="No credentials.", remedy="Sign in.")

    monkeypatch.setattr("toolchain.describe", list)
    findings = list(doctor.examine(nobody, {"PATH": ""}))
    lacking = {finding.part for finding in findings if finding.ok is False}
    assert lacking == {"aws command", "pulumi command", "pulumi-language-python", "AWS account"}
    assert not any(finding.rehearsal_needs_it for finding in findings if finding.ok is False)


def engine(folder: Path) -> Part:
    return Part(name="pulumi", version="3.274.1", way="built", path=folder / "pulumi")


def examined(path: Path) -> dict[str, Finding]:
    def no_account() -> Target:
        raise CredentialsMissing(happened="No credentials.", remedy="Sign in.")

    return {finding.part: finding for finding in doctor.examine(no_account, {"PATH": str(path)})}


@pytest.mark.parametrize("whole", [True, False])
def test_a_pulumi_in_the_cache_is_offered_only_with_its_language_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    if whole:
        (cache / "pulumi-language-python").touch(mode=0o755)
    monkeypatch.setattr("toolchain.describe", lambda: [engine(cache)])
    found = examined(tmp_path)["pulumi command"]
    assert (found.ok, found.rehearsal_needs_it) == (False, False)
    assert (f'export PATH="{cache}:$PATH"' in found.detail) is whole
    assert ("https://www.pulumi.com/docs/install/" in found.detail) is not whole


@pytest.mark.parametrize("beside", [True, False])
def test_a_pulumi_without_its_python_plugin_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    monkeypatch.setattr("toolchain.describe", list)
    installed, on_path = tmp_path / "installed", tmp_path / "bin"
    for folder in (installed, on_path):
        folder.mkdir()
    (installed / "pulumi").touch(mode=0o755)
    (on_path / "pulumi").symlink_to(installed / "pulumi")
    if beside:
        # The engine looks beside its own file, too.
        (installed / "pulumi-language-python").touch(mode=0o755)
    found = examined(on_path)
    assert found["pulumi command"].ok
    plugin = found["pulumi-language-python"]
    assert plugin.ok is beside
    assert ("https://www.pulumi.com/docs/install/" in plugin.detail) is not beside
    assert not plugin.rehearsal_needs_it


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
