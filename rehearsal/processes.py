"""Which processes belong to a world, and how they end.

A process belongs to a world when its environment carries the world's mark, or when it descends from one that does.
"""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from rehearsal.environment import WORLD_ID


def processes_of(world_id: str) -> frozenset[psutil.Process]:
    """All living processes of a world, without the calling one. Processes that can't be looked into are not ours."""
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        try:
            if process.environ().get(WORLD_ID) == world_id:
                found |= {process, *process.children(recursive=True)}
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return frozenset(process for process in found if process != psutil.Process())


def end(processes: Iterable[psutil.Process], *, grace_s: float) -> None:
    """Ask with SIGTERM, then, after `grace_s` seconds, insist with SIGKILL. Returns when they are gone.

    psutil compares creation times before it sends a signal, so a process id that has been given away is safe.
    """
    processes = tuple(processes)
    for process in processes:
        _send(process, kill=grace_s == 0)
    _, stubborn = psutil.wait_procs(processes, timeout=grace_s)
    for process in stubborn:
        _send(process, kill=True)
    psutil.wait_procs(stubborn, timeout=10)


def _send(process: psutil.Process, *, kill: bool) -> None:
    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        pass
