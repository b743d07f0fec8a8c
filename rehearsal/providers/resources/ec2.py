"""What the resources of EC2 have in common: tags in the creating call, plural describe calls, ARNs made from ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.row import Api, Field, Row, from_aws, tag_list, tags_from, to_aws


@dataclass(frozen=True, kw_only=True)
class Ec2Row(Row):
    """A resource with one call each to create, describe and delete it.

    `noun` is AWS's word in answers ("Subnet": key `Subnet`, id `SubnetId`, list `Subnets`), `tag_type` its word in tag
    specifications and ARNs, `verb_noun` in the names of calls; `id_key` where the id is named otherwise.
    """

    noun: str
    tag_type: str
    verb_noun: str
    id_key: str = ""
    arn: bool = True
    service: str = "ec2"

    @property
    def id_name(self) -> str:
        return self.id_key or f"{self.noun}Id"

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*super().outputs, *(("arn",) if self.arn else ()))

    def create(self, api: Api, inputs: Properties) -> str:
        request = to_aws([field for field in self.fields if not field.later], inputs)
        made = api(f"create_{self.verb_noun}", **request, **self.tagged(inputs))
        resource_id: str = made[self.noun][self.id_name]
        return resource_id

    def complete(self, api: Api, resource_id: str, inputs: Properties) -> None:
        later = [field.name for field in self.fields if field.later and field.name in inputs]
        if later:
            self.change(api, resource_id, inputs, later)

    def read(self, api: Api, resource_id: str, known: Properties) -> Properties | None:
        found = self.find(api, resource_id)
        return None if found is None else self.shows(api, resource_id, found)

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api(f"delete_{self.verb_noun}", **{self.id_name: resource_id})

    def retag(self, api: Api, resource_id: str, known: Properties, put: Mapping[str, str], drop: list[str]) -> None:
        if drop:
            api("delete_tags", Resources=[resource_id], Tags=[{"Key": key} for key in drop])
        if put:
            api("create_tags", Resources=[resource_id], Tags=tag_list(put))

    def find(self, api: Api, resource_id: str) -> Properties | None:
        """AWS's description of it, or None."""
        answer = api(f"describe_{self.verb_noun}s", **{f"{self.id_name}s": [resource_id]})
        found: list[Properties] = answer[f"{self.noun}s"]
        return found[0] if found else None

    def shows(self, api: Api, resource_id: str, found: Properties) -> Properties:
        """`found` in Pulumi's words."""
        properties = from_aws((*self.fields, *self.shown), found)
        properties["tags"] = tags_from(found.get("Tags", []))
        if self.arn and "OwnerId" in found:
            properties["arn"] = f"arn:aws:ec2:{api.region}:{found['OwnerId']}:{self.tag_type}/{resource_id}"
        return properties

    def tagged(self, inputs: Properties) -> Properties:
        """The tag specification of a creating request."""
        tags = inputs.get("tags")
        return {"TagSpecifications": [{"ResourceType": self.tag_type, "Tags": tag_list(tags)}]} if tags else {}


def set_attributes(
    api: Api, operation: str, target: Mapping[str, str], fields: Collection[Field], new: Properties
) -> None:
    """EC2 changes one attribute a call, each as `{"Value": ...}`; one that the user took away goes to false."""
    for field in fields:
        value: Any = new.get(field.name, False)
        api(operation, **target, **{field.aws: {"Value": value}})
