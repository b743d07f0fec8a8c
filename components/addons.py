"""The EKS add-ons that need a node to run on: CoreDNS, and the agent that hands AWS credentials to pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components import versions

AFTER_NODES = {"coredns": versions.COREDNS, "eks-pod-identity-agent": versions.POD_IDENTITY_AGENT}


@dataclass(frozen=True, kw_only=True)
class AddonsArgs:
    """`nodes` are what must stand first: an add-on without a node is DEGRADED and times out after 20 minutes."""

    cluster_name: pulumi.Input[str]
    nodes: Sequence[pulumi.Resource]


class Addons(pulumi.ComponentResource):
    """See the module."""

    def __init__(self, name: str, args: AddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:cluster:Addons", name, None, opts)
        for addon, version in AFTER_NODES.items():
            aws.eks.Addon(
                f"{name}-{addon}",
                cluster_name=args.cluster_name,
                addon_name=addon,
                addon_version=version,
                resolve_conflicts_on_create="OVERWRITE",
                resolve_conflicts_on_update="OVERWRITE",
                opts=pulumi.ResourceOptions(parent=self, depends_on=list(args.nodes)),
            )
        self.register_outputs({})
