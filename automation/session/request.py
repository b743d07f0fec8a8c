"""What a user asks for: the one thing of a session that people write, so it is judged strictly and all at once."""

from decimal import Decimal
from ipaddress import IPv4Network
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

CapacityKind = Literal["block", "on-demand"]
Weights = Literal["staged", "hub"]
Caches = Literal["warm", "cold"]

_ANYONE = IPv4Network("0.0.0.0/0")


class RentRequest(BaseModel):
    """A wish for a session. Unknown keys are refused.

    `hours` is the length of the block, of which one that starts at once may lack up to a day; `regions` empty means
    every region that the account has enabled; `reservation_id` takes a block that is already bought instead of buying
    one. Caps are in US$ and never exceeded; `pay_usd` is the exact fee that is agreed to without a further question,
    knowing that it cannot be cancelled. `endpoint_cidrs` are the addresses that may reach the cluster's API;
    `weights_uri` is where in S3 the model lies staged. `parallel` is how many things the engine makes at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "kimi-k3"
    instance_type: str = "p6-b300.48xlarge"
    instance_count: int = Field(default=1, ge=1, le=64)
    hours: int = Field(default=24, ge=1, le=182 * 24)
    regions: tuple[str, ...] = ()
    capacity: CapacityKind = "block"
    reservation_id: str | None = Field(default=None, pattern=r"^cr-[0-9a-f]{17}$")
    max_fee_usd: Decimal | None = Field(default=None, gt=0)
    pay_usd: Decimal | None = Field(default=None, ge=0)
    max_usd_per_useful_hour: Decimal | None = Field(default=None, gt=0)
    endpoint_cidrs: tuple[IPv4Network, ...]
    weights_uri: str | None = Field(default=None, pattern=r"^s3://[^/\s]+(/\S*)?$")
    caches: Caches = "warm"
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

    @model_validator(mode="after")
    def _one_source_of_capacity(self) -> Self:
        if self.capacity == "on-demand" and self.reservation_id:
            raise ValueError("reservation_id: an on-demand session has no reservation; leave one of the two out")
        return self
