"""What an instance of the simulated EC2 looks like to the cluster it joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, kw_only=True)
class Taint:
    """A taint as Kubernetes spells it (EKS node groups write the effect as `NO_SCHEDULE`)."""

    key: str
    value: str = ""
    effect: TaintEffect = "NoSchedule"


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """A machine that has booted and joins the cluster.

    `gpus` is what its device plugin would find, not what the node shows when it joins. `cpu` counts vCPUs and
    `memory_mib` is what pods may use (allocatable), both as the instance type has them.
    """

    name: str
    instance_id: str
    instance_type: str
    node_group: str
    availability_zone: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    gpus: int = 0
    cpu: int
    memory_mib: int


class NodeListener(Protocol):
    """Told by the simulated EC2, at the virtual instant itself."""

    def joined(self, node: NodeSpec) -> None: ...

    def gone(self, name: str) -> None: ...
