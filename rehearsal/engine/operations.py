"""Which engine operations run, and the jump of virtual time when they have ended.

An engine is seen by its AWS provider's first request to the simulated AWS. What the operation changed is the difference
between the stack's state before and after it. So nothing in the engine or in a provider has to take part.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import psutil

from rehearsal.engine.critical_path import Kind, Mutation, Resources, StackResource, critical_path, stack_resources
from rehearsal.world import World

_PROVIDER = "pulumi-resource-aws"
_ENDPOINT = "AWS_ENDPOINT_URL"

# Resource types whose creation or deletion takes longer than a call. The names are those of delays in constants.toml,
# less their `_create` and `_delete`.
_SLOW_TYPES = {
    "aws:eks/cluster:Cluster": "eks_cluster",
    "aws:eks/nodeGroup:NodeGroup": "node_group",
    "aws:eks/addon:Addon": "eks_addon",
    "aws:ec2/natGateway:NatGateway": "nat_gateway",
}
_RELEASE = "kubernetes:helm.sh/v3:Release"


class Operations:
    """The engine operations of one world.

    `before_operation` is called when a new engine is seen: whoever owns the world settles there, so that two operations
    in a row never look like one.
    """

    def __init__(self, endpoint_url: str, draw: Callable[[str], timedelta]) -> None:
        """`endpoint_url` is the simulated AWS; `draw` gives the length of a delay of constants.toml (`World.draw`)."""
        self.before_operation: Callable[[], object] = lambda: None
        self._endpoint_url = endpoint_url
        self._draw = draw
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._connections: set[str] = set()
        self._processes: set[psutil.Process] = set()
        self._unsettled = False
        self._before: dict[Path, Resources] = {}

    def request(self, connection: str) -> None:
        """A Pulumi provider sends a request over `connection` (the client's port): look for a new engine."""
        with self._lock:
            if connection in self._connections:
                return
            self._connections.add(connection)
            new = {one for one in self._clients() if one not in self._processes}
        if not new:
            return
        self.before_operation()
        with self._lock:
            self._processes |= new
            self._unsettled = True

    def running(self) -> bool:
        """Whether an engine or a provider that has been seen still runs."""
        with self._lock:
            self._processes = {process for process in self._processes if _runs(process)}
            if not self._processes:
                # The next engine may get a port that an earlier one had.
                self._connections.clear()
            return bool(self._processes)

    def settle(self, world: World, backends: Iterable[Path], operation_ended: Callable[[], None]) -> timedelta:
        """Let the world jump by what the operations took that have ended since the last call.

        `backends` are folders of file backends, whose states tell what depends on what. `operation_ended` is called
        after the jump. Does nothing, and answers zero, while an engine runs (virtual time stands still then) and when
        no operation has ended.
        """
        with self._settling:
            if self.running():
                return timedelta()
            with self._lock:
                ended, self._unsettled = self._unsettled, False
            took, changed = timedelta(), ended
            for file in self._state_files(backends):
                before, after = self._before.get(file, {}), _read(file)
                mutations = list(_mutations(before, after))
                took += critical_path(before, after, mutations, self._draw)
                changed = changed or bool(mutations)
                self._before[file] = after
            if changed:
                world.jump(took)
                operation_ended()
            return took

    def _clients(self) -> Iterator[psutil.Process]:
        """The AWS providers that use this simulated AWS, and their engines.

        A provider whose engine was killed works on for a while: it counts as long as it lives.
        """
        for process in psutil.process_iter():
            try:
                if process.name()[:15] != _PROVIDER[:15] or process.environ().get(_ENDPOINT) != self._endpoint_url:
                    continue
                yield process
                engine = process.parent()
                if engine is not None and engine.name() == "pulumi":
                    yield engine
            except psutil.Error:
                # It has just ended, or it is another user's.
                continue

    def _state_files(self, backends: Iterable[Path]) -> list[Path]:
        """All that exist, and those that existed at the last settlement."""
        found = {file for backend in backends for file in backend.glob(".pulumi/stacks/*/*.json")}
        return sorted(found | self._before.keys())


def _mutations(before: Resources, after: Resources) -> Iterator[Mutation]:
    """What an operation did, from the states around it. A replacement is a creation and a deletion."""
    for urn in before.keys() | after.keys():
        old, new = before.get(urn), after.get(urn)
        replaced = old is not None and new is not None and old.id != new.id
        if new is not None and (old is None or replaced):
            yield from _mutation(new, "create")
        if old is not None and (new is None or replaced):
            yield from _mutation(old, "delete")
        if old is not None and new is not None and not replaced and old.modified != new.modified:
            yield from _mutation(new, "update")


def _mutation(resource: StackResource, kind: Kind) -> Iterator[Mutation]:
    delay = _delay(resource, kind)
    if delay is not None:
        yield Mutation(urn=resource.urn, kind=kind, delay=delay)


def _delay(resource: StackResource, kind: Kind) -> str | None:
    """The name of the delay that a step takes; None for what takes no time."""
    if resource.type == _RELEASE:
        return "helm_release"
    if not resource.type.startswith("aws:"):
        return None
    slow = _SLOW_TYPES.get(resource.type)
    if slow is None or kind == "update":
        return "aws_call"
    if (slow, kind) == ("node_group", "create") and resource.desired_size == 0:
        return "node_group_create_empty"
    return f"{slow}_{kind}"


def _read(file: Path) -> Resources:
    """The resources in a state file; none when the stack has been removed."""
    try:
        return stack_resources(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
