"""What a row of the table is: how one resource type's properties and calls map to AWS's."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from rehearsal.providers.critical_path import Kind
from rehearsal.providers.protocol import UNKNOWN, Properties, contains_unknown

_GONE = re.compile(r"NotFound|NoSuchEntity")
_BUSY = re.compile(r"DependencyViolation|InUse|DeleteConflict")


@dataclass(frozen=True, kw_only=True)
class Api:
    """One AWS service in one region, called by boto3's method names."""

    client: BaseClient
    region: str

    def __call__(self, operation: str, /, **request: Any) -> Properties:
        """Raises botocore's ClientError and BotoCoreError."""
        answer: Properties = getattr(self.client, operation)(**request)
        return answer


@dataclass(frozen=True, kw_only=True)
class Field:
    """One property: Pulumi's name, AWS's name, and how they differ.

    An empty `aws` means that the row itself takes care of it.
    `form`: `plain`; `flag_text` where Pulumi has "true" for AWS's true; `json` for a policy document; `tags` where AWS
    has a list of keys and values.
    `fields`: members of a nested object, or of each object in a list.
    `replaces`: a change needs a new resource.
    `later`: not part of the creating request; the row's `complete` sets it afterwards.
    `write_only`: AWS takes it and never shows it. `read_only`: a member that only AWS's answer has.
    """

    name: str
    aws: str
    form: Literal["plain", "flag_text", "json", "tags"] = "plain"
    fields: tuple[Field, ...] = ()
    replaces: bool = False
    later: bool = False
    write_only: bool = False
    read_only: bool = False

    def normal(self, value: Any) -> Any:
        """`value` as the user wrote it, in the one spelling in which it is kept and compared."""
        return canonical_json(value) if self.form == "json" and value is not UNKNOWN else value

    def to_aws(self, value: Any) -> Any:
        """`value` as AWS takes it."""
        if isinstance(value, list):
            return [self.to_aws(item) for item in value]
        if self.fields:
            return to_aws(self.fields, value)
        if self.form == "tags":
            return tag_list(value)
        return value == "true" if self.form == "flag_text" else value

    def from_aws(self, value: Any) -> Any:
        """AWS's `value` as Pulumi has it."""
        if self.form == "json":
            return canonical_json(value)
        if self.form == "tags":
            return tags_from(value)
        if isinstance(value, list):
            return [self.from_aws(item) for item in value]
        if self.fields:
            return from_aws(self.fields, value)
        if isinstance(value, datetime):
            return value.isoformat()
        return str(value).lower() if self.form == "flag_text" else value


def same(
    name: str,
    *,
    replaces: bool = False,
    read_only: bool = False,
    write_only: bool = False,
    fields: tuple[Field, ...] = (),
) -> Field:
    """A field that AWS calls what Pulumi calls it, as in EKS."""
    return Field(name=name, aws=name, replaces=replaces, read_only=read_only, write_only=write_only, fields=fields)


def pascal(name: str, *, replaces: bool = False, later: bool = False, fields: tuple[Field, ...] = ()) -> Field:
    """A field that AWS calls by the same words in PascalCase, as in EC2."""
    return Field(name=name, aws=name[0].upper() + name[1:], replaces=replaces, later=later, fields=fields)


def to_aws(fields: Iterable[Field], values: Mapping[str, Any]) -> Properties:
    """The part of a request that `fields` describe."""
    given = [field for field in fields if field.aws and not field.read_only and values.get(field.name) is not None]
    return {field.aws: field.to_aws(values[field.name]) for field in given}


def unknown_inputs(fields: Iterable[Field], values: Mapping[str, Any], path: str = "") -> list[str]:
    """Paths of the inputs that no field carries to AWS: without a word they would have no effect."""
    by_name = {field.name: field for field in fields if not field.read_only}
    found = []
    for name, value in values.items():
        if name not in by_name:
            found.append(path + name)
        elif by_name[name].fields:
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    found += unknown_inputs(by_name[name].fields, item, f"{path}{name}.")
    return found


def from_aws(fields: Iterable[Field], answer: Mapping[str, Any]) -> Properties:
    """The properties that `fields` find in an answer."""
    return {field.name: field.from_aws(answer[field.aws]) for field in fields if answer.get(field.aws) is not None}


