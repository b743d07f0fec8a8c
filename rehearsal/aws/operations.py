"""How an operation is added to moto: one public method, named after it, in the class of its service.

The method takes a `Request` and returns a plain dict (or an object of moto's), which moto serialises from botocore's
model; it refuses with `AwsError`. An operation that moto already has is replaced by ours.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from moto.core.exceptions import ServiceException
from moto.core.parse import XFormedDict
from moto.core.responses import ActionResult, BaseResponse

from rehearsal.delays import Refusal

Undo = Callable[[], None]
ResponseMethod = Callable[[BaseResponse], object]


class AwsError(ServiceException):
    """An answer of AWS that refuses the request."""


def refuse(refusal: Refusal, **facts: object) -> AwsError:
    """The error to raise for a refusal of the constants, with its {names} filled in."""
    return AwsError(refusal.code, refusal.message.format(**facts))


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call as botocore's model reads it: parameters by the names that boto3 uses, instants naive and in UTC."""

    service: str
    action: str
    region: str
    account_id: str
    parameters: Mapping[str, object]

    def text(self, name: str) -> str:
        """A string; empty when it was not given."""
        return str(self.parameters.get(name) or "")

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty when it was not given."""
        return [str(item) for item in cast("Sequence[object]", self.parameters.get(name) or ())]

    def number(self, name: str) -> int | None:
        """An integer, if it was given."""
        value = self.parameters.get(name)
        return None if value is None else int(str(value))

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean."""
        value = self.parameters.get(name)
        return default if value is None else bool(value)

    def instant(self, name: str) -> datetime | None:
        """An aware instant, if it was given."""
        value = self.parameters.get(name)
        return value.replace(tzinfo=UTC) if isinstance(value, datetime) else None

    def record(self, name: str) -> dict[str, object]:
        """A structure or map; empty when it was not given."""
        return dict(cast("Mapping[str, object]", self.parameters.get(name) or {}))

    def records(self, name: str) -> list[dict[str, object]]:
        """A list of structures; empty when it was not given."""
        return [dict(item) for item in cast("Sequence[Mapping[str, object]]", self.parameters.get(name) or ())]

    def filters(self) -> dict[str, list[str]]:
        """EC2's `Filters` by name."""
        found = self.records("Filters")
        return {str(item["Name"]): list(cast("Sequence[str]", item.get("Values") or ())) for item in found}

    def tags(self, resource_type: str) -> dict[str, str]:
        """EC2's `TagSpecifications` for a resource type."""
        specifications = (item for item in self.records("TagSpecifications") if item["ResourceType"] == resource_type)
        tags = (tag for item in specifications for tag in cast("Sequence[Mapping[str, str]]", item.get("Tags") or ()))
        return {tag["Key"]: tag.get("Value", "") for tag in tags}


def read(response: BaseResponse) -> Request:
    """The request that a response of moto's answers."""
    service = response.boto3_service_name
    action = response._get_action() or "Unknown"
    parameters: Mapping[str, object] = {}
    # S3 carries whole files in its bodies and an unknown path has no model to read it by.
    if service != "s3" and action != "Unknown":
        if not response.automated_parameter_parsing:
            response.parse_parameters(response.normalized_request)
        parameters = _plain(response.params)
    return Request(
        service=service,
        action=action,
        region=response.region,
        account_id=response.current_account,
        parameters=parameters,
    )


def serve(operations: object, response_class: type[BaseResponse]) -> Undo:
    """Let moto's `response_class` answer with each public method of `operations`; returns how to take that back."""

    def answering(operation: Callable[[Request], object]) -> ResponseMethod:
        return lambda response: ActionResult(operation(read(response)))

    return _extend(response_class, {name: answering(method) for name, method in _public(operations)})


def guard(guards: object, response_class: type[BaseResponse]) -> Undo:
    """Let each public method of `guards` refuse before moto's own method of that name answers."""

    def guarded(check: Callable[[Request], None], moto_method: ResponseMethod) -> ResponseMethod:
        def answer(response: BaseResponse) -> object:
            check(read(response))
            return moto_method(response)

        return answer

    methods = {name: guarded(method, getattr(response_class, name)) for name, method in _public(guards)}
    return _extend(response_class, methods)


def correct(corrections: object, response_class: type[BaseResponse]) -> Undo:
    """Let each public method of `corrections` change what moto's method of that name has made, before it is sent."""

    def corrected(change: Callable[[Request], None], moto_method: ResponseMethod) -> ResponseMethod:
        def answer(response: BaseResponse) -> object:
            made = moto_method(response)
            change(read(response))
            return made

        return answer

    methods = {name: corrected(method, getattr(response_class, name)) for name, method in _public(corrections)}
    return _extend(response_class, methods)


def _public(operations: object) -> list[tuple[str, Callable[[Request], None]]]:
    return [item for item in inspect.getmembers(operations, inspect.ismethod) if not item[0].startswith("_")]


def _extend(response_class: type[BaseResponse], methods: Mapping[str, ResponseMethod]) -> Undo:
    own = {name: vars(response_class).get(name) for name in methods}
    for name, method in methods.items():
        setattr(response_class, name, method)

    def undo() -> None:
        for name, original in own.items():
            if original is None:
                delattr(response_class, name)
            else:
                setattr(response_class, name, original)

    return undo


def _plain(parameters: object) -> dict[str, object]:
    return cast("dict[str, object]", _unwrap(parameters))


def _unwrap(value: object) -> object:
    if isinstance(value, XFormedDict):
        return _unwrap(value.original_dict())
    if isinstance(value, Mapping):
        return {key: _unwrap(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unwrap(item) for item in value]
    return value
