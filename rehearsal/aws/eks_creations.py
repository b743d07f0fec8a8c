"""How long EKS shows that it creates something, and which creations fail.

The AWS provider really waits while virtual time stands still, so for it a state cannot end by time. It ends by being
seen: the first look after a creation shows CREATING, and each later one the result. A look costs the provider one of
its scaled waits, some 200 ms. When virtual time has passed, the creation has ended too.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Literal

from rehearsal.world import World

Kind = Literal["cluster", "nodegroup", "addon"]

# EKS's word for a cluster that it failed to create differs from that for the others.
_FAILED = {"cluster": "FAILED", "nodegroup": "CREATE_FAILED", "addon": "CREATE_FAILED"}
_REASON = {"code": "InternalFailure", "message": "The rehearsal lets this creation fail.", "resourceIds": []}


class Creations:
    """What is being created in EKS."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._failures: Counter[str] = Counter()
        self._fresh: dict[tuple[Kind, str, str], datetime] = {}

    def fail(self, name: str, count: int) -> None:
        """Let the next `count` creations of `name` fail: its kind and its own name, such as `addon/coredns`."""
        self._failures[name] += count

    def begin(self, kind: Kind, cluster: str, name: str) -> tuple[str, list[dict[str, object]]]:
        """The state that the new thing will have once it has been looked at, and its health issues."""
        self._fresh[kind, cluster, name] = self._world.now
        if self._failures[f"{kind}/{name}"] > 0:
            self._failures[f"{kind}/{name}"] -= 1
            return _FAILED[kind], [dict(_REASON)]
        return "ACTIVE", []

    def first_look(self, kind: Kind, cluster: str, name: str) -> bool:
        """Whether this is the first look since the creation, in the same instant: then EKS shows CREATING."""
        return self._fresh.pop((kind, cluster, name), None) == self._world.now