@dataclass(frozen=True, kw_only=True)
class Row(ABC):
    """One resource type.

    `token` is Pulumi's type, `service` boto3's name of the AWS service. `fields` are the inputs, `shown` what only AWS
    knows. `named` is the input that gets a generated name when the user gives none; `renewed` are outputs that each
    update changes. The `..._delay` name how long an operation takes (delays in constants.toml).
    `delete_first`: AWS refuses a second one beside the first.
    """

    token: str
    service: str
    fields: tuple[Field, ...]
    shown: tuple[Field, ...] = ()
    computed: tuple[str, ...] = ()
    named: str | None = None
    renewed: tuple[str, ...] = ()
    taggable: bool = True
    regional: bool = True
    delete_first: bool = False
    create_delay: str = "aws_call"
    update_delay: str = "aws_call"
    delete_delay: str = "aws_call"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs that are unknown until the resource exists."""
        return (*(field.name for field in self.shown), *self.computed)

    @property
    def known_fields(self) -> Mapping[str, Field]:
        """The inputs by name, with those that nearly every resource has."""
        region = [Field(name="region", aws="", replaces=True)] if self.regional else []
        tags = [Field(name="tags", aws="")] if self.taggable else []
        return {field.name: field for field in (*self.fields, *region, *tags)}

    @abstractmethod
    def create(self, api: Api, inputs: Properties) -> str:
        """Create it with its tags, in one call; answers its id."""

    def complete(self, api: Api, resource_id: str, inputs: Properties) -> None:
        """The calls that a new resource needs besides."""
        return

    @abstractmethod
    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        """What AWS shows of it, with `tags`; None, or a not-found error, when it is gone.

        `known` is what the stack's state holds.
        """

    @abstractmethod
    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        """Delete it."""

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        """Set the inputs `changed` (tags apart) to their values in `new`."""
        raise NotImplementedError(f"{self.token}: no call changes {', '.join(sorted(changed))}")

    def retag(self, api: Api, resource_id: str, known: Properties, put: Mapping[str, str], drop: list[str]) -> None:
        """Set and remove tags."""
        raise NotImplementedError(f"{self.token}: no call changes tags")

    def problems(self, api: Api, resource_id: str) -> tuple[str, ...]:
        """Why it does not work although it exists, in AWS's words."""
        return ()

    def delay(self, kind: Kind, inputs: Properties) -> str:
        """Name of the delay that this operation takes."""
        return {"create": self.create_delay, "update": self.update_delay, "delete": self.delete_delay}[kind]


def is_gone(error: ClientError) -> bool:
    """AWS says that the resource does not exist."""
    return _GONE.search(error_code(error)) is not None


def is_busy(error: ClientError) -> bool:
    """AWS says that something else still uses the resource."""
    return _BUSY.search(error_code(error)) is not None


def error_code(error: ClientError) -> str:
    """AWS's error code."""
    return error.response.get("Error", {}).get("Code", "")


def canonical_json(document: Any) -> str:
    """A policy document (text or parsed) in one spelling, so that white space and order of keys make no difference."""
    parsed = json.loads(document) if isinstance(document, str) else document
    return json.dumps(parsed, sort_keys=True, separators=(",", ":"))


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as EC2 and IAM write them."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def tags_from(tag_entries: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Tags from EC2's and IAM's list; names in `aws:` are AWS's own."""
    return {tag["Key"]: tag["Value"] for tag in tag_entries if not tag["Key"].startswith("aws:")}


def like(field: Field, mine: Any, theirs: Any) -> Any:
    """`theirs`, what AWS shows, reduced to what `mine`, the input as given, speaks of.

    AWS fills in defaults and answers lists in an order of its own: neither is a change. Members of an object that the
    user did not set are left out; a list with the same members stays as the user wrote it.
    """
    if isinstance(mine, dict) and isinstance(theirs, dict) and field.fields:
        members = {member.name: member for member in field.fields}
        return {name: like(members[name], item, theirs[name]) for name, item in mine.items() if name in theirs}
    if isinstance(mine, list) and isinstance(theirs, list):
        if len(mine) == len(theirs) and not equal(mine, theirs):
            theirs = [like(field, one, other) for one, other in zip(mine, theirs, strict=True)]
        return mine if equal(mine, theirs) else theirs
    return mine if equal(mine, theirs) else theirs


def equal(one: Any, other: Any) -> bool:
    """Whether two inputs mean the same to AWS: lists are sets there, and an unknown equals nothing."""
    if contains_unknown(one) or contains_unknown(other):
        return False
    return _order(one) == _order(other)


def _order(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_order(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(_order(item) for item in value)) + "]"
    return repr(value)
