"""EKS's calls about clusters and node groups; add-ons and access entries are in `eks_contents.py`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from copy import copy
from typing import TypeVar, cast

from moto.core.utils import camelcase_to_underscores
from moto.ec2.models import EC2Backend, ec2_backends
from moto.eks.models import Cluster, EKSBackend, Nodegroup, eks_backends

from rehearsal.aws.clock import utcnow
from rehearsal.aws.eks_contents import ClusterContents
from rehearsal.aws.eks_creations import Creations
from rehearsal.aws.node_groups import NodeGroups
from rehearsal.aws.operations import Request, refuse
from rehearsal.delays import Refusal

Answer = Mapping[str, object]
T = TypeVar("T")

# What moto's cluster does not know it keeps as attributes, from which moto's serialiser reads.
_KEPT = {
    "accessConfig": {"bootstrapClusterCreatorAdminPermissions": True, "authenticationMode": "CONFIG_MAP"},
    "upgradePolicy": {"supportType": "EXTENDED"},
    "zonalShiftConfig": None,
    "computeConfig": {"enabled": False},
    "storageConfig": {"blockStorage": {"enabled": False}},
    "deletionProtection": False,
}


# What EKS chooses for a cluster whose VPC is in 10.0.0.0/8.
_NETWORK: dict[str, object] = {"serviceIpv4Cidr": "172.20.0.0/16", "ipFamily": "ipv4"}


class EksOperations:
    """Each public method is an operation of EKS."""

    def __init__(
        self, groups: NodeGroups, contents: ClusterContents, creations: Creations, refusals: Mapping[str, Refusal]
    ) -> None:
        self._groups = groups
        self._creations = creations
        self._contents = contents
        self._refusals = refusals
        self._updates: dict[str, dict[str, object]] = {}
        self.cluster_endpoint: tuple[str, str] | None = None
        """URL and base64 CA of the control plane that every cluster created from now on shows."""
        self.on_new_cluster: list[Callable[[], None]] = []
        """Told that a cluster is being made, before anyone can reach its control plane."""

    def create_cluster(self, request: Request) -> Answer:
        if self.cluster_endpoint is not None and (others := _clusters(request) - {request.text("name")}):
            raise refuse(self._refusals["one_control_plane"], other=min(others))
        vpc_config = request.record("resourcesVpcConfig")
        cluster = _eks(request).create_cluster(
            name=request.text("name"),
            role_arn=request.text("roleArn"),
            resources_vpc_config=vpc_config,
            version=request.text("version") or None,
            kubernetes_network_config=cast("dict[str, str]", _NETWORK | request.record("kubernetesNetworkConfig")),
            logging=request.record("logging") or None,
            tags=cast("dict[str, str]", request.record("tags")),
            encryption_config=request.records("encryptionConfig"),
        )
        if self.cluster_endpoint is not None:
            cluster.endpoint, authority = self.cluster_endpoint
            cluster.certificate_authority = {"data": authority}
        for tell in self.on_new_cluster:
            tell()
        for name, default in _KEPT.items():
            setattr(cluster, camelcase_to_underscores(name), _given(request, name, default))
        _put_into_vpc(cluster, request)
        self._contents.open(cluster, request)
        cluster.status, issues = self._creations.begin("cluster", cluster.name, cluster.name)
        setattr(cluster, "health", {"issues": issues})  # noqa: B010  (moto's serialiser reads it, its class lacks it)
        return {"cluster": cluster}

    def describe_cluster(self, request: Request) -> Answer:
        cluster = _eks(request).describe_cluster(request.text("name"))
        return {"cluster": _as_seen(cluster, self._creations.first_look("cluster", cluster.name, cluster.name))}

    def update_cluster_config(self, request: Request) -> Answer:
        cluster = _eks(request).describe_cluster(request.text("name"))
        cluster.resources_vpc_config |= request.record("resourcesVpcConfig")
        if "logging" in request.parameters:
            cluster.logging = request.record("logging")
        for name in request.parameters.keys() & _KEPT.keys():
            setattr(cluster, camelcase_to_underscores(name), _given(request, name, None))
        return {"update": self._update("ConfigUpdate")}

    def delete_cluster(self, request: Request) -> Answer:
        eks, name = _eks(request), request.text("name")
        if name in eks.clusters and vars(eks.clusters[name]).get("deletion_protection"):
            raise refuse(self._refusals["deletion_protection"], name=name)
        cluster = eks.delete_cluster(name)
        _take_out_of_vpc(cluster, request)
        self._contents.close(cluster)
        return {"cluster": cluster}

    def describe_update(self, request: Request) -> Answer:
        update_id = request.text("updateId")
        if update_id not in self._updates:
            raise refuse(self._refusals["not_found"], kind="update", name=update_id)
        return {"update": self._updates[update_id]}

    def create_nodegroup(self, request: Request) -> Answer:
        group = self._groups.create(request)
        self._contents.admit_nodes(_eks(request).describe_cluster(group.cluster_name), group.node_role)
        group.status, issues = self._creations.begin("nodegroup", group.cluster_name, group.nodegroup_name)
        group.health = {"issues": issues}
        return {"nodegroup": group}

    def describe_nodegroup(self, request: Request) -> Answer:
        group = self._nodegroup(request)
        first = self._creations.first_look("nodegroup", group.cluster_name, group.nodegroup_name)
        return {"nodegroup": _as_seen(group, first)}

    def update_nodegroup_config(self, request: Request) -> Answer:
        group = self._nodegroup(request)
        _eks(request).update_nodegroup_config(
            cluster_name=group.cluster_name,
            nodegroup_name=group.nodegroup_name,
            labels=request.record("labels"),
            taints=request.record("taints"),
            scaling_config=cast("dict[str, int]", request.record("scalingConfig")),
            update_config=request.record("updateConfig"),
            node_repair_config=request.record("nodeRepairConfig"),
        )
        if "scalingConfig" in request.parameters:
            self._groups.scale(group)
        return {"update": self._update("ConfigUpdate")}

    def update_nodegroup_version(self, request: Request) -> Answer:
        group = self._nodegroup(request)
        if "launchTemplate" in request.parameters:
            group.launch_template = cast("dict[str, str]", request.record("launchTemplate"))
        group.version = request.text("version") or group.version
        group.release_version = request.text("releaseVersion") or group.release_version
        return {"update": self._update("VersionUpdate")}

    def delete_nodegroup(self, request: Request) -> Answer:
        return {"nodegroup": self._groups.delete(request)}

    def tag_resource(self, request: Request) -> Answer:
        self._tags(request).update(cast("dict[str, str]", request.record("tags")))
        return {}

    def untag_resource(self, request: Request) -> Answer:
        tags = self._tags(request)
        for key in request.texts("tagKeys"):
            tags.pop(key, None)
        return {}

    def list_tags_for_resource(self, request: Request) -> Answer:
        return {"tags": self._tags(request)}

    def _tags(self, request: Request) -> dict[str, str]:
        arn = request.text("resourceArn")
        for cluster in _eks(request).clusters.values():
            tagged = {cluster.arn: cluster.tags, **{group.arn: group.tags for group in cluster.nodegroups.values()}}
            if arn in tagged:
                return tagged[arn]
        return self._contents.tags(arn)

    def _nodegroup(self, request: Request) -> Nodegroup:
        return _eks(request).describe_nodegroup(request.text("clusterName"), request.text("nodegroupName"))

    def _update(self, kind: str) -> dict[str, object]:
        update_id = str(uuid.uuid4())
        update: dict[str, object] = {
            "id": update_id,
            "type": kind,
            "status": "Successful",
            "createdAt": utcnow(),
            "params": [],
            "errors": [],
        }
        self._updates[update_id] = update
        return update


def _eks(request: Request) -> EKSBackend:
    return eks_backends[request.account_id][request.region]


def _as_seen(item: T, first_look: bool) -> T:
    """The cluster or node group as EKS shows it."""
    if not first_look:
        return item
    shown = copy(item)
    shown.status = "CREATING"  # type: ignore[attr-defined]
    return shown


def _clusters(request: Request) -> set[str]:
    """The account's clusters of all regions."""
    return {name for backend in eks_backends[request.account_id].values() for name in backend.clusters}


