"""Inputs against inputs: names, differences, and what a resource will look like before it exists."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pulumi.runtime.proto import provider_pb2

from rehearsal.providers.protocol import UNKNOWN, Properties
from rehearsal.providers.resources.row import Field, Row, equal, like

_DEFAULTS = "__defaults"
"""Lists the inputs that the provider chose and not the user, as the Terraform bridge writes it."""

_RANDOM_DIGITS = 7
"""pulumi-aws makes names of the resource's name, a hyphen and seven hexadecimal digits."""


def autoname(named: str, new: Properties, old: Mapping[str, Any], request: provider_pb2.CheckRequest) -> Properties:
    """`new` with a name: the user's, else the one it already has, else the engine's proposal, else one of our own.

    Our own comes from the engine's random seed alone, so that preview and update agree.
    """
    if named in new:
        return new
    proposed = request.autonaming.proposed_name
    if named in old.get(_DEFAULTS, ()):
        name = old[named]
    elif request.autonaming.mode == provider_pb2.CheckRequest.AutonamingOptions.DISABLE:
        return new
    elif proposed:
        name = proposed
    else:
        # An engine older than the seed sends none: the URN alone still gives the same name twice.
        digits = hashlib.sha256(request.randomSeed + request.urn.encode()).hexdigest()[:_RANDOM_DIGITS]
        name = f"{request.urn.rsplit('::', 1)[-1]}-{digits}"
    return new | {named: name, _DEFAULTS: [named]}


def compare(row: Row, old: Properties, new: Properties) -> provider_pb2.DiffResponse:
    """What has to happen for a resource with the inputs `old` to have the inputs `new`."""
    detailed = dict(_differences(row.known_fields, _without_own(old), _without_own(new)))
    top = sorted({path.split(".")[0] for path in detailed})
    replacing = {path for path, kind in detailed.items() if kind % 2}
    # Two resources of one name cannot exist side by side; a generated name is generated anew for the second.
    fixed_name = row.named is not None and row.named not in new.get(_DEFAULTS, ())
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if top else provider_pb2.DiffResponse.DIFF_NONE,
        diffs=top,
        replaces=sorted({path.split(".")[0] for path in replacing}),
        detailedDiff={
            path: provider_pb2.PropertyDiff(kind=cast("provider_pb2.PropertyDiff.Kind.ValueType", kind), inputDiff=True)
            for path, kind in sorted(detailed.items())
        },
        hasDetailedDiff=True,
        deleteBeforeReplace=bool(replacing) and (row.delete_first or fixed_name),
    )


def changed_inputs(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Names of the inputs that differ."""
    mine, theirs = _without_own(old), _without_own(new)
    return {name for name in mine.keys() | theirs.keys() if not equal(mine.get(name), theirs.get(name))}


def observed_inputs(row: Row, inputs: Properties, outputs: Properties) -> Properties:
    """`inputs` as AWS has them now; of a resource that is imported (no inputs yet), all that AWS shows.

    What AWS never shows stays as it was given.
    """
    fields = row.known_fields
    if not inputs:
        return {name: value for name, value in outputs.items() if name in fields and value not in ({}, [])}
    observed = {}
    for name, mine in inputs.items():
        if name not in fields or fields[name].write_only or name == "region":
            observed[name] = mine
        elif name in outputs:
            observed[name] = like(fields[name], mine, outputs[name])
    if outputs.get("tags") and "tags" in fields:
        observed["tags"] = outputs["tags"]
    return observed


def previewed(row: Row, inputs: Properties) -> Properties:
    """The outputs of a resource that does not exist yet: its inputs, and unknown whatever only AWS can tell."""
    foreseen = {
        name: _with_unknown_members(row.known_fields[name], value) for name, value in _without_own(inputs).items()
    }
    return dict.fromkeys(row.outputs, UNKNOWN) | foreseen


def _with_unknown_members(field: Field, value: Any) -> Any:
    if not isinstance(value, dict) or not field.fields:
        return value
    return value | {member.name: UNKNOWN for member in field.fields if member.read_only}


def _differences(fields: Mapping[str, Field], old: Properties, new: Properties) -> Iterator[tuple[str, int]]:
    """Path and kind (`PropertyDiff.Kind`; a replacing kind is one more than its plain one) of each difference."""
    for name in old.keys() | new.keys():
        field = fields[name]
        mine, theirs = old.get(name), new.get(name)
        if equal(mine, theirs):
            continue
        if field.fields and isinstance(mine, dict) and isinstance(theirs, dict):
            members = {member.name: member for member in field.fields}
            for path, kind in _differences(members, mine, theirs):
                yield f"{name}.{path}", kind | int(field.replaces)
            continue
        yield name, _kind(mine, theirs) + int(field.replaces)


def _kind(old: Any, new: Any) -> int:
    if old is None:
        return provider_pb2.PropertyDiff.ADD
    return provider_pb2.PropertyDiff.DELETE if new is None else provider_pb2.PropertyDiff.UPDATE


def _without_own(properties: Mapping[str, Any]) -> Properties:
    return {name: value for name, value in properties.items() if name != _DEFAULTS}
