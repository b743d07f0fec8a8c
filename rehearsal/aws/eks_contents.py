"""What lives inside an EKS cluster's API: add-ons, access entries and their policies. moto has none of these.

Pod Identity associations live here too; their operations are in `pod_identity.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from moto.eks.models import Cluster

from rehearsal.aws.clock import utcnow
from rehearsal.aws.eks_creations import Creations
from rehearsal.aws.operations import Request, refuse
from rehearsal.delays import Refusal

Answer = Mapping[str, object]
Item = dict[str, object]

CALLER_ARN = "arn:aws:sts::{account_id}:user/moto"
"""Who every caller is, as moto's GetCallerIdentity says."""


@dataclass(kw_only=True)
class _Contents:
    cluster: Cluster
    addons: dict[str, Item] = field(default_factory=dict)
    entries: dict[str, Item] = field(default_factory=dict)
    policies: dict[str, dict[str, Item]] = field(default_factory=dict)
    associations: dict[str, Item] = field(default_factory=dict)


class ClusterContents:
    """The contents of all clusters of a world, by the cluster's ARN."""

    def __init__(self, refusals: Mapping[str, Refusal]) -> None:
        self._refusals = refusals
        self._by_cluster: dict[str, _Contents] = {}

    def open(self, cluster: Cluster, request: Request) -> None:
        """A new cluster: its creator is its administrator unless the request says otherwise."""
        self._by_cluster[cluster.arn] = _Contents(cluster=cluster)
        if request.record("accessConfig").get("bootstrapClusterCreatorAdminPermissions", True):
            self.admit(cluster, CALLER_ARN.format(account_id=request.account_id), {"type": "STANDARD"})

    def close(self, cluster: Cluster) -> None:
        """Add-ons, access entries and associations go with their cluster."""
        self._by_cluster.pop(cluster.arn, None)

    def of(self, request: Request) -> _Contents:
        """The contents of the cluster that a request names; refuses an unknown one."""
        name = request.text("clusterName")
        arn = f"arn:aws:eks:{request.region}:{request.account_id}:cluster/{name}"
        if arn not in self._by_cluster:
            raise refuse(self._refusals["not_found"], kind="cluster", name=name)
        return self._by_cluster[arn]

    def admit(self, cluster: Cluster, principal_arn: str, entry: Item) -> Item:
        """Add an access entry; refuses a second one for the same principal."""
        entries = self._by_cluster[cluster.arn].entries
        if principal_arn in entries:
            raise refuse(self._refusals["exists"], kind="access entry", name=principal_arn)
        entries[principal_arn] = {
            "clusterName": cluster.name,
            "principalArn": principal_arn,
            "accessEntryArn": f"{cluster.arn.replace(':cluster/', ':access-entry/')}/{principal_arn.split(':')[-1]}",
            "kubernetesGroups": [],
            "type": "STANDARD",
            "username": principal_arn,
            "createdAt": utcnow(),
            "modifiedAt": utcnow(),
            "tags": {},
            **entry,
        }
        return entries[principal_arn]

    def admit_nodes(self, cluster: Cluster, role_arn: str) -> None:
        """EKS makes the access entry of a managed node group's role by itself."""
        if role_arn not in self._by_cluster[cluster.arn].entries:
            self.admit(cluster, role_arn, {"type": "EC2_LINUX", "kubernetesGroups": ["system:nodes"]})

    def tags(self, arn: str) -> dict[str, str]:
        """The tags of an add-on, access entry or association by its ARN; refuses an unknown one."""
        for contents in self._by_cluster.values():
            for item in [*contents.addons.values(), *contents.entries.values(), *contents.associations.values()]:
                if arn in (item.get("addonArn"), item.get("accessEntryArn"), item.get("associationArn")):
                    return item["tags"]  # type: ignore[return-value]
        raise refuse(self._refusals["not_found"], kind="resource", name=arn)


