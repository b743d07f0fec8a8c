"""What the simulated world assumes, read from `constants.toml` (delays, prices, refusals, ...) and `scenarios/`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

CONSTANTS = Path(__file__).with_name("constants.toml")
SCENARIOS = Path(__file__).with_name("scenarios")

Confidence = Literal["A", "B", "C", "assumed"]
"""A: primary document or measurement; B: third party with its method; C: one third-party note; assumed: none."""


class UnknownDelay(KeyError):
    """No delay of that name is in the constants."""


class UnknownPrice(KeyError):
    """No price of that name is in the constants."""


class UnknownScenario(LookupError):
    """No scenario of that name exists; the message lists those that do."""


class _Sourced(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    date: str
    confidence: Confidence


class Delay(_Sourced):
    """How long something takes, in whole seconds: a draw lies between `low_s` and `high_s`, both included."""

    low_s: int = Field(ge=0)
    high_s: int

    @model_validator(mode="after")
    def _low_comes_first(self) -> Delay:
        if self.high_s < self.low_s:
            raise ValueError(f"high_s {self.high_s} is below low_s {self.low_s}")
        return self


class Price(_Sourced):
    """A list price in US dollars; `unit` says for what."""

    usd: Decimal = Field(ge=0)
    unit: str


class Market(_Sourced):
    """Where Capacity Blocks of an instance type are sold, by zone id."""

    zone_ids: tuple[str, ...]


class AddonVersion(_Sourced):
    """The version of an EKS add-on that is the default."""

    version: str


class ClusterVersion(_Sourced):
    """Until which day EKS supports a Kubernetes version."""

    standard_until: date
    extended_until: date


class NodeAmi(_Sourced):
    """The newest release of a variant of EKS's optimized AMI, for example `1.35.7-20260903`."""

    release: str
    image_id: str


class StagedWeights(_Sourced):
    """A bucket in which a model lies below a prefix."""

    region: str
    prefix: str


class RegistryImage(_Sourced):
    """A container image that exists in its registry."""

    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")


class Refusal(_Sourced):
    """What AWS says when it refuses something. The code is AWS's own where one is known."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Delays:
    """All delays by name."""

    by_name: Mapping[str, Delay]

    def delay(self, name: str) -> Delay:
        """Raises UnknownDelay."""
        if name not in self.by_name:
            raise UnknownDelay(name)
        return self.by_name[name]

    def scaled(self, name: str, factor: Decimal) -> Delays:
        """The same delays with one of them longer or shorter by `factor`, rounded to seconds."""
        old = self.delay(name)
        new = old.model_copy(update={"low_s": round(old.low_s * factor), "high_s": round(old.high_s * factor)})
        return replace(self, by_name={**self.by_name, name: new})


@dataclass(frozen=True, kw_only=True)
class Prices:
    """All prices by name."""

    by_name: Mapping[str, Price]

    def usd(self, name: str) -> Decimal:
        """Raises UnknownPrice."""
        if name not in self.by_name:
            raise UnknownPrice(name)
        return self.by_name[name].usd

    def scaled(self, name: str, factor: Decimal) -> Prices:
        """The same prices with one of them multiplied by `factor`."""
        new = self.by_name[name].model_copy(update={"usd": self.usd(name) * factor})
        return replace(self, by_name={**self.by_name, name: new})


class Scenario(BaseModel):
    """Which delays a session meets on its node: for each step of the start, the name of the delay that applies.

    `weights` and `caches` say the same in the words in which a session is planned. `engine_crash` is the delay after
    which an engine that was ready dies, once; None: it never does. `failed_creations` are creations that EKS accepts
    and then fails: how many of them, by kind and name (`addon/coredns`). `leftover_interface`: when the nodes start,
    someone else creates a network interface in the session's VPC and leaves it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    sentence: str
    weights: Literal["staged", "hub"]
    caches: Literal["warm", "cold"]
    device_plugin: str
    image: str
    weights_load: str
    engine: str
    engine_crash: str | None = None
    failed_creations: dict[str, int] = Field(default_factory=dict)
    leftover_interface: bool = False


class _ConstantsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    delays: dict[str, Delay]
    prices: dict[str, Price]
    markets: dict[str, Market]
    cluster_versions: dict[str, ClusterVersion]
    addons: dict[str, AddonVersion]
    node_amis: dict[str, NodeAmi]
    staged_weights: dict[str, StagedWeights]
    images: dict[str, RegistryImage]
    refusals: dict[str, Refusal]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """All that the world assumes: `markets` by instance type, `cluster_versions` of Kubernetes, `addons` by name,
    `node_amis` by variant, `staged_weights` by bucket, `images` by registry/repository:tag, `refusals` by what is
    wrong."""

    delays: Delays
    prices: Prices
    markets: Mapping[str, Market]
    cluster_versions: Mapping[str, ClusterVersion]
    addons: Mapping[str, AddonVersion]
    node_amis: Mapping[str, NodeAmi]
    staged_weights: Mapping[str, StagedWeights]
    images: Mapping[str, RegistryImage]
    refusals: Mapping[str, Refusal]


def load_constants(path: Path = CONSTANTS) -> Constants:
    """The constants of a file. Raises OSError, tomllib.TOMLDecodeError and pydantic's ValidationError."""
    content = _ConstantsFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    return Constants(
        delays=Delays(by_name=content.delays),
        prices=Prices(by_name=content.prices),
        markets=content.markets,
        cluster_versions=content.cluster_versions,
        addons=content.addons,
        node_amis=content.node_amis,
        staged_weights=content.staged_weights,
        images=content.images,
        refusals=content.refusals,
    )


def load_scenario(name: str) -> Scenario:
    """The scenario `name` (a file in `scenarios/`). Raises UnknownScenario."""
    names = sorted(path.stem for path in SCENARIOS.glob("*.toml"))
    if name not in names:
        raise UnknownScenario(f"there is no scenario {name!r}; there are: {', '.join(names)}")
    return Scenario.model_validate(tomllib.loads((SCENARIOS / f"{name}.toml").read_text(encoding="utf-8")))
