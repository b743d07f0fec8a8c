"""The EKS control plane, by pulumi-eks, with everything that it would choose for itself chosen here.

The only module that imports pulumi_eks. `control_plane` is the component that in-cluster resources are `deleted_with`:
so a destroy works when the cluster is unreachable or already gone. With the cluster resource inside it, a refresh that
finds the cluster gone would drop that resource, and the destroy would then fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from components import versions

# Enough to see who asked for what; the other types cost more than they tell in a day.
LOG_TYPES = ("api", "audit", "authenticator")


def eks_provider() -> eks.Provider:
    """The provider of the control plane's component: with default providers off it must be made."""
    return eks.Provider("eks")


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """`cluster_name` is the session id; `public_access_cidrs` has no default: EKS's own is the whole internet."""

    cluster_name: str
    vpc_id: pulumi.Input[str]
    subnet_ids: Sequence[pulumi.Input[str]]
    public_access_cidrs: Sequence[str]
    log_retention_days: int


class Cluster(pulumi.ComponentResource):
    """See the module. `kubeconfig` is JSON and secret; it calls `aws eks get-token`."""

    control_plane: eks.Cluster
    cluster_name: pulumi.Output[str]
    arn: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:cluster:Cluster", name, None, opts)
        # EKS would make this group itself, without a retention, and leave it behind.
        logs = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/eks/{args.cluster_name}/cluster",
            retention_in_days=args.log_retention_days,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.control_plane = eks.Cluster(
            f"{name}-control-plane",
            name=args.cluster_name,
            version=versions.KUBERNETES,
            # pulumi-eks defaults to EXTENDED, which costs six times as much once standard support ends.
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            authentication_mode=eks.AuthenticationMode.API,
            vpc_id=args.vpc_id,
            subnet_ids=list(args.subnet_ids),
            endpoint_private_access=True,
            endpoint_public_access=True,
            public_access_cidrs=list(args.public_access_cidrs),
            enabled_cluster_log_types=list(LOG_TYPES),
            skip_default_node_group=True,
            # Its default groups open all egress to the world, and managed nodes use the cluster's own group.
            skip_default_security_groups=True,
            create_instance_role=False,
            bootstrap_self_managed_addons=False,
            kube_proxy_addon_options=eks.KubeProxyAddonOptionsArgs(version=versions.KUBE_PROXY),
            # Without it nothing enforces the chart's NetworkPolicy.
            vpc_cni_options=eks.VpcCniOptionsArgs(addon_version=versions.VPC_CNI, enable_network_policy=True),
            # Without a node it would wait for 20 minutes and fail: addons.py makes it after the system nodes.
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[logs]),
        )
        self.cluster_name = self.control_plane.eks_cluster.name
        self.arn = self.control_plane.eks_cluster.arn
        self.kubeconfig = pulumi.Output.secret(self.control_plane.kubeconfig_json)
        self.register_outputs({"cluster_name": self.cluster_name, "arn": self.arn})
