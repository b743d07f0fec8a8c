"""EKS clusters, and what all resources of EKS have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.row import Api, Field, Row, from_aws, same, to_aws


@dataclass(frozen=True, kw_only=True)
class EksRow(Row):
    """EKS names its properties nearly as Pulumi does, and tags by ARN."""

    service: str = "eks"
    arn_output: str = "arn"

    def retag(self, api: Api, resource_id: str, known: Properties, put: Mapping[str, str], drop: list[str]) -> None:
        if drop:
            api("untag_resource", resourceArn=known[self.arn_output], tagKeys=drop)
        if put:
            api("tag_resource", resourceArn=known[self.arn_output], tags=dict(put))

    def request(self, inputs: Properties) -> Properties:
        """The creating request: all inputs, and the tags."""
        return to_aws(self.fields, inputs) | ({"tags": inputs["tags"]} if inputs.get("tags") else {})

    def shows(self, found: Properties) -> Properties:
        """AWS's description in Pulumi's words."""
        return from_aws((*self.fields, *self.shown), found) | {"tags": found.get("tags", {})}


def health_problems(what: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    """What EKS says of a cluster, node group or add-on that failed or is degraded."""
    status = found.get("status", "")
    if not (status.endswith("FAILED") or status == "DEGRADED"):
        return ()
    issues = found.get("health", {}).get("issues", [])
    said = [f"{issue.get('code', '')}: {issue.get('message', '')}" for issue in issues]
    return tuple(f"{what} is {status}: {sentence}" for sentence in said or ["EKS gives no reason"])


@dataclass(frozen=True, kw_only=True)
class _Cluster(EksRow):
    def create(self, api: Api, inputs: Properties) -> str:
        logged = inputs.get("enabledClusterLogTypes")
        logging = _logging(logged) if logged else {}
        name: str = api("create_cluster", **self.request(inputs), **logging)["cluster"]["name"]
        return name

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        found = api("describe_cluster", name=resource_id)["cluster"]
        setups = found.get("logging", {}).get("clusterLogging", [])
        logged = [kind for setup in setups if setup.get("enabled") for kind in setup["types"]]
        properties = self.shows(found) | {"enabledClusterLogTypes": logged, "clusterId": resource_id}
        if "issuer" in found.get("identity", {}).get("oidc", {}):
            # EKS shows one identity as an object, pulumi-aws as lists of one.
            properties["identities"] = [{"oidcs": [{"issuer": found["identity"]["oidc"]["issuer"]}]}]
        return properties

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        if "version" in changed:
            api("update_cluster_version", name=resource_id, version=new["version"])
        if "enabledClusterLogTypes" in changed:
            api("update_cluster_config", name=resource_id, **_logging(new.get("enabledClusterLogTypes", [])))
        for field in self.fields:
            if field.name in changed and field.name not in ("version", "enabledClusterLogTypes"):
                # EKS takes one kind of change a call.
                api("update_cluster_config", name=resource_id, **to_aws([field], new))

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_cluster", name=resource_id)

    def problems(self, api: Api, resource_id: str) -> tuple[str, ...]:
        return health_problems(f"EKS cluster {resource_id}", api("describe_cluster", name=resource_id)["cluster"])


_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def _logging(wanted: list[str]) -> Properties:
    setups = [
        {"types": wanted, "enabled": True},
        {"types": [kind for kind in _LOG_TYPES if kind not in wanted], "enabled": False},
    ]
    return {"logging": {"clusterLogging": [setup for setup in setups if setup["types"]]}}


_VPC_CONFIG = (
    same("subnetIds"),
    same("securityGroupIds"),
    same("endpointPublicAccess"),
    same("endpointPrivateAccess"),
    same("publicAccessCidrs"),
    same("clusterSecurityGroupId", read_only=True),
    same("vpcId", read_only=True),
)

_ACCESS_CONFIG = (same("authenticationMode"), same("bootstrapClusterCreatorAdminPermissions", replaces=True))

ROWS: tuple[Row, ...] = (
    _Cluster(
        token="aws:eks/cluster:Cluster",
        named="name",
        fields=(
            same("name", replaces=True),
            same("roleArn", replaces=True),
            same("version"),
            Field(name="vpcConfig", aws="resourcesVpcConfig", fields=_VPC_CONFIG),
            same("accessConfig", fields=_ACCESS_CONFIG),
            same("bootstrapSelfManagedAddons", replaces=True, write_only=True),
            Field(name="enabledClusterLogTypes", aws=""),
            same(
                "kubernetesNetworkConfig",
                fields=(same("serviceIpv4Cidr", replaces=True), same("ipFamily", replaces=True)),
            ),
            same("upgradePolicy", fields=(same("supportType"),)),
            same("deletionProtection"),
        ),
        shown=(
            same("arn"),
            same("endpoint"),
            same("status"),
            same("platformVersion"),
            same("createdAt"),
            same("certificateAuthority", fields=(same("data"),)),
        ),
        computed=("clusterId", "identities"),
        create_delay="eks_cluster_create",
        delete_delay="eks_cluster_delete",
    ),
)
