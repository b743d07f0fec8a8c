"""EKS managed node groups."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from rehearsal.providers.critical_path import Kind
from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.cluster import EksRow, health_problems
from rehearsal.providers.resources.row import Api, Field, Row, equal, same, to_aws

_BY_VERSION_CALL = frozenset({"version", "releaseVersion", "launchTemplate"})


@dataclass(frozen=True, kw_only=True)
class _NodeGroup(EksRow):
    def create(self, api: Api, inputs: Properties) -> str:
        group = api("create_nodegroup", **self.request(inputs))["nodegroup"]
        return f"{group['clusterName']}:{group['nodegroupName']}"

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        properties = self.shows(self._describe(api, resource_id))
        # EKS shows resources as one object, pulumi-aws as a list of one.
        properties["resources"] = [properties["resources"]] if "resources" in properties else []
        return properties

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        group = _keys(resource_id)
        if set(changed) & _BY_VERSION_CALL:
            fields = [field for field in self.fields if field.name in _BY_VERSION_CALL and field.name in changed]
            request = to_aws(fields, new)
            if "launchTemplate" in request:
                # The answer to a creation may name the template both ways; a request must not.
                request["launchTemplate"].pop("name", None)
            api("update_nodegroup_version", **group, **request)
        fields = [field for field in self.fields if field.name in changed and field.name not in _BY_VERSION_CALL]
        if fields:
            request = to_aws([field for field in fields if field.name not in ("labels", "taints")], new)
            old = self._describe(api, resource_id)
            if "labels" in changed:
                request["labels"] = _label_changes(old.get("labels", {}), new.get("labels", {}))
            if "taints" in changed:
                request["taints"] = _taint_changes(old.get("taints", []), new.get("taints", []))
            api("update_nodegroup_config", **group, **request)

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_nodegroup", **_keys(resource_id))

    def problems(self, api: Api, resource_id: str) -> tuple[str, ...]:
        return health_problems(f"node group {resource_id}", self._describe(api, resource_id))

    def delay(self, kind: Kind, inputs: Properties) -> str:
        if kind == "create" and inputs.get("scalingConfig", {}).get("desiredSize") == 0:
            return "node_group_create_empty"
        return super().delay(kind, inputs)

    def _describe(self, api: Api, resource_id: str) -> Properties:
        found: Properties = api("describe_nodegroup", **_keys(resource_id))["nodegroup"]
        return found


def _keys(resource_id: str) -> dict[str, str]:
    cluster, _, group = resource_id.partition(":")
    return {"clusterName": cluster, "nodegroupName": group}


def _label_changes(old: dict[str, str], new: dict[str, str]) -> Properties:
    put = {key: value for key, value in new.items() if old.get(key) != value}
    return {"addOrUpdateLabels": put, "removeLabels": [key for key in old if key not in new]}


def _taint_changes(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Properties:
    put = [taint for taint in new if not any(equal(taint, one) for one in old)]
    # A taint is known by its key and effect; one that only changes its value is updated, not removed.
    kept = {(taint["key"], taint["effect"]) for taint in new}
    return {"addOrUpdateTaints": put, "removeTaints": [one for one in old if (one["key"], one["effect"]) not in kept]}


_SCALING = (same("minSize"), same("maxSize"), same("desiredSize"))
_LAUNCH_TEMPLATE = (same("id", replaces=True), same("name", replaces=True), same("version"))
_RESOURCES = (
    Field(name="autoscalingGroups", aws="autoScalingGroups", fields=(same("name"),)),
    Field(name="remoteAccessSecurityGroupId", aws="remoteAccessSecurityGroup"),
)

ROWS: tuple[Row, ...] = (
    _NodeGroup(
        token="aws:eks/nodeGroup:NodeGroup",
        named="nodeGroupName",
        fields=(
            same("clusterName", replaces=True),
            Field(name="nodeGroupName", aws="nodegroupName", replaces=True),
            Field(name="nodeRoleArn", aws="nodeRole", replaces=True),
            Field(name="subnetIds", aws="subnets", replaces=True),
            same("scalingConfig", fields=_SCALING),
            same("instanceTypes", replaces=True),
            same("amiType", replaces=True),
            same("capacityType", replaces=True),
            same("diskSize", replaces=True),
            same("launchTemplate", fields=_LAUNCH_TEMPLATE),
            same("labels"),
            same("taints", fields=(same("key"), same("value"), same("effect"))),
            same(
                "updateConfig",
                fields=(same("maxUnavailable"), same("maxUnavailablePercentage"), same("updateStrategy")),
            ),
            same("nodeRepairConfig", fields=(same("enabled"),)),
            same("version"),
            same("releaseVersion"),
            same("forceUpdateVersion", write_only=True),
        ),
        shown=(Field(name="arn", aws="nodegroupArn"), same("status"), same("resources", fields=_RESOURCES)),
        create_delay="node_group_create",
        delete_delay="node_group_delete",
    ),
)