def _given(request: Request, name: str, default: object) -> object:
    value = request.parameters.get(name)
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        return {**default, **value}
    return default if value is None else value


def _put_into_vpc(cluster: Cluster, request: Request) -> None:
    """The cluster's security group, and its interfaces in its subnets, which keep the VPC from being deleted."""
    ec2: EC2Backend = ec2_backends[request.account_id][request.region]
    subnets = [ec2.get_subnet(subnet_id) for subnet_id in cluster.resources_vpc_config.get("subnetIds", [])]
    vpc_id = subnets[0].vpc_id
    group = ec2.create_security_group(
        f"eks-cluster-sg-{cluster.name}",
        "EKS created security group",
        vpc_id=vpc_id,
        tags={"aws:eks:cluster-name": cluster.name, f"kubernetes.io/cluster/{cluster.name}": "owned"},
    )
    cluster.resources_vpc_config = {
        "endpointPublicAccess": True,
        "endpointPrivateAccess": False,
        "publicAccessCidrs": ["0.0.0.0/0"],
        **cluster.resources_vpc_config,
        "vpcId": vpc_id,
        "clusterSecurityGroupId": group.id,
    }
    for subnet in subnets:
        # Without an address moto takes one from the subnet.
        ec2.create_network_interface(subnet, "", group_ids=[group.id], description=_interface_description(cluster))


def _take_out_of_vpc(cluster: Cluster, request: Request) -> None:
    ec2: EC2Backend = ec2_backends[request.account_id][request.region]
    for interface in list(ec2.enis.values()):
        if interface.description == _interface_description(cluster):
            ec2.delete_network_interface(interface.id)
    ec2.delete_security_group(group_id=cluster.resources_vpc_config["clusterSecurityGroupId"])


def _interface_description(cluster: Cluster) -> str:
    return f"Amazon EKS {cluster.name}"
