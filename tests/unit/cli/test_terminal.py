"""A verb whose terminal goes away goes on; a question is answered by a person or by nobody."""

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from automation.cli import terminal
from automation.errors import ExitCode

_TALKS = """
import sys
from automation.cli import display, terminal
console = terminal.console()
console.print("a line 0")
sys.stdin.readline()
for number in (1, 2):
    console.print("a line", number)
with display.display_on(console) as shown:
    shown.say(__import__("datetime").datetime.now(), "a sentence")
print("goes on")
"""


def talking(stderr: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _TALKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,  # type: ignore[arg-type]
        text=True,
    )


def test_what_is_said_goes_to_standard_error() -> None:
    with talking(subprocess.PIPE) as child:
        out, err = child.communicate("\n", timeout=60)
    assert (out, err.splitlines()[:3]) == ("goes on\n", ["a line 0", "a line 1", "a line 2"])
    assert err.endswith("a sentence\n")


def test_a_reader_that_has_ended_ends_no_verb() -> None:
    with talking(subprocess.PIPE) as child:
        assert child.stderr is not None
        assert child.stderr.readline() == "a line 0\n"
        child.stderr.close()
        out, _ = child.communicate("\n", timeout=60)
        assert out == "goes on\n"
    assert child.returncode == 0


def test_a_disk_that_is_full_ends_no_verb() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full, talking(full) as child:
        assert child.communicate("\n", timeout=60)[0] == "goes on\n"
    assert child.returncode == 0


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_a_verb_without_standard_streams_ends_with_its_own_code(closed: str) -> None:
    command = f'exec "{sys.executable}" -m rehearsal.command offers --hours 25 {closed}'
    assert subprocess.run(["sh", "-c", command], check=False, timeout=60).returncode == ExitCode.USAGE


def test_a_closed_terminal_is_outlived() -> None:
    terminal.outlive()
    signal.raise_signal(signal.SIGHUP)


@pytest.mark.parametrize(
    ("stdin", "typed"),
    [(SimpleNamespace(isatty=lambda: True), True), (SimpleNamespace(isatty=lambda: False), False), (None, False)],
)
def test_an_answer_in_a_pipe_is_nobodys(monkeypatch: pytest.MonkeyPatch, stdin: object, typed: bool) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert terminal.somebody_types() is typed
