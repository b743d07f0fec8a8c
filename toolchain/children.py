"""Child processes (go, the engine's plugin install) that never outlive their caller, and the caller's signals.

A child gets a process group of its own: go starts compilers and linkers, and ending go alone would leave those running.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from .errors import ExitCode

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 3.0


class Terminated(SystemExit):
    """SIGTERM or SIGHUP arrived while something was being fetched or built; the children are ended on the way out."""


class ChildTimeout(Exception):
    """A child did not end in its time and was ended."""


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    seconds: float,
    tick: Callable[[str], None],
) -> int:
    """Run a command to its end with its output in `log`; `tick` gets the last line of it again and again.

    Returns the exit code. Raises ChildTimeout after `seconds`. Whatever ends this function ends the child's group too.
    """
    deadline = time.monotonic() + seconds
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            while True:
                try:
                    return child.wait(_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    tick(last_line(log))
                if time.monotonic() > deadline:
                    raise ChildTimeout
        finally:
            if child.returncode != 0:
                _end_group(child)


def last_line(log: Path) -> str:
    """The last line that is not empty, of at most the last 4 kB."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the whole group, SIGKILL to what is left after a moment."""
    if _signal_group(child, signal.SIGTERM):
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline and _signal_group(child, 0):
            child.poll()
            time.sleep(0.02)
        _signal_group(child, signal.SIGKILL)
    child.wait()


def _signal_group(child: subprocess.Popen[bytes], number: int) -> bool:
    """Whether the group still had a member. Its id is the child's: no one else gets it while a member lives."""
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception, so that `finally` blocks run; SIGINT already is one.

    Handlers that a caller has set are left alone, and outside the main thread Python lets nobody set any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise Terminated(ExitCode.TERMINATED if number == signal.SIGTERM else 128 + number)

    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, end)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
