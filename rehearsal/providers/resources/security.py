"""Security groups and their rules."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from rehearsal.providers.protocol import Properties
from rehearsal.providers.resources.ec2 import Ec2Row
from rehearsal.providers.resources.row import Api, Field, Row, pascal

_DEFAULT_DESCRIPTION = "Managed by Pulumi"


@dataclass(frozen=True, kw_only=True)
class _SecurityGroup(Ec2Row):
    def create(self, api: Api, inputs: Properties) -> str:
        made = api(
            "create_security_group",
            GroupName=inputs["name"],
            Description=inputs.get("description", _DEFAULT_DESCRIPTION),
            VpcId=inputs["vpcId"],
            **self.tagged(inputs),
        )
        group_id: str = made["GroupId"]
        return group_id

    def complete(self, api: Api, resource_id: str, inputs: Properties) -> None:
        # pulumi-aws takes away the rule by which EC2 lets everything out: only what the program says is open.
        rules = api("describe_security_groups", GroupIds=[resource_id])["SecurityGroups"][0]["IpPermissionsEgress"]
        if rules:
            api("revoke_security_group_egress", GroupId=resource_id, IpPermissions=rules)


@dataclass(frozen=True, kw_only=True)
class _Rule(Ec2Row):
    direction: Literal["ingress", "egress"]

    def create(self, api: Api, inputs: Properties) -> str:
        made = api(
            f"authorize_security_group_{self.direction}",
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_permission(inputs)],
            **self.tagged(inputs),
        )
        rule_id: str = made["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return rule_id

    def shows(self, api: Api, resource_id: str, found: Properties) -> Properties:
        referenced = found.get("ReferencedGroupInfo", {}).get("GroupId")
        owner = {"OwnerId": found.get("GroupOwnerId"), "ReferencedSecurityGroupId": referenced}
        return super().shows(api, resource_id, found | owner)

    def change(self, api: Api, resource_id: str, new: Properties, changed: Collection[str]) -> None:
        rule = {"IpProtocol": new["ipProtocol"]} | {
            field.aws: new[field.name]
            for field in self.fields
            if field.name in new and field.name not in ("securityGroupId", "ipProtocol")
        }
        api(
            "modify_security_group_rules",
            GroupId=new["securityGroupId"],
            SecurityGroupRules=[{"SecurityGroupRuleId": resource_id, "SecurityGroupRule": rule}],
        )

    def delete(self, api: Api, resource_id: str, known: Properties) -> None:
        api(
            f"revoke_security_group_{self.direction}",
            GroupId=known["securityGroupId"],
            SecurityGroupRuleIds=[resource_id],
        )


def _permission(inputs: Properties) -> Properties:
    about = {"Description": inputs["description"]} if "description" in inputs else {}
    permission: Properties = {"IpProtocol": inputs["ipProtocol"]}
    for name, aws in (("fromPort", "FromPort"), ("toPort", "ToPort")):
        if name in inputs:
            permission[aws] = inputs[name]
    if "cidrIpv4" in inputs:
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"]} | about]
    if "cidrIpv6" in inputs:
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"]} | about]
    if "referencedSecurityGroupId" in inputs:
        permission["UserIdGroupPairs"] = [{"GroupId": inputs["referencedSecurityGroupId"]} | about]
    return permission


_RULE_FIELDS = (
    Field(name="securityGroupId", aws="GroupId", replaces=True),
    pascal("ipProtocol"),
    pascal("fromPort"),
    pascal("toPort"),
    pascal("cidrIpv4"),
    pascal("cidrIpv6"),
    pascal("referencedSecurityGroupId"),
    pascal("description"),
)


def _rule(token: str, direction: Literal["ingress", "egress"]) -> _Rule:
    return _Rule(
        token=token,
        direction=direction,
        noun="SecurityGroupRule",
        tag_type="security-group-rule",
        verb_noun="security_group_rule",
        fields=_RULE_FIELDS,
        shown=(pascal("securityGroupRuleId"),),
    )


ROWS: tuple[Row, ...] = (
    _SecurityGroup(
        token="aws:ec2/securityGroup:SecurityGroup",
        noun="SecurityGroup",
        tag_type="security-group",
        verb_noun="security_group",
        id_key="GroupId",
        named="name",
        fields=(
            Field(name="name", aws="GroupName", replaces=True),
            pascal("description", replaces=True),
            pascal("vpcId", replaces=True),
        ),
        shown=(pascal("ownerId"),),
    ),
    _rule("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ingress"),
    _rule("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "egress"),
)
