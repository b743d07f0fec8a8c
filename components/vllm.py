"""vLLM with one model: a namespace of ours and a Helm release of charts/vllm."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from components import names
from components.images import ModelImage
from planning.budget import EngineTimeouts, startup_budget, timeouts
from planning.catalogue import InstanceType, Model

# Relative on purpose: a session's own working folder holds a link of this name.
CHART = "./charts/vllm"
# The folder behind CHART, wherever the program runs: the link leads here too.
CHART_FOLDER = Path(__file__).resolve().parents[1] / "charts" / "vllm"
SYSTEM_MEMORY_MIB = 2048  # left to the node's daemons: CNI, kube-proxy, device plugin, credentials agent


@dataclass(frozen=True, kw_only=True)
class VllmArgs:
    """`cluster` is the component that this goes down with; `after` must stand before the pod is made.

    `weights` is the S3 URI of staged weights, or None to download them from the hub.
    """

    cluster: pulumi.Resource
    region: str
    model: Model
    instance_type: InstanceType
    instance_count: int
    weights: str | None
    image: ModelImage
    after: Sequence[pulumi.Resource]


class Vllm(pulumi.ComponentResource):
    """See the module. The pod stays Pending until the block's node comes, so nothing here waits for it."""

    def __init__(self, name: str, args: VllmArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:serving:Vllm", name, None, opts)
        limits = engine_timeouts(args)
        namespace = k8s.core.v1.Namespace(
            f"{name}-namespace",
            metadata={"name": names.VLLM},
            opts=pulumi.ResourceOptions(parent=self, deleted_with=args.cluster),
        )
        k8s.helm.v3.Release(
            f"{name}-release",
            chart=CHART,
            name=names.VLLM,
            namespace=namespace.metadata["name"],
            values=dict(chart_values(args, limits)),
            # A session's own watch tells readiness by phase; an atomic release would delete the evidence.
            skip_await=True,
            atomic=False,
            timeout=limits.helm_timeout_s,
            opts=pulumi.ResourceOptions(
                parent=self,
                deleted_with=args.cluster,
                depends_on=list(args.after),
                custom_timeouts=pulumi.CustomTimeouts(create=limits.pulumi_timeout, update=limits.pulumi_timeout),
            ),
        )
        self.register_outputs({})


class ChartValues(TypedDict):
    """The values of charts/vllm that this program sets; its values.yaml explains each."""

    chartHash: str
    image: str
    imagePullSecrets: list[str]
    replicas: int
    gpus: int
    cpus: int
    memoryMib: int
    sharedMemoryGib: int
    args: list[str]
    env: dict[str, str]
    startupProbe: dict[str, int]
    progressDeadlineSeconds: int


def chart_hash(folder: Path) -> str:
    """SHA-256 of a chart's files and their names, in hexadecimal; the same in every copy of the chart.

    It is one of the release's values because the provider compares nothing but the release's inputs
    (pulumi-kubernetes 4.25, helm_release.go, Diff): without it a changed template is not deployed.
    What .helmignore keeps out of the chart does not count: hidden files, backups of editors (`name~`), Python's caches.
    """
    files = {file.relative_to(folder): file for file in folder.rglob("*") if file.is_file()}
    digest = hashlib.sha256()
    for name in sorted(files, key=Path.as_posix):
        if not any(part.startswith(".") or part.endswith("~") or part == "__pycache__" for part in name.parts):
            content = files[name].read_bytes()
            # The length of each part keeps "ab" + "c" apart from "a" + "bc".
            for part in (name.as_posix().encode(), content):
                digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def engine_timeouts(args: VllmArgs) -> EngineTimeouts:
    """The deployment's timeouts, for cold kernel caches: nobody knows beforehand, and a probe that kills a compiling
    engine makes it start again from zero."""
    weights: Literal["staged", "hub"] = "staged" if args.weights else "hub"
    return timeouts(startup_budget(args.model, args.instance_type, weights=weights, caches="cold"))


def chart_values(args: VllmArgs, limits: EngineTimeouts) -> ChartValues:
    """One engine on each instance."""
    return {
        "chartHash": chart_hash(CHART_FOLDER),
        "image": args.image.reference,
        "imagePullSecrets": [args.image.pull_secret] if args.image.pull_secret else [],
        "replicas": args.instance_count,
        "gpus": args.model.tensor_parallel,
        "cpus": max(1, args.instance_type.vcpus // 2),
        "memoryMib": args.instance_type.allocatable_memory_mib - SYSTEM_MEMORY_MIB,
        "sharedMemoryGib": args.model.shared_memory_gib,
        "args": engine_args(args.model, args.weights),
        "env": dict(engine_env(args.model, args.region, limits)),
        "startupProbe": {
            "periodSeconds": limits.startup_probe_period_s,
            "failureThreshold": limits.startup_probe_failure_threshold,
        },
        "progressDeadlineSeconds": limits.progress_deadline_s,
    }


def engine_args(model: Model, weights: str | None) -> list[str]:
    """The arguments of `vllm serve`, each by itself: no shell reads them.

    Staged weights are streamed from S3 into the GPUs, by one stream that all ranks share. From the hub they come as
    files, which the fast loader reads.
    """
    # The streamer's own settings (RUNAI_STREAMER_*) stay at their defaults: 8 clients of 10 Gbps in each of 8 ranks ask
    # for twice the 300 Gbps of a p6-b300, memory is not limited while ranks share, and the weights fit into the host's.
    # No better values are published for such a machine (run-ai/runai-model-streamer: docs/src/env-vars.md, issue 154).
    source = [weights, "--load-format", "runai_streamer", "--model-loader-extra-config", '{"distributed":true}']
    if not weights:
        revision = ["--revision", model.hub_revision] if model.hub_revision else []
        source = [model.hub_id, *revision, "--load-format", "fastsafetensors"]
    return [
        *(part for part in source if part),
        "--served-model-name",
        *model.served_names,
        "--tensor-parallel-size",
        str(model.tensor_parallel),
        "--max-model-len",
        str(model.max_model_len),
        "--gpu-memory-utilization",
        str(model.gpu_memory_utilization),
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        model.tool_call_parser,
        "--reasoning-parser",
        model.reasoning_parser,
        *model.engine_args,
    ]


def engine_env(model: Model, region: str, limits: EngineTimeouts) -> Mapping[str, str]:
    """The model server's environment. The AWS SDK reads the region from either name, since it has no metadata service.

    The chart's middleware is Python, and vLLM's Rust front end would not load it: no model may choose that one.
    """
    return {
        **model.engine_env,
        "VLLM_USE_RUST_FRONTEND": "0",
        "VLLM_ENGINE_READY_TIMEOUT_S": str(limits.engine_ready_timeout_s),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
    }
