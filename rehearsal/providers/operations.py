"""What engine operations have changed, and the jump of virtual time when they have ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import psutil

from rehearsal.providers.critical_path import Mutation, Resources, critical_path, stack_resources
from rehearsal.world import World

# Resources of other providers that take time; they are not seen here, but in the stacks' states.
_DELAYS_OF_OTHERS = {"kubernetes:helm.sh/v3:Release": "helm_release"}


class OperationLog:
    """The mutations of engine operations since the last settlement, and the engines that may still make more.

    `before_operation` is called when an engine attaches that was not known yet: whoever owns the world settles there,
    so that two operations in a row never look like one.
    """

    def __init__(self, draw: Callable[[str], timedelta]) -> None:
        """`draw` gives the length of a delay by its name in constants.toml (`World.draw`)."""
        self.before_operation: Callable[[], object] = lambda: None
        self._draw = draw
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._engines: dict[str, psutil.Process | None] = {}
        self._mutations: list[Mutation] = []
        self._before: dict[Path, Resources] = {}

    def attached(self, engine: str) -> None:
        """An engine, which listens at the address `engine`, begins to use a provider."""
        with self._lock:
            known = engine in self._engines
        if known:
            return
        process = _listener(engine)
        self.before_operation()
        with self._lock:
            self._engines[engine] = process

    def record(self, mutation: Mutation) -> None:
        """An engine has changed something."""
        with self._lock:
            self._mutations.append(mutation)

    def running(self) -> bool:
        """Whether an engine that has attached still runs."""
        with self._lock:
            self._engines = {address: process for address, process in self._engines.items() if _runs(process)}
            return bool(self._engines)

    def settle(self, world: World, backends: Iterable[Path], operation_ended: Callable[[], None]) -> timedelta:
        """Let the world jump by what the operations took that have ended since the last call.

        `backends` are folders of file backends, whose states tell what depends on what. `operation_ended` is called
        after the jump. Does nothing, and answers zero, while an engine runs (virtual time stands still then) and when
        nothing has changed.
        """
        with self._settling:
            if self.running():
                return timedelta()
            with self._lock:
                mutations, self._mutations = self._mutations, []
            took, changed = timedelta(), bool(mutations)
            for file in self._state_files(backends):
                before, after = self._before.get(file, {}), _read(file)
                mine = [one for one in mutations if one.stack == (file.parent.name, file.stem)]
                mine += _by_others(before, after)
                took += critical_path(before, after, mine, self._draw)
                changed = changed or bool(mine)
                self._before[file] = after
            if changed:
                world.jump(took)
                operation_ended()
            return took

    def _state_files(self, backends: Iterable[Path]) -> list[Path]:
        """All that exist, and those that existed at the last settlement."""
        found = {file for backend in backends for file in backend.glob(".pulumi/stacks/*/*.json")}
        return sorted(found | self._before.keys())


def _by_others(before: Resources, after: Resources) -> Iterator[Mutation]:
    for urn in before.keys() ^ after.keys():
        delay = _DELAYS_OF_OTHERS.get((before | after)[urn].type)
        if delay is not None:
            yield Mutation(urn=urn, kind="create" if urn in after else "delete", delay=delay)


def _read(file: Path) -> Resources:
    """The resources in a state file; none when the stack has been removed."""
    try:
        return stack_resources(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def _listener(address: str) -> psutil.Process | None:
    """The process that listens at `address`, if it can be seen."""
    port = int(address.rpartition(":")[2] or 0)
    for connection in psutil.net_connections("tcp"):
        listens = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        if listens and connection.pid is not None:
            try:
                return psutil.Process(connection.pid)
            except psutil.NoSuchProcess:
                return None
    return None


def _runs(process: psutil.Process | None) -> bool:
    try:
        return process is not None and process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
