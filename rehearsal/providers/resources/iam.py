"""IAM roles and the policies attached to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.row import Api, Field, Row, from_aws, pascal, tag_list, tags_from, to_aws


@dataclass(frozen=True, kw_only=True)
class _Role(Row):
    def create(self, api: Api, inputs: Properties) -> str:
        tags = {"Tags": tag_list(inputs["tags"])} if inputs.get("tags") else {}
        name: str = api("create_role", **to_aws(self.fields, inputs), **tags)["Role"]["RoleName"]
        return name

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        found = api("get_role", RoleName=resource_id)["Role"]
        return from_aws((*self.fields, *self.shown), found) | {"tags": tags_from(found.get("Tags", []))}

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        if "assumeRolePolicy" in changed:
            api("update_assume_role_policy", RoleName=resource_id, PolicyDocument=new["assumeRolePolicy"])
        if set(changed) & {"description", "maxSessionDuration"}:
            fields = [field for field in self.fields if field.name in ("description", "maxSessionDuration")]
            api("update_role", RoleName=resource_id, **to_aws(fields, new))

    def retag(self, api: Api, resource_id: str, known: Properties, put: Mapping[str, str], drop: list[str]) -> None:
        if drop:
            api("untag_role", RoleName=resource_id, TagKeys=drop)
        if put:
            api("tag_role", RoleName=resource_id, Tags=tag_list(put))

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("delete_role", RoleName=resource_id)


@dataclass(frozen=True, kw_only=True)
class _RolePolicyAttachment(Row):
    def create(self, api: Api, inputs: Properties) -> str:
        api("attach_role_policy", **to_aws(self.fields, inputs))
        return f"{inputs['role']}/{inputs['policyArn']}"

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        attached = api("list_attached_role_policies", RoleName=known["role"])["AttachedPolicies"]
        if not any(policy["PolicyArn"] == known["policyArn"] for policy in attached):
            return None
        return {"role": known["role"], "policyArn": known["policyArn"]}

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api("detach_role_policy", **to_aws(self.fields, known))


@dataclass(frozen=True, kw_only=True)
class _RolePolicy(Row):
    """A policy that is written into its role."""

    def create(self, api: Api, inputs: Properties) -> str:
        self.change(api, "", inputs, ())
        return f"{inputs['role']}:{inputs['name']}"

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        role, _, name = resource_id.partition(":")
        return from_aws(self.fields, api("get_role_policy", RoleName=role, PolicyName=name))

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        api("put_role_policy", **to_aws(self.fields, new))

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        role, _, name = resource_id.partition(":")
        api("delete_role_policy", RoleName=role, PolicyName=name)


ROWS: tuple[Row, ...] = (
    _Role(
        token="aws:iam/role:Role",
        service="iam",
        regional=False,
        named="name",
        fields=(
            Field(name="name", aws="RoleName", replaces=True),
            Field(name="assumeRolePolicy", aws="AssumeRolePolicyDocument", form="json"),
            pascal("description"),
            pascal("maxSessionDuration"),
            pascal("path", replaces=True),
        ),
        shown=(pascal("arn"), pascal("createDate"), Field(name="uniqueId", aws="RoleId")),
    ),
    _RolePolicyAttachment(
        token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        service="iam",
        regional=False,
        fields=(Field(name="role", aws="RoleName", replaces=True), pascal("policyArn", replaces=True)),
        taggable=False,
    ),
    _RolePolicy(
        token="aws:iam/rolePolicy:RolePolicy",
        service="iam",
        regional=False,
        named="name",
        fields=(
            Field(name="name", aws="PolicyName", replaces=True),
            Field(name="role", aws="RoleName", replaces=True),
            Field(name="policy", aws="PolicyDocument", form="json"),
        ),
        taggable=False,
    ),
)
