"""A detached child outlives whoever started it, and its last word is found by whoever looks."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from automation.ledger.entries import Opened, OperationStarted
from automation.ledger.folder import SessionFolder, session_folder
from automation.ledger.journal import Journal
from automation.ledger.request import RentRequest
from automation.session import operations
from automation.session.operations import LastWord, SeenOperation, interrupt, kill, poll, since_boot, start

NOW = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    folder = session_folder(tmp_path, "s")
    folder.create()
    return folder


@pytest.fixture
def journal(folder: SessionFolder, rent_request: RentRequest) -> Journal:
    journal = Journal(folder.journal)
    journal.write(Opened(at=NOW, session="s", mode="rehearsal", account_id="1", request=rent_request))
    return journal


@pytest.fixture
def child(journal: Journal) -> Any:
    """A process of this test that stands for a child, in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, start_new_session=True
    )
    born = since_boot(psutil.Process(process.pid))
    journal.write(OperationStarted(at=NOW, number=1, name="up", pid=process.pid, process_started=born))
    yield process
    process.kill()
    process.communicate(timeout=30)


def ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(timeout=30)


def test_a_child_that_hears_no_question_is_ended_with_all_that_it_has_started(journal: Journal) -> None:
    deaf = "import signal, subprocess, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    both = f"{deaf}engine = subprocess.Popen([sys.executable, '-c', {deaf + 'time.sleep(600)'!r}]); "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{both}print(engine.pid, flush=True); time.sleep(600)"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    engine = psutil.Process(int(process.stdout.readline()))
    born = since_boot(psutil.Process(process.pid))
    journal.write(OperationStarted(at=NOW, number=1, name="up", pid=process.pid, process_started=born))
    interrupt(journal.record(), journal, NOW)
    assert process.poll() is None
    kill(journal.record())
    assert process.wait(timeout=30) == -signal.SIGKILL
    engine.wait(timeout=30)
    process.stdout.close()
    # Once more it ends nobody: the pid may be anybody's by then.
    kill(journal.record())


def test_a_running_child_is_seen_by_anybody(folder: SessionFolder, journal: Journal, child: Any) -> None:
    seen = poll(journal.record(), folder, journal, NOW)
    assert seen is not None
    assert (seen.running, seen.exit_code) == (True, None)


def test_the_last_word_is_written_down_once(folder: SessionFolder, journal: Journal, child: Any) -> None:
    place = folder.operation(1, "up")
    place.mkdir(parents=True)
    LastWord(exit_code=9, sentence="`pulumi up` failed.").write(place)
    ended(child)
    for _ in range(2):
        seen = poll(journal.record(), folder, journal, NOW)
        assert seen is not None
        assert (seen.running, seen.exit_code) == (False, 9)
    assert [entry.kind for entry in journal.entries()].count("operation-ended") == 1


def test_a_child_that_was_killed_leaves_no_word(folder: SessionFolder, journal: Journal, child: Any) -> None:
    ended(child)
    seen = poll(journal.record(), folder, journal, NOW)
    assert seen is not None
    assert (seen.running, seen.exit_code) == (False, None)


def test_another_process_with_the_same_pid_is_not_taken_for_the_child(journal: Journal, child: Any) -> None:
    born = since_boot(psutil.Process(child.pid))
    journal.write(OperationStarted(at=NOW, number=2, name="up", pid=child.pid, process_started=born - 60))
    assert not SeenOperation(run=journal.record().operations[0]).ended()
    assert SeenOperation(run=journal.record().operations[1]).ended()


def test_a_step_of_the_wall_clock_ends_no_running_child(
    journal: Journal, child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = psutil.boot_time()
    # What psutil tells of a process since the epoch rests on the same figure.
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: boot + 3600)
    assert not SeenOperation(run=journal.record().operations[0]).ended()


def test_a_child_is_interrupted_once_with_all_that_it_started(
    journal: Journal, child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: signals.append((group, number)))
    interrupt(journal.record(), journal, NOW)
    interrupt(journal.record(), journal, NOW)
    assert signals == [(child.pid, signal.SIGINT)]


def test_a_child_is_started_apart_and_its_output_goes_to_files(
    folder: SessionFolder, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "stand-in" / "automation" / "session"
    package.mkdir(parents=True)
    for part in (package, package.parent):
        (part / "__init__.py").touch()
    (package / "child.py").write_text(
        "import os, sys; print(sys.argv[1:], os.getsid(0) == os.getpid(), os.environ['GIVEN'])"
    )
    monkeypatch.setattr(operations, "_CHECKOUT", tmp_path / "stand-in")
    start("up", folder, journal, NOW, {"GIVEN": "by the target"})
    running = SeenOperation(run=journal.record().operations[0])
    deadline = time.monotonic() + 60
    while not running.ended() and time.monotonic() < deadline:
        time.sleep(0.05)
    said = (folder.operation(1, "up") / "child.log").read_text()
    assert said == f"['up', '{folder.root}', '1'] True by the target\n"
