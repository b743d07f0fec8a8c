"""Which processes belong to a world, and how they end.

A process belongs to a world when its environment carries the world's mark, or when it descends from one that does.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

import psutil

from rehearsal.environment import WORLD_ID

_LOOK_EVERY_S = 0.02
_KILL_S = 10.0
"""SIGKILL needs no consent, but a process inside a system call that can't be interrupted ends only after it."""


def processes_of(world_id: str) -> frozenset[psutil.Process]:
    """All living processes of a world, without the calling one."""
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        # A zombie has no environment any more, and processes of other users can't be looked into: neither is ours.
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.environ().get(WORLD_ID) == world_id:
                found |= {process, *process.children(recursive=True)}
    return frozenset(process for process in found if lives(process) and process != psutil.Process())


def end(processes: Iterable[psutil.Process], *, grace_s: float) -> None:
    """Ask with SIGTERM, then, after `grace_s` seconds, insist with SIGKILL. Returns when they are gone.

    psutil compares creation times before it sends a signal, so a process id that has been given away is safe.
    """
    processes = tuple(processes)
    for process in processes:
        _send(process, kill=False)
    stubborn = _wait(processes, grace_s)
    for process in stubborn:
        _send(process, kill=True)
    _wait(stubborn, _KILL_S)


def _send(process: psutil.Process, *, kill: bool) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        if kill:
            process.kill()
        else:
            process.terminate()


def _wait(processes: tuple[psutil.Process, ...], seconds: float) -> tuple[psutil.Process, ...]:
    """Those that are still there after so many seconds. psutil's own `wait_procs` takes a zombie for living."""
    deadline = time.monotonic() + seconds
    while (left := tuple(process for process in processes if lives(process))) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    return left


def lives(process: psutil.Process) -> bool:
    """Whether it runs. A zombie does not, once its last thread has ended: until then its ports are open."""
    try:
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False
