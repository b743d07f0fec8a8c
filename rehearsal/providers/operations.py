"""What each engine operation changed, and the jump of virtual time when it has ended."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from rehearsal.providers.critical_path import Mutation, Resources, critical_path, stack_resources
from rehearsal.world import World

_ANSWER_TIMEOUT_S = 1.0

# Resources of other providers that take time; they are not seen here, but in the state.
_DELAYS_OF_OTHERS = {"kubernetes:helm.sh/v3:Release": "helm_release"}

Stack = tuple[str, str]


class OperationLog:
    """The mutations of every engine operation since the last settlement.

    An operation is known by the address of its engine, which the engine gives when it attaches and which answers for as
    long as the operation runs. `before_operation` is called when a new engine attaches: whoever owns the world settles
    there, so that two operations in a row never look like one.
    """

    def __init__(self) -> None:
        self.before_operation: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._mutations: dict[str, list[Mutation]] = {}
        self._before: dict[Path, Resources] = {}

    def attached(self, engine: str) -> None:
        """An engine begins to use a provider."""
        with self._lock:
            new = engine not in self._mutations
        if new:
            self.before_operation()
            with self._lock:
                self._mutations.setdefault(engine, [])

    def record(self, engine: str, mutation: Mutation) -> None:
        """The engine at `engine` changed something."""
        with self._lock:
            self._mutations.setdefault(engine, []).append(mutation)

    def running(self) -> bool:
        """Whether an engine that has attached still runs."""
        with self._lock:
            engines = list(self._mutations)
        return any(_answers(engine) for engine in engines)

    def settle(self, world: World, backends: Iterable[Path], operation_ended: Callable[[], None]) -> timedelta:
        """Let the world jump by what the operations took that have ended since the last call.

        `backends` are folders of file backends, whose states tell what depends on what. `operation_ended` is called
        after the jump. Does nothing, and answers zero, when nothing has changed; what still runs is left alone.
        """
        with self._settling:
            mutations = self._ended()
            if mutations is None:
                return timedelta()
            took = timedelta()
            changed = bool(mutations)
            for file in self._states(backends):
                after = _read(file)
                before = self._before.get(file, {})
                mine = [one for one in mutations if one.stack == _stack(file)] + list(_by_others(before, after))
                changed = changed or bool(mine)
                took += critical_path(before, after, mine, world.draw)
                self._before[file] = after
            if changed:
                world.advance(world.now + took)
                operation_ended()
            return took

    def _ended(self) -> list[Mutation] | None:
        """The mutations of engines that are gone; None when no engine has gone."""
        with self._lock:
            engines = list(self._mutations)
        gone = [engine for engine in engines if not _answers(engine)]
        with self._lock:
            ended = [mutation for engine in gone for mutation in self._mutations.pop(engine)]
        return ended if gone else None

    def _states(self, backends: Iterable[Path]) -> list[Path]:
        """State files, with those that are gone since; without those that a running engine writes."""
        with self._lock:
            busy = {mutation.stack for mutations in self._mutations.values() for mutation in mutations}
        found = {file for backend in backends for file in backend.glob(".pulumi/stacks/*/*.json")}
        return sorted(file for file in found | self._before.keys() if _stack(file) not in busy)


def _by_others(before: Resources, after: Resources) -> Iterator[Mutation]:
    for urns, resources, kind in (
        (after.keys() - before.keys(), after, "create"),
        (before.keys() - after.keys(), before, "delete"),
    ):
        for urn in urns:
            delay = _DELAYS_OF_OTHERS.get(resources[urn].type)
            if delay is not None:
                yield Mutation(urn=urn, kind="create" if kind == "create" else "delete", delay=delay)


def _stack(file: Path) -> Stack:
    return file.parent.name, file.stem


def _read(file: Path) -> Resources:
    """The resources in a state file; none when the stack has been removed."""
    try:
        return stack_resources(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def _answers(engine: str) -> bool:
    host, _, port = engine.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWER_TIMEOUT_S):
            return True
    except OSError:
        return False
