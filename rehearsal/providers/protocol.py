"""Values and errors as Pulumi's engine and its providers exchange them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import grpc  # type: ignore[import-untyped]
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import errors_pb2, provider_pb2, status_pb2

Properties = dict[str, Any]
"""Properties of a resource as plain values, under Pulumi's camelCase names (or AWS's, where AWS answers)."""

# Signatures of the Pulumi resource model: pulumi/pulumi, sdk/go/common/resource/properties.go and sdk/.../sig.
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

# An engine asks for as many resources at once as `--parallel` says; more than this would only queue in AWS.
_WORKERS = 64


class Unknown:
    """A value that no one knows before the resource it comes from exists. There is one: UNKNOWN."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


class Refused(Exception):
    """A request that the provider does not carry out; the message is one sentence for the person at the terminal."""


class Unhealthy(Exception):
    """The resource exists, but AWS says it does not work: it belongs into the state, and the operation must fail."""

    def __init__(self, resource_id: str, outputs: Wire, inputs: Wire, reasons: tuple[str, ...]) -> None:
        super().__init__("; ".join(reasons))
        self.resource_id = resource_id
        self.outputs = outputs
        self.inputs = inputs
        self.reasons = reasons


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Properties and the names of those that are secret.

    A property that holds a secret anywhere inside counts as secret as a whole: that shows less, never more.
    """

    values: Properties
    secret: frozenset[str] = frozenset()

    @staticmethod
    def decode(struct: struct_pb2.Struct) -> Wire:
        """From the engine. Nulls are left out: Pulumi and AWS both take them for absent."""
        values: Properties = {}
        secret = set()
        for name, value in struct.fields.items():
            secrets: list[str] = []
            plain = _plain(value, secrets)
            if plain is not None:
                values[name] = plain
                if secrets:
                    secret.add(name)
        return Wire(values=values, secret=frozenset(secret))

    def encode(self) -> struct_pb2.Struct:
        """To the engine."""
        fields = {name: _message(value) for name, value in self.values.items() if value is not None}
        return struct_pb2.Struct(
            fields={name: _secret(field) if name in self.secret else field for name, field in fields.items()}
        )

    def __or__(self, other: Wire) -> Wire:
        """Both, as for dictionaries; what is secret in one is secret."""
        return Wire(values=self.values | other.values, secret=self.secret | other.secret)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the properties that are not wholly known."""
        return tuple(name for name, value in self.values.items() if contains_unknown(value))


def contains_unknown(value: object) -> bool:
    """Whether `value` is unknown or holds something unknown."""
    if isinstance(value, Mapping):
        return any(contains_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(contains_unknown(item) for item in value)
    return value is UNKNOWN


def abort(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End a request with `error`'s own text, so that the terminal shows what AWS said and nothing around it."""
    if isinstance(error, Unhealthy):
        # Without this detail the engine would record the resource as fine, and the next `up` would say `same`.
        detail = provider_pb2.ErrorResourceInitFailed(
            id=error.resource_id, properties=error.outputs.encode(), inputs=error.inputs.encode(), reasons=error.reasons
        )
        _add_detail(context, str(error), detail)
    context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise AssertionError("abort always raises")


def _add_detail(
    context: grpc.ServicerContext,
    message: str,
    detail: provider_pb2.ErrorResourceInitFailed | errors_pb2.InputPropertiesError,
) -> None:
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=message)
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))


class Server:
    """A gRPC server on a free port of 127.0.0.1, with one thread a request."""

    def __init__(self, register: Callable[[grpc.Server], None]) -> None:
        self._pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="provider")
        self._server = grpc.server(self._pool)
        register(self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def stop(self) -> None:
        """End at once; requests in progress fail."""
        stopped: threading.Event = self._server.stop(grace=None)
        stopped.wait(timeout=5)
        self._pool.shutdown()


def _plain(value: struct_pb2.Value, secrets: list[str]) -> Any:
    """The value without its marks; each secret in it leaves its signature in `secrets`."""
    match value.WhichOneof("kind"):
        case "bool_value":
            return value.bool_value
        case "number_value":
            # The wire knows doubles only; AWS and boto3 want whole numbers as int.
            return int(value.number_value) if value.number_value.is_integer() else value.number_value
        case "string_value":
            return UNKNOWN if value.string_value == _UNKNOWN_TEXT else value.string_value
        case "list_value":
            return [_plain(item, secrets) for item in value.list_value.values]
        case "struct_value":
            return _plain_object(value.struct_value.fields, secrets)
    return None


def _plain_object(fields: Mapping[str, struct_pb2.Value], secrets: list[str]) -> Any:
    signature = fields[_SIGNATURE].string_value if _SIGNATURE in fields else None
    if signature is None:
        members = {name: _plain(item, secrets) for name, item in fields.items()}
        return {name: item for name, item in members.items() if item is not None}
    if signature == _SECRET or (signature == _OUTPUT and "secret" in fields and fields["secret"].bool_value):
        secrets.append(signature)
    elif signature != _OUTPUT:
        raise Refused(f"a value with the signature {signature} (an asset, an archive or a resource) is not simulated")
    return _plain(fields["value"], secrets) if "value" in fields else UNKNOWN


def _message(value: Any) -> struct_pb2.Value:
    match value:
        case Unknown():
            return struct_pb2.Value(string_value=_UNKNOWN_TEXT)
        case bool():
            return struct_pb2.Value(bool_value=value)
        case int() | float():
            return struct_pb2.Value(number_value=value)
        case str():
            return struct_pb2.Value(string_value=value)
        case list() | tuple():
            return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_message(item) for item in value]))
        case Mapping():
            fields = {name: _message(item) for name, item in value.items() if item is not None}
            return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=fields))
        case None:
            return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    raise TypeError(f"no property can hold {value!r}")


def _secret(value: struct_pb2.Value) -> struct_pb2.Value:
    fields = {_SIGNATURE: struct_pb2.Value(string_value=_SECRET), "value": value}
    return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=fields))
