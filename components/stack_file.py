"""The keys of a stack file, each judged by itself, with the remedy for each."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

AnyAddress = Literal["I accept that anyone can reach this endpoint"]
(ANY_ADDRESS_SENTENCE,) = get_args(AnyAddress)
LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365)  # CloudWatch Logs takes these and longer ones
MOST_INSTANCES = 64  # in one Capacity Block: EC2 user guide

REQUIRED = ("region", "instanceType", "model", "endpointPublicAccessCidrs")

REMEDIES = {
    "region": "Give a region of planning/catalogue/regions.toml, or add yours there",
    "capacity": "Give block or on-demand",
    "reservationId": "Give cr- and 17 hex digits, as the purchase answered and `rentblock status` shows",
    "availabilityZoneId": "Give the id of an Availability Zone, such as usw2-az2, not its name and no Local Zone",
    "instanceType": "Give an instance type of planning/catalogue/instances.toml",
    "instanceCount": f"Give a number from 1 to {MOST_INSTANCES}",
    "model": "Give a model of planning/catalogue/models.toml",
    "endpointPublicAccessCidrs": "Give a list of the networks that may call the cluster, such as 203.0.113.7/32",
    "allowAnyAddress": f"Leave it out, or write exactly: {ANY_ADDRESS_SENTENCE}",
    "weights": "Give s3://bucket/prefix in the same region, or leave it out to download from the hub",
    "weightsKmsKeyArn": "Give the ARN of the key that the weights are encrypted with, in their region: "
    "arn:aws:kms:REGION:ACCOUNT:key/ID",
    "imageRegistryPrefix": "Give HOST/PATH of a mirror or pull-through cache of the image's registry, without "
    "https://, such as 123456789012.dkr.ecr.us-west-2.amazonaws.com/docker-hub",
    "imagePullSecret": "Give the name of a Secret of type kubernetes.io/dockerconfigjson in the namespace vllm",
    "imageDigest": "Give sha256: and 64 hex digits, or leave it out to pull the catalogue's tag",
    "logRetentionDays": f"Give one of {', '.join(map(str, LOG_RETENTION_DAYS))}",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong with one key, and what to do about it."""

    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.key}: {self.what}. {self.remedy}."


def problem(key: str, what: str) -> Problem:
    """A problem with the key's usual remedy."""
    return Problem(key=key, what=what, remedy=REMEDIES[key])


def _reservation_id(text: str) -> str:
    if text.startswith("cb-"):
        raise PydanticCustomError("offering", "a cb- id names an offering, this needs the reservation bought from it")
    return _matching(r"cr-[0-9a-f]{17}", text)


def _weights(text: str) -> str:
    return _matching(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s/]+)*/?", text)


def _kms_key_arn(text: str) -> str:
    if ":alias/" in text:
        # https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html
        raise PydanticCustomError("alias", "an IAM policy names a key by the key's ARN and by no alias")
    key_id = r"(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    return _matching(rf"arn:aws:kms:[a-z0-9-]+:[0-9]{{12}}:key/{key_id}", text)


def _registry_prefix(text: str) -> str:
    return _matching(r"[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", text)


def _secret_name(text: str) -> str:
    # https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names
    return _matching(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", text)


def _digest(text: str) -> str:
    return _matching(r"sha256:[0-9a-f]{64}", text)


def _matching(pattern: str, text: str) -> str:
    if not re.fullmatch(pattern, text):
        raise PydanticCustomError("pattern", "{text} has not the right form", {"text": repr(text)})
    return text


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise PydanticCustomError("network", "{error}", {"error": str(error)}) from error


def _retention(days: int) -> int:
    if days not in LOG_RETENTION_DAYS:
        raise PydanticCustomError("retention", "CloudWatch Logs knows no retention of {days} days", {"days": days})
    return days


class StackFile(BaseModel):
    """A stack's keys, each judged by itself; None where a key is missing or was wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    region: str | None = None
    capacity: Literal["block", "on-demand"] = "block"
    reservation_id: Annotated[str, AfterValidator(_reservation_id)] | None = None
    availability_zone_id: str | None = None
    instance_type: str | None = None
    instance_count: Annotated[int, Field(ge=1, le=MOST_INSTANCES)] = 1
    model: str | None = None
    endpoint_public_access_cidrs: tuple[Annotated[str, AfterValidator(_network)], ...] | None = None
    allow_any_address: AnyAddress | None = None
    weights: Annotated[str, AfterValidator(_weights)] | None = None
    weights_kms_key_arn: Annotated[str, AfterValidator(_kms_key_arn)] | None = None
    image_registry_prefix: Annotated[str, AfterValidator(_registry_prefix)] | None = None
    image_pull_secret: Annotated[str, AfterValidator(_secret_name)] | None = None
    image_digest: Annotated[str, AfterValidator(_digest)] | None = None
    log_retention_days: Annotated[int, AfterValidator(_retention)] = 7


def each_key(raw: Mapping[str, object]) -> tuple[StackFile, list[Problem]]:
    """The keys that are right by themselves, and the problems of the others."""
    try:
        return StackFile.model_validate(raw), []
    except ValidationError as error:
        wrong = {str(details["loc"][0]) for details in error.errors()}
        problems = [_key_problem(details) for details in error.errors()]
    return StackFile.model_validate({key: value for key, value in raw.items() if key not in wrong}), problems


def _key_problem(details: ErrorDetails) -> Problem:
    key = str(details["loc"][0])
    if details["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, REMEDIES, n=1)
        remedy = f"Did you mean {close[0]}" if close else f"Remove it; the keys are {', '.join(REMEDIES)}"
        return Problem(key=key, what="there is no such key", remedy=remedy)
    position = "".join(f"[{part}]" for part in details["loc"][1:] if isinstance(part, int))
    return Problem(key=key + position, what=details["msg"], remedy=REMEDIES[key])
