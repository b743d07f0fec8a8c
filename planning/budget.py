"""How long the start of a model may take, and every timeout that follows from it.

One budget on purpose: a probe, a Helm release and a Pulumi operation with timeouts of their own kill each other's work,
and a killed load starts from zero on paid time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Literal

from planning.catalogue import InstanceType, Model, load


@dataclass(frozen=True, kw_only=True)
class StartupBudget:
    """What each phase is expected to take, from the block's first second to the last acceptance check, in order."""

    launch: timedelta
    join: timedelta
    device_plugin: timedelta
    image: timedelta
    weights: timedelta
    engine: timedelta
    acceptance: timedelta

    @property
    def total(self) -> timedelta:
        return sum(vars(self).values(), timedelta())

    @property
    def with_margin(self) -> timedelta:
        """The total times the constant `startup_margin_factor`: what timeouts allow."""
        return _with_margin(self.total)

    def late_after(self, phase: str) -> timedelta:
        """How long a phase (by its name here) may take before it is called late: its budget with the same margin."""
        return _with_margin(getattr(self, phase))


@dataclass(frozen=True, kw_only=True)
class EngineTimeouts:
    """The timeouts of one deployment, in the form their systems take; `pulumi_timeout` is Go's, such as "105m".

    The startup probe and the engine's own deadline cover weights and engine; the others the whole start.
    """

    startup_probe_period_s: int
    startup_probe_failure_threshold: int
    engine_ready_timeout_s: int
    progress_deadline_s: int
    helm_timeout_s: int
    pulumi_timeout: str


def startup_budget(
    model: Model, instance: InstanceType, *, weights: Literal["staged", "hub"], caches: Literal["warm", "cold"]
) -> StartupBudget:
    """The budget of one model on one instance type.

    `weights` "staged": streamed from S3 in the region into the GPUs. "hub": downloaded to local disk, then loaded.
    `caches` "cold": the engine compiles and tunes its kernels first.
    """
    engine = model.engine_start_warm_s if caches == "warm" else model.engine_start_cold_s
    return StartupBudget(
        launch=_seconds(_value("launch_s")),
        join=_seconds(_value("join_s")),
        device_plugin=_seconds(_value("device_plugin_s")),
        image=_seconds(model.image_bytes / _bounded("image_pull_bytes_per_s", instance)),
        weights=_seconds(_weights_s(model, instance, weights)),
        engine=_seconds(engine.value),
        acceptance=_seconds(_value("acceptance_s")),
    )


def timeouts(budget: StartupBudget) -> EngineTimeouts:
    """Every timeout of a deployment, from its start-up budget with the margin."""
    load_s = math.ceil(_with_margin(budget.weights + budget.engine).total_seconds())
    ready_s = max(load_s, int(_value("engine_ready_floor_s")))
    whole_s = max(math.ceil(budget.with_margin.total_seconds()), ready_s)
    period_s = int(_value("startup_probe_period_s"))
    return EngineTimeouts(
        startup_probe_period_s=period_s,
        startup_probe_failure_threshold=math.ceil(ready_s / period_s),
        engine_ready_timeout_s=ready_s,
        progress_deadline_s=whole_s,
        helm_timeout_s=whole_s,
        # Later than Helm's, whose message says more.
        pulumi_timeout=f"{whole_s // 60 + 5}m",
    )


def _weights_s(model: Model, instance: InstanceType, weights: Literal["staged", "hub"]) -> Decimal:
    if weights == "staged":
        return model.weight_bytes / _bounded("weights_stream_bytes_per_s", instance)
    download_s = model.weight_bytes / _bounded("weights_hub_bytes_per_s", instance)
    return download_s + model.weight_bytes / _value("weights_local_bytes_per_s")


def _bounded(constant: str, instance: InstanceType) -> Decimal:
    """A measured rate, or the instance's network where that is slower; bytes/s."""
    return min(_value(constant), instance.network_gbps * 10**9 / 8)


def _value(constant: str) -> Decimal:
    return load().constant(constant).value


def _seconds(seconds: Decimal) -> timedelta:
    return timedelta(seconds=math.ceil(seconds))


def _with_margin(length: timedelta) -> timedelta:
    return length * float(_value("startup_margin_factor"))
