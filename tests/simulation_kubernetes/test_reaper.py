"""What the reaper promises: nothing of a world outlives the process that owns it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rehearsal.environment import WORLD_ID
from rehearsal.processes import lives, processes_of
from rehearsal.reaper import start_reaper

ROOT = Path(__file__).parents[2]

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""
LISTENER = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(600)
"""
SCRUBBED_CHILD = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={})
print("up", flush=True)
time.sleep(600)
"""
OWNER = f"""
import os, subprocess, sys, time
from pathlib import Path
from rehearsal.reaper import start_reaper

world_id, folder = sys.argv[1:3]
reaper = start_reaper(world_id, Path(folder), keep_folder="--keep" in sys.argv)
marked = {{**os.environ, {WORLD_ID!r}: world_id}}
for code, own_session in (({STUBBORN!r}, False), ({LISTENER!r}, True), ({SCRUBBED_CHILD!r}, False)):
    child = subprocess.Popen(
        [sys.executable, "-c", code], env=marked, stdout=subprocess.PIPE, text=True, start_new_session=own_session
    )
    print(child.stdout.readline().strip(), flush=True)
print(reaper.pid, flush=True)
time.sleep(600)
"""


class Owner:
    """A small stand-in for the process that owns a world, with four descendants: one ignores SIGTERM, one listens in a
    session of its own, and one starts another without the mark."""

    def __init__(self, world_id: str, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER, world_id, str(folder), *options],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self.process.stdout is not None
        _, port, _, reaper = [self.process.stdout.readline().strip() for _ in range(4)]
        self.port, self.reaper = int(port), psutil.Process(int(reaper))
        self.descendants = psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate()
        assert eventually(lambda: not lives(self.reaper))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "world"
    folder.mkdir()
    (folder / "state").write_text("something")
    return folder


@pytest.fixture
def world_id(request: pytest.FixtureRequest) -> str:
    return f"reaper-test-{os.getpid()}-{request.node.name}"


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_owner_of_a_world(number: signal.Signals, world_id: str, folder: Path) -> None:
    owner = Owner(world_id, folder)
    assert len(processes_of(world_id)) == 4
    assert listens(owner.port)

    owner.end(number)

    assert processes_of(world_id) == frozenset()
    assert not any(lives(process) for process in owner.descendants)
    assert not listens(owner.port)
    assert not folder.exists()


def test_a_folder_to_be_kept_is_kept(world_id: str, folder: Path) -> None:
    owner = Owner(world_id, folder, "--keep")
    owner.end(signal.SIGKILL)
    assert processes_of(world_id) == frozenset()
    assert (folder / "state").exists()


def test_another_world_is_left_alone(world_id: str, folder: Path, tmp_path: Path) -> None:
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    other = Owner(f"{world_id}-other", other_folder)
    owner = Owner(world_id, folder)

    owner.end(signal.SIGKILL)

    assert len(processes_of(f"{world_id}-other")) == 4
    other.end(signal.SIGKILL)
    assert not other_folder.exists()


def test_a_signal_to_the_reaper_itself_does_not_leave_the_world_unguarded(world_id: str, folder: Path) -> None:
    owner = Owner(world_id, folder)
    owner.reaper.terminate()
    owner.end(signal.SIGKILL)
    assert processes_of(world_id) == frozenset()


def test_a_disarmed_reaper_touches_nothing(world_id: str, folder: Path) -> None:
    reaper = start_reaper(world_id, folder)
    child = subprocess.Popen([sys.executable, "-c", LISTENER], env={**os.environ, WORLD_ID: world_id}, stdout=-1)
    try:
        assert eventually(lambda: len(processes_of(world_id)) == 1)
        reaper.disarm()
        reaper.disarm()
        assert child.poll() is None
        assert (folder / "state").exists()
    finally:
        child.kill()
        child.communicate()


def test_an_orderly_end_waits_until_all_is_gone(world_id: str, folder: Path) -> None:
    reaper = start_reaper(world_id, folder)
    child = subprocess.Popen([sys.executable, "-c", LISTENER], env={**os.environ, WORLD_ID: world_id}, stdout=-1)
    assert eventually(lambda: len(processes_of(world_id)) == 1)
    reaper.reap()
    assert child.poll() == -signal.SIGTERM
    child.communicate()
    assert not folder.exists()
