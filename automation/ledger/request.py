"""What a user asks for: the one thing of a session that people write, so it is judged strictly and all at once."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from ipaddress import IPv4Network
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from automation.errors import InvalidRequest
from planning.block import valid_duration
from planning.catalogue import UnknownName, fits, load

CapacityKind = Literal["block", "on-demand"]
Weights = Literal["staged", "hub"]
Caches = Literal["warm", "cold"]

_ANYONE = IPv4Network("0.0.0.0/0")


class RentRequest(BaseModel):
    """A wish for a session. Unknown keys are refused.

    `hours` is the length of the block, of which one that starts at once may lack up to a day; `regions` empty means
    every region that the account has enabled; `reservation_id` takes a block that is already bought instead of buying
    one, and `reservation_fee_usd` says what it has cost, for the accounts. Caps are in US$ and never exceeded;
    `pay_usd` is the exact fee that is agreed to without a further question, knowing that it cannot be cancelled.
    `endpoint_cidrs` are the addresses that may reach the cluster's API; `weights_uri` is where in S3 the model lies
    staged, `weights_kms_key_arn` your key that it is encrypted with, if it is. `caches` is "warm" for who brings the
    engine's kernels along: nothing here does yet, and a plan that counts on them is wrong by an hour of the block.
    `image_registry_prefix` and `image_pull_secret` are the stack's keys of those names.
    `parallel` is how many things the engine makes at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "kimi-k3"
    instance_type: str = "p6-b300.48xlarge"
    instance_count: int = Field(default=1, ge=1, le=64)
    hours: int = Field(default=24, ge=1, le=182 * 24)
    regions: tuple[str, ...] = ()
    capacity: CapacityKind = "block"
    reservation_id: str | None = Field(default=None, pattern=r"^cr-[0-9a-f]{17}$")
    reservation_fee_usd: Decimal | None = Field(default=None, ge=0)
    max_fee_usd: Decimal | None = Field(default=None, gt=0)
    pay_usd: Decimal | None = Field(default=None, ge=0)
    max_usd_per_useful_hour: Decimal | None = Field(default=None, gt=0)
    endpoint_cidrs: tuple[IPv4Network, ...]
    weights_uri: str | None = Field(default=None, pattern=r"^s3://[^/\s]+(/\S*)?$")
    weights_kms_key_arn: str | None = Field(default=None, pattern=r"^arn:aws:kms:")
    image_registry_prefix: str | None = None
    image_pull_secret: str | None = None
    caches: Caches = "cold"
    parallel: int = Field(default=16, ge=1, le=256)

    @property
    def weights(self) -> Weights:
        """Where the model comes from: staged in the region's S3, or downloaded from the hub on paid time."""
        return "staged" if self.weights_uri else "hub"

    @field_validator("endpoint_cidrs")
    @classmethod
    def _someone_not_anyone(cls, cidrs: tuple[IPv4Network, ...]) -> tuple[IPv4Network, ...]:
        if not cidrs:
            raise ValueError("name at least one address range that may reach the cluster, for example 198.51.100.7/32")
        if _ANYONE in cidrs:
            raise ValueError("0.0.0.0/0 would let anyone reach the cluster; name your own address range")
        return cidrs

    @field_validator("reservation_fee_usd")
    @classmethod
    def _of_a_block_bought_before(cls, fee_usd: Decimal | None, others: ValidationInfo) -> Decimal | None:
        if fee_usd is not None and others.data.get("reservation_id") is None:
            raise ValueError("it says what a block has cost that was bought before; name that as reservation_id")
        return fee_usd

    @field_validator("reservation_id")
    @classmethod
    def _one_source_of_capacity(cls, reservation_id: str | None, others: ValidationInfo) -> str | None:
        if reservation_id and others.data.get("capacity") == "on-demand":
            raise ValueError("an on-demand session has no reservation; leave one of the two out")
        return reservation_id


def field_problems(error: ValidationError) -> dict[str, str]:
    """What is wrong with each field of a request that was refused."""
    problems: dict[str, str] = {}
    for found in error.errors():
        field, *within = found["loc"]
        what = found["msg"].removeprefix("Value error, ")
        # Of a list's entries it is not clear which one is meant.
        what = f"{found['input']!r}: {what}" if within else what
        before = problems.get(str(field))
        problems[str(field)] = f"{before}, {what}" if before else what
    return problems


def catalogue_problems(
    model_name: str, instance_type_name: str, regions: Iterable[str], *, hours_to_buy: int | None
) -> Iterator[tuple[str, str]]:
    """What no market can change, each with its field: unknown names, a length that is not sold, a model too big.

    `hours_to_buy` None: nothing is bought by the day."""
    model = instance_type = None
    try:
        model = load().model(model_name)
    except UnknownName as unknown:
        yield "model", str(unknown)
    try:
        instance_type = load().instance_type(instance_type_name)
    except UnknownName as unknown:
        yield "instance_type", str(unknown)
    for region in regions:
        try:
            load().place(region)
        except UnknownName as unknown:
            yield "regions", str(unknown)
    if hours_to_buy is not None and not valid_duration(hours_to_buy):
        what = f"AWS sells no blocks of {hours_to_buy} hours"
        yield "hours", f"{what}; ask for whole days up to 14 (24, 48, ... hours), or whole weeks up to 182 days"
    if model and instance_type:
        fit = fits(model, instance_type)
        if not fit.fits:
            yield "model", f"{fit.sentence}; choose a smaller model or a machine with more GPU memory"


def invalid(problems: Mapping[str, str]) -> InvalidRequest:
    """All that is wrong, each with its name, in one error."""
    found = "; ".join(f"{name}: {what}" for name, what in problems.items())
    return InvalidRequest(happened=f"The request is not right: {found}.", remedy="Put this right and try again.")
