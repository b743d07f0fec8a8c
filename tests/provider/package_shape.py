"""The shape of a Pulumi package, read in two ways: from a provider's schema and from an installed Python SDK.

A shape is a flat mapping such as `inputs.scalingConfig.minSize` -> `integer!`, where `!` means required, `[]` a list
and `{}` a map. Two packages agree when their shapes are equal.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType, UnionType
from typing import Any

import pulumi

Shape = dict[str, str]
Json = Mapping[str, Any]

_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number"}
# Nested deeper than any type that the program uses; some types of AWS name themselves.
_DEEPEST = 6


def of_schema(schema: Json, token: str) -> Shape:
    """The shape of a resource or function in a schema."""
    if token in schema["functions"]:
        function = schema["functions"][token]
        # An SDK's function has a default for every argument.
        sides: dict[str, tuple[Json, Sequence[str]]] = {
            "inputs": (function.get("inputs", {}).get("properties", {}), ()),
            "outputs": (function["outputs"]["properties"], ()),
        }
    else:
        resource = schema["resources"][token]
        sides = {"inputs": (resource.get("inputProperties", {}), resource.get("requiredInputs", ())),
                 "outputs": (resource["properties"], ())}  # fmt: skip
    # An SDK does not say which outputs are required: it only knows their types.
    return {
        path: kind
        for side, (properties, required) in sides.items()
        for path, kind in _schema_members(schema, side, properties, set(required) if side == "inputs" else set(), 0)
    }


def _schema_members(
    schema: Json, path: str, properties: Json, required: set[str], depth: int
) -> Iterator[tuple[str, str]]:
    for name, spec in properties.items():
        below = f"{path}.{name}"
        kind, nested = _schema_kind(schema, spec)
        yield below, kind + ("!" if name in required else "")
        if nested is not None and depth < _DEEPEST:
            is_input = path.startswith("inputs")
            wanted = set(nested.get("required", ())) if is_input else set()
            yield from _schema_members(schema, below, nested["properties"], wanted, depth + 1)


def _schema_kind(schema: Json, spec: Json) -> tuple[str, Json | None]:
    if "oneOf" in spec:
        spec = spec["oneOf"][0]
    if "$ref" in spec:
        nested = schema["types"][spec["$ref"].removeprefix("#/types/")]
        return ("object", nested) if nested.get("type") == "object" else (nested["type"], None)
    match spec["type"]:
        case "array":
            kind, nested = _schema_kind(schema, spec["items"])
            return f"[]{kind}", nested
        case "object":
            kind, nested = _schema_kind(schema, spec.get("additionalProperties", {"type": "string"}))
            return f"{{}}{kind}", nested
    return spec["type"], None


def of_package(package: str, token: str) -> Shape:
    """The shape of a resource or function in the installed SDK `package`, such as `pulumi_aws`.

    Raises AttributeError when the package has no such type.
    """
    _, folder, name = token.split(":")
    submodule = folder.split("/")[0]
    module = importlib.import_module(package if submodule == "index" else f"{package}.{submodule}")
    if name[0].isupper():
        resource = getattr(module, name)
        inputs, outputs = getattr(module, f"{name}Args"), resource
    else:
        source = inspect.getmodule(inspect.unwrap(getattr(module, _snake(name))))
        assert source is not None
        outputs = getattr(source, f"{name[0].upper()}{name[1:]}Result")
        function = vars(source)[_snake(name)]
        return {
            **dict(_arguments(source, outputs, function)),
            **dict(_members("outputs", outputs, required=set(), depth=0)),
        }
    return {
        **dict(_members("inputs", inputs, required=_required(inputs), depth=0)),
        **dict(_members("outputs", outputs, required=set(), depth=0, skip=_OF_EVERY_RESOURCE)),
    }


_OF_EVERY_RESOURCE = {name for name, _ in inspect.getmembers(pulumi.CustomResource)}


def _arguments(source: ModuleType, outputs: type, function: Any) -> Iterator[tuple[str, str]]:
    """A function's arguments, whose names in Pulumi are those of the results of the same name, or their own."""
    names = {python: pulumi_name for python, pulumi_name, _ in _getters(outputs)}
    for argument in inspect.signature(function).parameters.values():
        if argument.name == "opts":
            continue
        kind, nested = _package_kind(argument.annotation, vars(source))
        path = f"inputs.{names.get(argument.name, _camel(argument.name))}"
        yield path, kind
        if nested is not None:
            yield from _members(path, nested, required=_required(nested), depth=1)


def _members(
    path: str,
    cls: type,
    *,
    required: set[str],
    depth: int,
    skip: set[str] = frozenset(),  # type: ignore[assignment]
) -> Iterator[tuple[str, str]]:
    for python, name, getter in _getters(cls):
        if python in skip:
            continue
        below = f"{path}.{name}"
        source = inspect.getmodule(cls)
        kind, nested = _package_kind(getter.__annotations__["return"], vars(source))
        yield below, kind + ("!" if python in required else "")
        if nested is not None and depth < _DEEPEST:
            wanted = _required(nested) if path.startswith("inputs") else set()
            yield from _members(below, nested, required=wanted, depth=depth + 1)


def _getters(cls: type) -> Iterator[tuple[str, str, Any]]:
    """Python name, Pulumi name and getter of each property."""
    for python, member in inspect.getmembers(cls, lambda one: isinstance(one, property)):
        if "return" in getattr(member.fget, "__annotations__", {}):
            yield python, getattr(member.fget, "_pulumi_name", _camel(python)), member.fget


def _required(cls: type) -> set[str]:
    """The arguments without a default."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return {one.name for one in parameters if one.default is inspect.Parameter.empty}


def _package_kind(annotation: Any, names: Mapping[str, Any]) -> tuple[str, type | None]:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return _package_kind(eval(annotation, dict(names)), names)  # the SDK's own text
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (pulumi.Output,):
        return _package_kind(arguments[0], names)
    if origin in (typing.Union, UnionType):
        # Input[T] is T | Awaitable[T] | Output[T], Optional[T] is T | None; the first of several shapes counts.
        return _package_kind(arguments[0], names)
    if origin in (Sequence, list):
        kind, nested = _package_kind(arguments[0], names)
        return f"[]{kind}", nested
    if origin in (Mapping, dict):
        kind, nested = _package_kind(arguments[1], names)
        return f"{{}}{kind}", nested
    if annotation in _SCALARS:
        return _SCALARS[annotation], None
    if isinstance(annotation, type) and issubclass(annotation, str):
        return "string", None
    return "object", annotation


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
