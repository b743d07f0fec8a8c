"""Launch templates: each change is a new version, and the newest becomes the default."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.ec2 import Ec2Row
from rehearsal.providers.resources.row import Api, Field, Row, from_aws, pascal, to_aws

_OUTSIDE_DATA = frozenset({"name", "description", "updateDefaultVersion"})


@dataclass(frozen=True, kw_only=True)
class _LaunchTemplate(Ec2Row):
    def create(self, api: Api, inputs: Properties) -> str:
        described = {"VersionDescription": inputs["description"]} if "description" in inputs else {}
        made = api(
            "create_launch_template",
            LaunchTemplateName=inputs["name"],
            LaunchTemplateData=to_aws(self._data_fields, inputs),
            **described,
            **self.tagged(inputs),
        )
        template_id: str = made["LaunchTemplate"]["LaunchTemplateId"]
        return template_id

    def shows(self, api: Api, resource_id: str, found: Properties) -> Properties:
        latest = api("describe_launch_template_versions", LaunchTemplateId=resource_id, Versions=["$Latest"])
        version = latest["LaunchTemplateVersions"][0]
        properties = super().shows(api, resource_id, found) | from_aws(self._data_fields, version["LaunchTemplateData"])
        # moto keeps the tags of the template itself among those of what it launches; EC2 does not.
        launched = [one for one in properties.get("tagSpecifications", []) if one["resourceType"] != self.tag_type]
        properties["tagSpecifications"] = launched
        if version.get("VersionDescription"):
            properties["description"] = version["VersionDescription"]
        account = found["CreatedBy"].split(":")[4]
        properties["arn"] = f"arn:aws:ec2:{api.region}:{account}:launch-template/{resource_id}"
        return properties

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        if set(changed) == {"updateDefaultVersion"}:
            return
        described = {"VersionDescription": new["description"]} if "description" in new else {}
        made = api(
            "create_launch_template_version",
            LaunchTemplateId=resource_id,
            LaunchTemplateData=to_aws(self._data_fields, new),
            **described,
        )
        if new.get("updateDefaultVersion"):
            version = str(made["LaunchTemplateVersion"]["VersionNumber"])
            api("modify_launch_template", LaunchTemplateId=resource_id, DefaultVersion=version)

    @property
    def _data_fields(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.name not in _OUTSIDE_DATA)


_NETWORK_INTERFACE = (
    pascal("deviceIndex"),
    pascal("networkCardIndex"),
    pascal("interfaceType"),
    pascal("description"),
    pascal("subnetId"),
    Field(name="securityGroups", aws="Groups"),
    Field(name="deleteOnTermination", aws="DeleteOnTermination", form="flag_text"),
    Field(name="associatePublicIpAddress", aws="AssociatePublicIpAddress", form="flag_text"),
)

_BLOCK_DEVICE = (
    pascal("deviceName"),
    pascal(
        "ebs",
        fields=(
            pascal("volumeSize"),
            pascal("volumeType"),
            pascal("iops"),
            pascal("throughput"),
            pascal("kmsKeyId"),
            pascal("snapshotId"),
            Field(name="encrypted", aws="Encrypted", form="flag_text"),
            Field(name="deleteOnTermination", aws="DeleteOnTermination", form="flag_text"),
        ),
    ),
)

_METADATA_OPTIONS = (
    pascal("httpEndpoint"),
    pascal("httpTokens"),
    pascal("httpPutResponseHopLimit"),
    pascal("httpProtocolIpv6"),
    pascal("instanceMetadataTags"),
)

_CAPACITY_RESERVATION = (
    pascal("capacityReservationPreference"),
    pascal(
        "capacityReservationTarget",
        fields=(pascal("capacityReservationId"), pascal("capacityReservationResourceGroupArn")),
    ),
)

_TAG_SPECIFICATION = (pascal("resourceType"), Field(name="tags", aws="Tags", form="tags"))

ROWS: tuple[Row, ...] = (
    _LaunchTemplate(
        token="aws:ec2/launchTemplate:LaunchTemplate",
        noun="LaunchTemplate",
        tag_type="launch-template",
        verb_noun="launch_template",
        named="name",
        fields=(
            Field(name="name", aws="LaunchTemplateName", replaces=True),
            Field(name="description", aws=""),
            Field(name="updateDefaultVersion", aws="", write_only=True),
            pascal("imageId"),
            pascal("instanceType"),
            pascal("keyName"),
            pascal("ebsOptimized"),
            pascal("userData"),
            Field(name="vpcSecurityGroupIds", aws="SecurityGroupIds"),
            pascal("instanceMarketOptions", fields=(pascal("marketType"),)),
            pascal("capacityReservationSpecification", fields=_CAPACITY_RESERVATION),
            pascal("networkInterfaces", fields=_NETWORK_INTERFACE),
            pascal("blockDeviceMappings", fields=_BLOCK_DEVICE),
            pascal("metadataOptions", fields=_METADATA_OPTIONS),
            pascal("monitoring", fields=(pascal("enabled"),)),
            pascal("tagSpecifications", fields=_TAG_SPECIFICATION),
        ),
        shown=(
            Field(name="latestVersion", aws="LatestVersionNumber"),
            Field(name="defaultVersion", aws="DefaultVersionNumber"),
        ),
        renewed=("latestVersion", "defaultVersion"),
    ),
)
