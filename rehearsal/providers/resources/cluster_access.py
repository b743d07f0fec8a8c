"""What is hung onto an EKS cluster: add-ons, access entries and their policies, pod identity."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.cluster import EksRow, health_problems
from rehearsal.providers.resources.row import Api, Field, Row, from_aws, same, to_aws


@dataclass(frozen=True, kw_only=True)
class _Addon(EksRow):
    def create(self, api: Api, inputs: Properties) -> str:
        conflicts = (
            {"resolveConflicts": inputs["resolveConflictsOnCreate"]} if "resolveConflictsOnCreate" in inputs else {}
        )
        addon = api("create_addon", **self.request(inputs), **conflicts)["addon"]
        return f"{addon['clusterName']}:{addon['addonName']}"

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        return self.shows(self._describe(api, resource_id))

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        fields = [field for field in self.fields if field.name in changed]
        conflicts = {"resolveConflicts": new["resolveConflictsOnUpdate"]} if "resolveConflictsOnUpdate" in new else {}
        api("update_addon", **_addon_keys(resource_id), **to_aws(fields, new), **conflicts)

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_addon", **_addon_keys(resource_id), preserve=bool(known.get("preserve", False)))

    def problems(self, api: Api, resource_id: str) -> tuple[str, ...]:
        return health_problems(f"EKS add-on {resource_id}", self._describe(api, resource_id))

    def _describe(self, api: Api, resource_id: str) -> Properties:
        found: Properties = api("describe_addon", **_addon_keys(resource_id))["addon"]
        return found


def _addon_keys(resource_id: str) -> dict[str, str]:
    cluster, _, addon = resource_id.partition(":")
    return {"clusterName": cluster, "addonName": addon}


@dataclass(frozen=True, kw_only=True)
class _AccessEntry(EksRow):
    def create(self, api: Api, inputs: Properties) -> str:
        entry = api("create_access_entry", **self.request(inputs))["accessEntry"]
        return f"{entry['clusterName']}:{entry['principalArn']}"

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        return self.shows(api("describe_access_entry", **_entry_keys(resource_id))["accessEntry"])

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        fields = [field for field in self.fields if field.name in changed]
        api("update_access_entry", **_entry_keys(resource_id), **to_aws(fields, new))

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_access_entry", **_entry_keys(resource_id))


def _entry_keys(resource_id: str) -> dict[str, str]:
    cluster, _, principal = resource_id.partition(":")
    return {"clusterName": cluster, "principalArn": principal}


@dataclass(frozen=True, kw_only=True)
class _AccessPolicyAssociation(EksRow):
    def create(self, api: Api, inputs: Properties) -> str:
        api("associate_access_policy", **self.request(inputs))
        return "#".join((inputs["clusterName"], inputs["principalArn"], inputs["policyArn"]))

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        keys = _association_keys(resource_id)
        policy = keys.pop("policyArn")
        found = api("list_associated_access_policies", **keys)["associatedAccessPolicies"]
        mine = next((one for one in found if one["policyArn"] == policy), None)
        return None if mine is None else from_aws((*self.fields, *self.shown), keys | mine)

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        api("associate_access_policy", **self.request(new))

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("disassociate_access_policy", **_association_keys(resource_id))


def _association_keys(resource_id: str) -> dict[str, str]:
    cluster, principal, policy = resource_id.split("#")
    return {"clusterName": cluster, "principalArn": principal, "policyArn": policy}


@dataclass(frozen=True, kw_only=True)
class _PodIdentityAssociation(EksRow):
    def create(self, api: Api, inputs: Properties) -> str:
        made = api("create_pod_identity_association", **self.request(inputs))["association"]
        association_id: str = made["associationId"]
        return association_id

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        keys = {"clusterName": known["clusterName"], "associationId": resource_id}
        return self.shows(api("describe_pod_identity_association", **keys)["association"])

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        keys = {"clusterName": new["clusterName"], "associationId": resource_id}
        api(
            "update_pod_identity_association",
            **keys,
            **to_aws([one for one in self.fields if one.name in changed], new),
        )

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_pod_identity_association", clusterName=known["clusterName"], associationId=resource_id)


ROWS: tuple[Row, ...] = (
    _Addon(
        token="aws:eks/addon:Addon",
        fields=(
            same("clusterName", replaces=True),
            same("addonName", replaces=True),
            same("addonVersion"),
            same("configurationValues"),
            same("serviceAccountRoleArn"),
            Field(name="resolveConflictsOnCreate", aws="", write_only=True),
            Field(name="resolveConflictsOnUpdate", aws="", write_only=True),
            Field(name="preserve", aws="", write_only=True),
        ),
        shown=(Field(name="arn", aws="addonArn"), same("createdAt"), same("modifiedAt")),
        create_delay="eks_addon_create",
        delete_delay="eks_addon_delete",
    ),
    _AccessEntry(
        token="aws:eks/accessEntry:AccessEntry",
        arn_output="accessEntryArn",
        fields=(
            same("clusterName", replaces=True),
            same("principalArn", replaces=True),
            same("type", replaces=True),
            same("kubernetesGroups"),
            Field(name="userName", aws="username"),
        ),
        shown=(same("accessEntryArn"), same("createdAt"), same("modifiedAt")),
    ),
    _AccessPolicyAssociation(
        token="aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
        fields=(
            same("clusterName", replaces=True),
            same("principalArn", replaces=True),
            same("policyArn", replaces=True),
            same("accessScope", fields=(same("type"), same("namespaces"))),
        ),
        shown=(same("associatedAt"), same("modifiedAt")),
        taggable=False,
    ),
    _PodIdentityAssociation(
        token="aws:eks/podIdentityAssociation:PodIdentityAssociation",
        arn_output="associationArn",
        fields=(
            same("clusterName", replaces=True),
            same("namespace", replaces=True),
            same("serviceAccount", replaces=True),
            same("roleArn"),
        ),
        shown=(same("associationArn"), same("associationId")),
    ),
)
