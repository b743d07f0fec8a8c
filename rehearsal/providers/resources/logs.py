"""CloudWatch log groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.row import Api, Field, Row, from_aws, same


@dataclass(frozen=True, kw_only=True)
class _LogGroup(Row):
    def create(self, api: Api, inputs: Properties) -> str:
        name: str = inputs["name"]
        api("create_log_group", logGroupName=name, **({"tags": inputs["tags"]} if inputs.get("tags") else {}))
        return name

    def complete(self, api: Api, resource_id: str, inputs: Properties) -> None:
        if inputs.get("retentionInDays"):
            self.change(api, resource_id, inputs, ["retentionInDays"])

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        groups = api("describe_log_groups", logGroupNamePrefix=resource_id)["logGroups"]
        found = next((one for one in groups if one["logGroupName"] == resource_id), None)
        if found is None:
            return None
        properties = from_aws(self.fields, found)
        # CloudWatch's ARNs end in `:*`; pulumi-aws shows them without.
        properties["arn"] = found["arn"].removesuffix(":*")
        properties["tags"] = api("list_tags_for_resource", resourceArn=properties["arn"])["tags"]
        return properties

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        days = new.get("retentionInDays")
        if days:
            api("put_retention_policy", logGroupName=resource_id, retentionInDays=days)
        else:
            api("delete_retention_policy", logGroupName=resource_id)

    def retag(self, api: Api, resource_id: str, known: Properties, put: Mapping[str, str], drop: list[str]) -> None:
        if drop:
            api("untag_resource", resourceArn=known["arn"], tagKeys=drop)
        if put:
            api("tag_resource", resourceArn=known["arn"], tags=dict(put))

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_log_group", logGroupName=resource_id)


ROWS: tuple[Row, ...] = (
    _LogGroup(
        token="aws:cloudwatch/logGroup:LogGroup",
        service="logs",
        named="name",
        fields=(Field(name="name", aws="logGroupName", replaces=True), same("retentionInDays")),
        computed=("arn",),
    ),
)
