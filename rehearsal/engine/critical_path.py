"""How long an engine operation took: the longest chain of dependent steps in the stack's state. Pure.

The engine starts a step as soon as everything that it depends on is there, whatever `--parallel` says, and deletes when
everything that depends on it is gone. So the chain, and with it the answer, is the same in every run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

Kind = Literal["create", "update", "delete"]


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A resource was created, updated or deleted. `delay` names how long that takes."""

    urn: str
    kind: Kind
    delay: str


@dataclass(frozen=True, kw_only=True)
class StackResource:
    """A resource in a stack's state. `needs` are the URNs that must exist before it.

    `modified` is the engine's own time of the last change; `desired_size` is that of a node group when it was created.
    """

    urn: str
    type: str
    needs: frozenset[str]
    id: str = ""
    modified: str = ""
    desired_size: int | None = None


Resources = dict[str, StackResource]


def stack_resources(checkpoint: Mapping[str, Any]) -> Resources:
    """The graph in a checkpoint, as a file backend writes it.

    A parent needs nothing of its children and a child nothing of its parent, but who needs a component needs all that
    is in it: so a component needs its children.
    """
    latest = checkpoint.get("checkpoint", {}).get("latest") or {}
    # What waits to be deleted after its replacement has the URN of that replacement.
    entries = [entry for entry in latest.get("resources") or [] if not entry.get("delete")]
    children: dict[str, set[str]] = {}
    for entry in entries:
        children.setdefault(entry.get("parent", ""), set()).add(entry["urn"])
    return {
        entry["urn"]: StackResource(
            urn=entry["urn"],
            type=entry["type"],
            needs=frozenset(_needs(entry) | (set() if entry.get("custom") else children.get(entry["urn"], set()))),
            id=entry.get("id", ""),
            modified=entry.get("modified", ""),
            desired_size=_desired_size(entry),
        )
        for entry in entries
        if entry["type"] != "pulumi:pulumi:Stack"
    }


def critical_path(
    before: Resources, after: Resources, mutations: Iterable[Mutation], duration: Callable[[str], timedelta]
) -> timedelta:
    """How long an operation took that turned the state `before` into `after`.

    `duration` gives the length of a delay by name; it is asked once a mutation, in the order of kinds and URNs, so that
    draws repeat. What was not mutated costs nothing, and so does a step that failed, which no state shows. Deletions
    come after everything else, as in the engine.
    """
    lengths: dict[bool, dict[str, timedelta]] = {False: {}, True: {}}
    for mutation in sorted(set(mutations), key=lambda one: (one.kind, one.urn)):
        steps = lengths[mutation.kind == "delete"]
        steps[mutation.urn] = steps.get(mutation.urn, timedelta()) + duration(mutation.delay)
    needs = {urn: resource.needs for urn, resource in after.items()}
    needed_by: dict[str, set[str]] = {}
    for urn, resource in before.items():
        for need in resource.needs:
            needed_by.setdefault(need, set()).add(urn)
    return _longest(lengths[False], needs) + _longest(lengths[True], needed_by)


def _longest(lengths: Mapping[str, timedelta], earlier: Mapping[str, Iterable[str]]) -> timedelta:
    @functools.cache
    def finished(urn: str) -> timedelta:
        waits = (finished(other) for other in earlier.get(urn, ()))
        return max(waits, default=timedelta()) + lengths.get(urn, timedelta())

    return max((finished(urn) for urn in lengths), default=timedelta())


def _desired_size(entry: Mapping[str, Any]) -> int | None:
    sizes = (entry.get("inputs") or {}).get("scalingConfig")
    return int(sizes["desiredSize"]) if isinstance(sizes, Mapping) and "desiredSize" in sizes else None


def _needs(entry: Mapping[str, Any]) -> set[str]:
    by_property = entry.get("propertyDependencies") or {}
    needs = {*(entry.get("dependencies") or ()), *(urn for urns in by_property.values() for urn in urns or ())}
    if entry.get("provider"):
        # A provider reference is the provider's URN and id.
        needs.add(entry["provider"].rsplit("::", 1)[0])
    return needs - {entry["urn"]}
