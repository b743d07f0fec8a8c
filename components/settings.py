"""What a stack's configuration says, judged as a whole: the only reader of pulumi.Config.

Three passes and one exception with all that they find: each key by itself, keys against each other and the catalogue,
and against what AWS says about the reservation. It happens in the first preview, before anything is created.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi.runtime.config import CONFIG

from components.images import ModelImage, pull_reference
from components.location import Lookup, gpu_zone, second_zone
from components.stack_file import ANY_ADDRESS_SENTENCE, REQUIRED, Problem, StackFile, each_key, problem
from planning.catalogue import InstanceType, Model, UnknownName, fits, load

# https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html
CLUSTER_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


class SettingsError(pulumi.RunError):
    """All problems of a configuration. Pulumi prints a RunError without a traceback."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = (f"  {found}" for found in problems)
        super().__init__("\n".join((f"{len(problems)} problem(s) in the configuration, nothing was created:", *lines)))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A configuration without a problem. `reservation_id` None: on demand. `weights` None: from the hub.
    `weights_kms_key_arn` None: reading them takes no key of the customer's.

    `second_zone_id` is the zone of the second subnet of a new stack. It is None while `zone_problems` is not empty: AWS
    did not list both zones. A new stack cannot be created then. An existing stack needs no list: its subnets stay."""

    region: str
    reservation_id: str | None
    availability_zone_id: str
    second_zone_id: str | None
    zone_problems: tuple[Problem, ...]
    instance_type: InstanceType
    instance_count: int
    model: Model
    endpoint_public_access_cidrs: tuple[str, ...]
    weights: str | None
    weights_kms_key_arn: str | None
    image: ModelImage
    log_retention_days: int


def read_settings(lookup: Lookup, *, stack: str) -> Settings:
    """The settings of the stack of that name. Raises SettingsError with all that is wrong."""
    return judge(stack_configuration(), lookup, stack=stack)


def stack_configuration() -> dict[str, object]:
    """The keys of the project's namespace, lists decoded."""
    config = pulumi.Config()
    namespace = f"{config.name}:"
    # The SDK has no public way to list keys, and without the list a mistyped key would be ignored in silence.
    keys = [key.removeprefix(namespace) for key in CONFIG.get() if key.startswith(namespace)]
    return {key: _decoded(config.require(key)) for key in keys}


def judge(raw: Mapping[str, object], lookup: Lookup, *, stack: str | None = None) -> Settings:
    """The settings that a configuration says. Raises SettingsError with all that is wrong.

    `stack` is the stack's name; None where it has none yet.
    """
    # Pulumi.yaml gives every key an empty default, without which the engine would call it required and stop there.
    raw = {key: value for key, value in raw.items() if value not in ("", [])}
    file, problems = each_key(raw)
    problems += [problem(key, "it is missing") for key in REQUIRED if key not in raw]
    problems += _stack_problems(stack)
    problems += _capacity_problems(file, raw)
    problems += _key_problems(file, raw)
    problems += _any_address_problems(file)
    instance_type, model, found = _what_to_serve(file)
    problems += found
    zone_id, found = gpu_zone(file, lookup)
    problems += found
    second_zone_id, zone_problems = second_zone(file.region, zone_id, lookup) if file.region and zone_id else (None, [])
    if problems or not (file.region and instance_type and model and file.endpoint_public_access_cidrs and zone_id):
        raise SettingsError([*problems, *zone_problems])
    return Settings(
        region=file.region,
        reservation_id=file.reservation_id,
        availability_zone_id=zone_id,
        second_zone_id=second_zone_id,
        zone_problems=tuple(zone_problems),
        instance_type=instance_type,
        instance_count=file.instance_count,
        model=model,
        endpoint_public_access_cidrs=file.endpoint_public_access_cidrs,
        weights=file.weights,
        weights_kms_key_arn=file.weights_kms_key_arn,
        image=ModelImage(
            # A digest in the catalogue is verified, and wins over the one that a session looked up.
            reference=pull_reference(
                model.image, digest=model.image_digest or file.image_digest or "", prefix=file.image_registry_prefix
            ),
            pull_secret=file.image_pull_secret,
        ),
        log_retention_days=file.log_retention_days,
    )


def _decoded(text: str) -> object:
    """A list as Pulumi keeps it, in JSON; anything else, a malformed list too, stays text for the model to judge."""
    if not text.startswith("["):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _stack_problems(stack: str | None) -> Iterator[Problem]:
    """Refuses a name that the cluster can't have. What else bears it takes more: the log group 512 characters, dots
    among them, and a tag 256. All other names are the program's own, whatever the stack is called."""
    if stack is not None and not CLUSTER_NAME.fullmatch(stack):
        yield Problem(
            key="stack",
            what=f"its name {stack} would be the EKS cluster's, which has 1 to 100 letters, digits, - and _, "
            "and no - or _ at its beginning",
            remedy="Rename it: pulumi stack rename NAME",
        )


def _key_problems(file: StackFile, raw: Mapping[str, object]) -> Iterator[Problem]:
    if file.weights_kms_key_arn is None:
        return
    key = "weightsKmsKeyArn"
    if "weights" not in raw:
        yield Problem(key=key, what="there are no weights in S3 to decrypt", remedy="Remove it, or set weights")
    key_region = file.weights_kms_key_arn.split(":")[3]
    if file.region not in (None, key_region):
        yield problem(key, f"the key is in {key_region}, and a bucket takes only keys of its own region")


def _capacity_problems(file: StackFile, raw: Mapping[str, object]) -> Iterator[Problem]:
    if file.capacity == "block" and "reservationId" not in raw:
        yield problem("reservationId", "it is missing, and capacity is block")
    if file.capacity == "on-demand" and "reservationId" in raw:
        yield Problem(key="reservationId", what="capacity is on-demand", remedy="Remove it, or set capacity to block")
    if file.capacity == "on-demand" and "availabilityZoneId" not in raw:
        yield problem("availabilityZoneId", "it is missing, and without a reservation nothing else names a zone")


def _any_address_problems(file: StackFile) -> Iterator[Problem]:
    """Refuses lists that cover a whole address family, also by halves, without the typed override."""
    if file.allow_any_address:
        return
    cidrs = file.endpoint_public_access_cidrs or ()
    v4 = ipaddress.collapse_addresses(ipaddress.IPv4Network(cidr) for cidr in cidrs if ":" not in cidr)
    v6 = ipaddress.collapse_addresses(ipaddress.IPv6Network(cidr) for cidr in cidrs if ":" in cidr)
    for whole in {"0.0.0.0/0", "::/0"}.intersection(map(str, (*v4, *v6))):
        yield Problem(
            key="endpointPublicAccessCidrs",
            what=f"together its networks are {whole}: any address may call the cluster",
            remedy=f"Name your own networks, or set allowAnyAddress to: {ANY_ADDRESS_SENTENCE}",
        )


def _what_to_serve(file: StackFile) -> tuple[InstanceType | None, Model | None, list[Problem]]:
    problems: list[Problem] = []
    instance_type: InstanceType | None = None
    model: Model | None = None
    try:
        instance_type = load().instance_type(file.instance_type) if file.instance_type else None
    except UnknownName as error:
        problems.append(problem("instanceType", str(error)))
    try:
        model = load().model(file.model) if file.model else None
    except UnknownName as error:
        problems.append(problem("model", str(error)))
    if instance_type and model:
        fit = fits(model, instance_type)
        if not fit.fits:
            remedy = "Choose a smaller model, or an instance type with more GPU memory"
            problems.append(Problem(key="model", what=fit.sentence, remedy=remedy))
    return instance_type, model, problems
