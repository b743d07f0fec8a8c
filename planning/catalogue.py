"""What is known about instance types, models and regions, and every constant that a computation rests on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

DATA = Path(__file__).with_suffix("")
MIB = 1024**2

CONFIDENCES = ("A", "B", "C", "assumed")
"""A: primary document or measurement. B: third party with its method. C: one third-party note. assumed: no source."""


class UnknownName(Exception):
    """A name that the catalogue does not hold; the message lists those that it does."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(self.known)}")


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One figure and where it comes from; `confidence` is one of CONFIDENCES, `date` when the source said so."""

    name: str
    value: Decimal
    unit: str
    source: str
    date: str
    confidence: str


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """An EC2 instance type; memory in MiB as AWS lists it, `gpu_memory_mib` per GPU.

    `network_gbps` is what S3 can use: the baseline of one ENA interface on card 0. A price is None where no list shows
    one.
    """

    name: str
    gpus: int
    gpu_name: str
    gpu_memory_mib: int
    vcpus: int
    memory_mib: int
    allocatable_memory_mib: int
    network_gbps: Decimal
    nvme_bytes: int
    block_usd_per_hour: Constant | None
    on_demand_usd_per_hour: Constant | None


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model as vLLM serves it on one instance.

    `weight_bytes` is the checkpoint's size, `resident_bytes` what the weights take on all its GPUs together,
    `kv_bytes_per_token` the KV cache of a token on all its GPUs together, `overhead_bytes_per_gpu` what the engine
    needs besides. `image` is a tag; `image_digest` and `hub_revision` are empty while nobody has verified them.
    """

    name: str
    hub_id: str
    hub_revision: str
    served_name: str
    weight_bytes: int
    resident_bytes: int
    tensor_parallel: int
    max_model_len: int
    kv_bytes_per_token: int
    overhead_bytes_per_gpu: int
    gpu_memory_utilization: Decimal
    image: str
    image_digest: str
    image_bytes: int
    engine_args: tuple[str, ...]
    engine_env: Mapping[str, str]
    tool_call_parser: str
    reasoning_parser: str
    shared_memory_gib: int
    engine_start_warm_s: Constant
    engine_start_cold_s: Constant
    hosted_output_usd_per_million_tokens: Constant | None
    source: str

    @property
    def served_names(self) -> tuple[str, ...]:
        """The names that a request may give: the short one first, then the hub id, which other clients and recipes use.

        vLLM puts the first into answers and metrics.
        """
        return tuple(dict.fromkeys((self.served_name, self.hub_id)))


Entry = TypeVar("Entry")
_Table = dict[str, Any]  # as tomllib reads it


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """All of it; each look-up raises UnknownName.

    `regions` tells where each is, such as "Oregon". `constants` also holds those of instance types and models, named
    `<instance type or model>.<field>`.
    """

    instance_types: Mapping[str, InstanceType]
    models: Mapping[str, Model]
    regions: Mapping[str, str]
    constants: Mapping[str, Constant]

    def instance_type(self, name: str) -> InstanceType:
        return _find(self.instance_types, "instance type", name)

    def model(self, name: str) -> Model:
        return _find(self.models, "model", name)

    def place(self, region: str) -> str:
        return _find(self.regions, "region", region)

    def constant(self, name: str) -> Constant:
        return _find(self.constants, "constant", name)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Whether a model fits, the bytes on one instance that decide it, and the reason in a sentence."""

    fits: bool
    needed_bytes: int
    available_bytes: int
    sentence: str


def fits(model: Model, instance_type: InstanceType) -> Fit:
    """Weights + KV cache of one request with the longest context, the least that must fit, + overhead, against the
    usable memory of the `tensor_parallel` GPUs of one instance: each serves a whole copy."""
    needed = (
        model.resident_bytes
        + model.kv_bytes_per_token * model.max_model_len
        + model.overhead_bytes_per_gpu * model.tensor_parallel
    )
    if instance_type.gpus < model.tensor_parallel:
        has = f"{instance_type.name} has {instance_type.gpus}"
        sentence = f"{model.name} needs {model.tensor_parallel} GPU(s) in one instance; {has}"
        return Fit(fits=False, needed_bytes=needed, available_bytes=0, sentence=sentence)
    gpu_bytes = instance_type.gpu_memory_mib * MIB * model.tensor_parallel
    available = int(gpu_bytes * model.gpu_memory_utilization)
    sentence = (
        f"{model.name} with one request of {model.max_model_len:,} tokens needs {needed / 1e9:,.1f} GB "
        f"of GPU memory; {model.tensor_parallel} GPU(s) of {instance_type.name} give {available / 1e9:,.1f} GB"
    )
    return Fit(fits=needed <= available, needed_bytes=needed, available_bytes=available, sentence=sentence)


@cache
def load(folder: Path = DATA) -> Catalogue:
    """Reads the catalogue's files, once per folder."""
    constants = {name: _constant(name, table) for name, table in _read(folder, "constants").items()}
    instance_types = {name: _instance_type(name, table) for name, table in _read(folder, "instances").items()}
    models = {name: _model(name, table) for name, table in _read(folder, "models").items()}
    for entry in (*instance_types.values(), *models.values()):
        constants |= {value.name: value for value in vars(entry).values() if isinstance(value, Constant)}
    return Catalogue(
        instance_types=MappingProxyType(instance_types),
        models=MappingProxyType(models),
        regions=MappingProxyType(_read(folder, "regions")),
        constants=MappingProxyType(constants),
    )


def _find(entries: Mapping[str, Entry], kind: str, name: str) -> Entry:
    if name not in entries:
        raise UnknownName(kind, name, entries)
    return entries[name]


def _read(folder: Path, kind: str) -> dict[str, Any]:
    with (folder / f"{kind}.toml").open("rb") as file:
        return tomllib.load(file)


def _constant(name: str, table: _Table) -> Constant:
    return Constant(**{**table, "name": name, "value": Decimal(table["value"])})


def _optional(owner: str, field: str, table: _Table) -> Constant | None:
    return _constant(f"{owner}.{field}", table[field]) if field in table else None


def _instance_type(name: str, table: _Table) -> InstanceType:
    prices = {field: _optional(name, field, table) for field in ("block_usd_per_hour", "on_demand_usd_per_hour")}
    return InstanceType(
        **{
            **table,
            **prices,
            "name": name,
            "network_gbps": Decimal(table["network_gbps"]),
        }
    )


def _model(name: str, table: _Table) -> Model:
    hosted = "hosted_output_usd_per_million_tokens"
    starts = ("engine_start_warm_s", "engine_start_cold_s")
    return Model(
        **{
            **table,
            **{field: _constant(f"{name}.{field}", table[field]) for field in starts},
            "name": name,
            hosted: _optional(name, hosted, table),
            "engine_args": tuple(table["engine_args"]),
            "engine_env": MappingProxyType(table["engine_env"]),
            "gpu_memory_utilization": Decimal(table["gpu_memory_utilization"]),
        }
    )
