"""Ends a world when the process that owns it has ended, by whatever means: `python -m rehearsal.reaper ID FOLDER`.

The reaper reads from a pipe that only the owner can write to. The kernel closes the owner's end when the owner is gone,
SIGKILL included; the reaper then ends every process that carries the world's mark and removes the world's folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rehearsal.environment import WORLD_ID
from rehearsal.processes import end, processes_of

GRACE_S = 1.0
"""How long a process may take to end on SIGTERM."""

_DISARM = b"."
_GUARDS = b"!"
# A process may start another one between two looks, and a child of the owner may outlive its SIGKILL by a moment.
_ROUNDS = 20


class Reaper:
    """The owner's side: as long as this object's pipe is open the world lives."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: int) -> None:
        self._process = process
        self._pipe: int | None = pipe

    @property
    def pid(self) -> int:
        return self._process.pid

    def disarm(self) -> None:
        """End the reaper and leave processes and folder as they are. Idempotent."""
        if self._pipe is not None:
            # A reaper that was ended from outside has closed its end of the pipe.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, _DISARM)
        self._close()

    def reap(self) -> None:
        """End everything now, as if the owner had ended, and return when it is done. Idempotent."""
        self._close()

    def _close(self) -> None:
        if self._pipe is None:
            return
        os.close(self._pipe)
        self._pipe = None
        self._process.wait()


def start_reaper(world_id: str, folder: Path, *, keep_folder: bool = False) -> Reaper:
    """Start the reaper of a world, in a session of its own so that Ctrl-C does not reach it.

    The caller's other children must not inherit its end of the pipe: Python's own subprocesses never do.
    """
    reading, writing = os.pipe()
    environment = {name: value for name, value in os.environ.items() if name != WORLD_ID}
    arguments = [world_id, str(folder), *(["--keep-folder"] if keep_folder else [])]
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "rehearsal.reaper", *arguments],
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parent.parent,
            env=environment,
            start_new_session=True,
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    if process.stdout is not None:
        # Until it says so, a signal that was meant for others could still take it.
        process.stdout.read(len(_GUARDS))
        process.stdout.close()
    return Reaper(process, writing)


def reap(world_id: str, folder: Path | None) -> None:
    """End all processes of a world, then remove its folder (unless it is None)."""
    for _ in range(_ROUNDS):
        left = processes_of(world_id)
        if not left:
            break
        end(left, grace_s=GRACE_S)
        time.sleep(0.05)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str]) -> int:
    # Whoever ends a whole process group or logs out must not take the reaper first.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(sys.stdout.fileno(), _GUARDS)
    world_id, folder, *options = arguments
    if sys.stdin.buffer.read() != _DISARM:
        reap(world_id, None if "--keep-folder" in options else Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
