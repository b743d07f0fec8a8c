"""However a rehearsal ends: no process, no port and no file of its world outlives it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from rehearsal.environment import WORLD_FILE, WORLD_ID
from rehearsal.processes import processes_of
from tests.end_to_end.conftest import ROOT

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

Eventually = Callable[[Callable[[], bool]], bool]

# What is under way when the end comes: words in the command line of a process of the world.
COMMAND = ("-c", "import sys; sys.stdin.read()")
ENGINE = ("pulumi", "up")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What is known of a world from outside, while it runs."""

    world_id: str
    folder: Path
    ports: frozenset[int]

    def is_gone(self) -> bool:
        return not processes_of(self.world_id) and not self.folder.exists() and not any(map(answers, self.ports))


class Owner:
    """`rentblock rehearse`, in a process group of its own as in a shell."""

    def __init__(self, arguments: tuple[str, ...], out: Path) -> None:
        self._said = out.with_name("said")
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rehearsal.command", "rehearse", "--out", str(out), *arguments],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What its user has read."""
        return self._said.read_text(encoding="utf-8")

    def runs(self, words: tuple[str, ...]) -> bool:
        """Whether a process of the world has these words in its command line."""
        return any(set(words) <= set(command_line(process)) for process in self.children())

    def children(self) -> Iterator[psutil.Process]:
        """The children that live in the world; the world's own servers do not know of it."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if WORLD_FILE in environment(child):
                yield child

    def look(self) -> Found:
        """The world as it is now."""
        seen = environment(next(self.children()))
        processes = {psutil.Process(self.process.pid), *processes_of(seen[WORLD_ID])}
        return Found(
            world_id=seen[WORLD_ID], folder=Path(seen[WORLD_FILE]).parent, ports=frozenset(listening(processes))
        )

    def end(self, number: signal.Signals | None) -> int:
        """Send a signal, or let the command end by itself; gives the exit code."""
        if number is signal.SIGINT:
            # Ctrl-C reaches everyone in the terminal's foreground; the others are sent to one process.
            os.killpg(self.process.pid, number)
        elif number is not None:
            self.process.send_signal(number)
        else:
            assert self.process.stdin is not None
            self.process.stdin.close()
        return self.process.wait(timeout=120)


def command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def listening(processes: set[psutil.Process]) -> Iterator[int]:
    """Ports on which they listen."""
    for process in processes:
        # One that has just ended listens no more.
        with contextlib.suppress(psutil.NoSuchProcess):
            for connection in process.net_connections():
                if connection.status == psutil.CONN_LISTEN:
                    yield connection.laddr.port


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[tuple[str, ...]], Owner]]:
    """Starts rehearsals and, whatever a test finds, leaves none."""
    owners: list[Owner] = []

    def start(arguments: tuple[str, ...]) -> Owner:
        owners.append(Owner(arguments, tmp_path / "out"))
        return owners[-1]

    yield start
    for owner in owners:
        owner.process.kill()
        owner.process.communicate()


SIGNALS = [
    pytest.param(signal.SIGINT, 128 + signal.SIGINT, id="Ctrl-C"),
    pytest.param(signal.SIGTERM, 128 + signal.SIGTERM, id="SIGTERM"),
    pytest.param(signal.SIGKILL, -signal.SIGKILL, id="SIGKILL"),
]


@pytest.mark.parametrize(("number", "code"), [pytest.param(None, 0, id="its end"), *SIGNALS])
def test_the_end_of_a_command_leaves_nothing(
    number: signal.Signals | None,
    code: int,
    started: Callable[[tuple[str, ...]], Owner],
    eventually: Eventually,
) -> None:
    owner = started(("--", sys.executable, *COMMAND))
    assert eventually(lambda: owner.runs(COMMAND))
    world = owner.look()
    assert world.folder.is_dir()
    # Control plane (six), simulated AWS, two providers, the world's clock.
    assert len(world.ports) >= 10
    assert owner.end(number) == code
    assert eventually(world.is_gone)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_during_an_engine_operation_leaves_nothing(
    number: signal.Signals, code: int, started: Callable[[tuple[str, ...]], Owner], eventually: Eventually
) -> None:
    """The session's engine is a detached child, in a session of its own."""
    owner = started(())
    assert eventually(lambda: owner.runs(ENGINE))
    world = owner.look()
    assert owner.end(number) == code
    assert eventually(world.is_gone)
    assert "Traceback" not in owner.said
    if number == signal.SIGINT:
        assert owner.said.endswith("Interrupted. The simulated world is gone, and nothing was billed.\n")


def test_a_whole_session_leaves_nothing(default: Rehearsal) -> None:
    assert processes_of(default.seen.world_id) == frozenset()
    assert not default.seen.folder.exists()