class AddonOperations:
    """Each public method is an operation of EKS."""

    def __init__(
        self,
        contents: ClusterContents,
        creations: Creations,
        refusals: Mapping[str, Refusal],
        versions: Mapping[str, str],
        cluster_versions: Collection[str],
    ) -> None:
        self._contents = contents
        self._creations = creations
        self._refusals = refusals
        self._versions = versions
        self._cluster_versions = cluster_versions

    def create_addon(self, request: Request) -> Answer:
        contents, name = self._contents.of(request), request.text("addonName")
        if name in contents.addons:
            raise refuse(self._refusals["exists"], kind="addon", name=name)
        status, issues = self._creations.begin("addon", contents.cluster.name, name)
        contents.addons[name] = {
            "addonName": name,
            "clusterName": request.text("clusterName"),
            "status": status,
            "addonVersion": request.text("addonVersion") or self._default_version(name),
            "health": {"issues": issues},
            "addonArn": f"{contents.cluster.arn.replace(':cluster/', ':addon/')}/{name}",
            "createdAt": utcnow(),
            "modifiedAt": utcnow(),
            "tags": request.record("tags"),
            **_present(request, "configurationValues", "serviceAccountRoleArn"),
        }
        return {"addon": contents.addons[name]}

    def describe_addon(self, request: Request) -> Answer:
        addon = self._addon(request)
        first = self._creations.first_look("addon", request.text("clusterName"), request.text("addonName"))
        return {"addon": {**addon, "status": "CREATING"} if first else addon}

    def list_addons(self, request: Request) -> Answer:
        return {"addons": sorted(self._contents.of(request).addons)}

    def update_addon(self, request: Request) -> Answer:
        addon = self._addon(request)
        addon.update(_present(request, "addonVersion", "configurationValues", "serviceAccountRoleArn"))
        addon["modifiedAt"] = utcnow()
        update = {"id": str(addon["addonArn"]), "type": "AddonUpdate", "status": "Successful", "createdAt": utcnow()}
        return {"update": update}

    def delete_addon(self, request: Request) -> Answer:
        addon = self._addon(request)
        return {"addon": self._contents.of(request).addons.pop(str(addon["addonName"]))}

    def describe_addon_versions(self, request: Request) -> Answer:
        wanted, kubernetes = request.text("addonName"), request.text("kubernetesVersion")
        names = [name for name in self._versions if wanted in ("", name)]
        known = [version for version in self._cluster_versions if kubernetes in ("", version)]
        return {"addons": [self._addon_info(name, known) for name in names] if known else []}

    def _addon(self, request: Request) -> Item:
        contents, name = self._contents.of(request), request.text("addonName")
        if name not in contents.addons:
            raise refuse(self._refusals["not_found"], kind="addon", name=name)
        return contents.addons[name]

    def _default_version(self, name: str) -> str:
        if name not in self._versions:
            raise refuse(self._refusals["addon_version"], name=name)
        return self._versions[name]

    def _addon_info(self, name: str, cluster_versions: Collection[str]) -> Item:
        compatible = [
            {"clusterVersion": version, "platformVersions": ["*"], "defaultVersion": True}
            for version in cluster_versions
        ]
        version = {
            "addonVersion": self._versions[name],
            "architecture": ["amd64", "arm64"],
            "compatibilities": compatible,
        }
        return {"addonName": name, "type": "networking", "addonVersions": [version], "owner": "aws", "publisher": "eks"}


class AccessEntryOperations:
    """Each public method is an operation of EKS."""

    def __init__(self, contents: ClusterContents, refusals: Mapping[str, Refusal]) -> None:
        self._contents = contents
        self._refusals = refusals

    def create_access_entry(self, request: Request) -> Answer:
        cluster = self._contents.of(request).cluster
        from_request = _present(request, "kubernetesGroups", "tags", "username", "type")
        return {"accessEntry": self._contents.admit(cluster, request.text("principalArn"), from_request)}

    def describe_access_entry(self, request: Request) -> Answer:
        return {"accessEntry": self._entry(request)}

    def list_access_entries(self, request: Request) -> Answer:
        return {"accessEntries": sorted(self._contents.of(request).entries)}

    def update_access_entry(self, request: Request) -> Answer:
        entry = self._entry(request)
        entry.update(_present(request, "kubernetesGroups", "username"), modifiedAt=utcnow())
        return {"accessEntry": entry}

    def delete_access_entry(self, request: Request) -> Answer:
        self._entry(request)
        contents, principal = self._contents.of(request), request.text("principalArn")
        contents.entries.pop(principal)
        contents.policies.pop(principal, None)
        return {}

    def associate_access_policy(self, request: Request) -> Answer:
        self._entry(request)
        policy = {
            "policyArn": request.text("policyArn"),
            "accessScope": request.record("accessScope"),
            "associatedAt": utcnow(),
            "modifiedAt": utcnow(),
        }
        self._policies(request)[request.text("policyArn")] = policy
        return {**_who(request), "associatedAccessPolicy": policy}

    def disassociate_access_policy(self, request: Request) -> Answer:
        self._entry(request)
        if self._policies(request).pop(request.text("policyArn"), None) is None:
            raise refuse(self._refusals["not_found"], kind="access policy", name=request.text("policyArn"))
        return {}

    def list_associated_access_policies(self, request: Request) -> Answer:
        self._entry(request)
        return {**_who(request), "associatedAccessPolicies": list(self._policies(request).values())}

    def _entry(self, request: Request) -> Item:
        entries, principal = self._contents.of(request).entries, request.text("principalArn")
        if principal not in entries:
            raise refuse(self._refusals["not_found"], kind="access entry", name=principal)
        return entries[principal]

    def _policies(self, request: Request) -> dict[str, Item]:
        return self._contents.of(request).policies.setdefault(request.text("principalArn"), {})


def _present(request: Request, *names: str) -> Item:
    return {name: request.parameters[name] for name in names if name in request.parameters}


def _who(request: Request) -> Item:
    return {"clusterName": request.text("clusterName"), "principalArn": request.text("principalArn")}
