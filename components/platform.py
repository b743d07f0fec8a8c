"""One session, in order: network, cluster, nodes, add-ons, and what waits in the cluster for the block's node."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components import names
from components.addons import Addons, AddonsArgs
from components.cluster import Cluster, ClusterArgs
from components.device_plugin import DevicePlugin, DevicePluginArgs
from components.location import LookupFailed
from components.network import Network, NetworkArgs
from components.node_groups import NodeGroups, NodeGroupsArgs
from components.settings import Settings
from components.vllm import Vllm, VllmArgs
from components.weights_access import WeightsAccess, WeightsAccessArgs


@dataclass(frozen=True, kw_only=True)
class PlatformArgs:
    """`session` is the session id: the cluster's name and the value of the session tag. For `gpu_nodes` see
    NodeGroupsArgs."""

    session: str
    settings: Settings
    gpu_nodes: int | LookupFailed = 0


class Platform(pulumi.ComponentResource):
    """The whole of a session on EKS. It takes the providers of `aws` and `eks`; the cluster's own it makes itself."""

    network: Network
    cluster: Cluster
    nodes: NodeGroups

    def __init__(self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:index:Platform", name, None, opts)
        settings = args.settings
        own = pulumi.ResourceOptions(parent=self)
        self.network = Network(
            f"{name}-network",
            NetworkArgs(
                region=settings.region,
                gpu_zone_id=settings.availability_zone_id,
                second_zone_id=settings.second_zone_id,
                zone_problem=" ".join(str(found) for found in settings.zone_problems),
            ),
            opts=own,
        )
        self.cluster = Cluster(
            f"{name}-cluster",
            ClusterArgs(
                cluster_name=args.session,
                vpc_id=self.network.vpc_id,
                subnet_ids=self.network.control_plane_subnet_ids,
                public_access_cidrs=settings.endpoint_public_access_cidrs,
                log_retention_days=settings.log_retention_days,
            ),
            opts=own,
        )
        self.nodes = NodeGroups(
            f"{name}-nodes",
            NodeGroupsArgs(
                cluster_name=self.cluster.cluster_name,
                subnet_id=self.network.gpu_subnet_id,
                instance_type=settings.instance_type,
                instance_count=settings.instance_count,
                reservation_id=settings.reservation_id,
                tags={names.SESSION_TAG: args.session},
                gpu_nodes=args.gpu_nodes,
                after=self.network.ways_out,
            ),
            opts=own,
        )
        addons = Addons(
            f"{name}-addons",
            AddonsArgs(cluster_name=self.cluster.cluster_name, nodes=[self.nodes.system]),
            opts=own,
        )
        self._in_cluster(name, settings, addons)
        self.register_outputs({})

    def _in_cluster(self, name: str, settings: Settings, addons: Addons) -> None:
        kubernetes = k8s.Provider(
            f"{name}-kubernetes",
            kubeconfig=self.cluster.kubeconfig,
            # Only another cluster replaces the provider and all that is in it, not another kubeconfig of the same one.
            cluster_identifier=self.cluster.arn,
            opts=pulumi.ResourceOptions(parent=self),
        )
        inside = pulumi.ResourceOptions(parent=self, providers=[kubernetes])
        control_plane = self.cluster.control_plane
        DevicePlugin(f"{name}-device-plugin", DevicePluginArgs(cluster=control_plane), opts=inside)
        before_the_pod: list[pulumi.Resource] = [addons]
        if settings.weights:
            access = WeightsAccess(
                f"{name}-weights",
                WeightsAccessArgs(
                    cluster_name=self.cluster.cluster_name,
                    weights=settings.weights,
                    kms_key_arn=settings.weights_kms_key_arn,
                ),
                opts=pulumi.ResourceOptions(parent=self),
            )
            before_the_pod.append(access.association)
        Vllm(
            f"{name}-vllm",
            VllmArgs(
                cluster=control_plane,
                region=settings.region,
                model=settings.model,
                instance_type=settings.instance_type,
                instance_count=settings.instance_count,
                weights=settings.weights,
                image=settings.image,
                after=before_the_pod,
            ),
            opts=inside,
        )
