"""However a rehearsal ends: no process, no port and no file of its world outlives it."""

from __future__ import annotations

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
from tests.end_to_end.observed import listening

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

Eventually = Callable[[Callable[[], bool]], bool]

# What is under way when the signal comes: the command line of a process of the world.
SLEEP = ("python", "-c", "import time; time.sleep(600)")
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
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rehearsal.command", "rehearse", "--out", str(out), *arguments],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

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

    def signal(self, number: signal.Signals) -> None:
        # Ctrl-C reaches everyone in the terminal's foreground; the others are sent to one process.
        if number is signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)


def command_line(process: psutil.Process) -> list[str]:
    try:
        return [Path(word).name if word.startswith("/") else word for word in process.cmdline()]
    except psutil.Error:
        return []


def environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


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
        owner.process.wait()


def test_a_rehearsal_that_went_well_leaves_nothing(default: Rehearsal) -> None:
    seen = default.seen
    # Control plane, simulated AWS, providers, control, model server.
    assert len(seen.ports) > 8
    assert Found(world_id=seen.world_id, folder=seen.folder, ports=frozenset(seen.ports)).is_gone()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 128 + signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["Ctrl-C", "SIGTERM", "SIGKILL"],
)
@pytest.mark.parametrize(
    ("arguments", "under_way"), [(("--", *SLEEP), SLEEP), ((), ENGINE)], ids=["a command", "an engine operation"]
)
def test_a_signal_leaves_nothing(
    arguments: tuple[str, ...],
    under_way: tuple[str, ...],
    number: signal.Signals,
    code: int,
    started: Callable[[tuple[str, ...]], Owner],
    eventually: Eventually,
) -> None:
    owner = started(arguments)
    assert eventually(lambda: owner.runs(under_way))
    world = owner.look()
    assert world.folder.is_dir()
    assert len(world.ports) > 8
    owner.signal(number)
    assert owner.process.wait(timeout=60) == code
    assert eventually(world.is_gone)
