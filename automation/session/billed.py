"""What bills by the hour beside the block: looked up by the session's tag, and turned into journal entries (pure).

AWS's own times are taken where AWS tells them: when a cluster, a gateway or an instance was made, and when an instance
ended. What AWS forgets at once ends when it was first missed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from automation.aws_errors import aws_errors
from automation.errors import AwsSaysNo, RentblockError
from automation.ledger.entries import Entry, UsageEnded, UsageStarted
from automation.ledger.record import Record
from automation.session.observation import Instance, Observation, Unknown
from components.names import SESSION_TAG
from planning.catalogue import UnknownName, load
from planning.costs import Usage, UsageKind, outside_usd

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef
    from mypy_boto3_eks import EKSClient

# "User initiated (2026-12-01 11:02:03 GMT)": EC2's only word on when an instance ended.
_ENDED = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
_GATEWAY_STATES = ["pending", "available", "deleting"]


def instances(ec2: "EC2Client", session: str, reservation_id: str) -> tuple[Instance, ...]:
    """Every instance of the session, also those that EC2 still remembers. Raises as `aws_errors`.

    An open reservation of the account may hold others of the session's: only those of `reservation_id` are the block's.
    """
    with aws_errors("looking at the session's instances"):
        pages = ec2.get_paginator("describe_instances").paginate(Filters=[_tagged(session)])
        return tuple(
            _instance(raw, reservation_id)
            for page in pages
            for found in page["Reservations"]
            for raw in found.get("Instances", [])
        )


def look(
    ec2: "EC2Client", eks: "EKSClient", session: str, opened: datetime, seen: Sequence[Instance] | None
) -> tuple[tuple[Usage, ...], frozenset[UsageKind]]:
    """What bills now, and the kinds that could not be looked at. `seen` None: the instances are not known.

    `opened` stands for the creation of what AWS gives no time for (addresses)."""
    found: list[Usage] = []
    unseen: set[UsageKind] = set()

    def ask(kind: UsageKind, question: Callable[[], Iterable[Usage]]) -> None:
        try:
            found.extend(question())
        except RentblockError:
            unseen.add(kind)

    ask("eks_cluster", lambda: _clusters(eks, session))
    ask("nat_gateway", lambda: _gateways(ec2, session))
    ask("public_ipv4", lambda: _addresses(ec2, session, opened))
    if seen is None:
        unseen |= {"ec2_instance", "ebs_gp3_gib"}
    else:
        found += [_running(instance) for instance in seen if not instance.in_block]
        ask("ebs_gp3_gib", lambda: _volumes(ec2, seen))
    return tuple(found), frozenset(unseen)


def billed_so_far(record: Record, now: datetime) -> Decimal | None:
    """What has been billed beside the fee until `now`, in US$; None when a price is not known."""
    try:
        return outside_usd(record.usage, load(), until=now)
    except UnknownName:
        return None


def usage_entries(observation: Observation, record: Record, now: datetime) -> tuple[Entry, ...]:
    """What the journal does not know yet: what has begun to bill, and what bills no more."""
    known = {(usage.kind, usage.resource_id): usage for usage in record.usage}
    seen = {(usage.kind, usage.resource_id): usage for usage in observation.usage}
    entries: list[Entry] = [UsageStarted(at=now, usage=usage) for key, usage in seen.items() if key not in known]
    for (kind, resource_id), usage in known.items():
        if usage.ended is None and kind not in observation.unseen:
            shown = seen.get((kind, resource_id))
            ended = shown.ended if shown else _gone(usage, observation, now)
            if ended:
                entries.append(UsageEnded(at=now, usage_kind=kind, resource_id=resource_id, ended=ended))
    return tuple(entries)


def _gone(usage: Usage, observation: Observation, now: datetime) -> datetime:
    """A volume goes with its instance, whose id stands in `detail`; anything else ended when it was missed."""
    if usage.kind == "ebs_gp3_gib" and not isinstance(observation.instances, Unknown):
        for instance in observation.instances:
            if instance.instance_id == usage.detail and instance.ended:
                return instance.ended
    return now


def _tagged(session: str) -> "FilterTypeDef":
    return {"Name": f"tag:{SESSION_TAG}", "Values": [session]}


def _instance(raw: "InstanceTypeDef", reservation_id: str) -> Instance:
    state = raw["State"]["Name"]
    told = _ENDED.search(raw.get("StateTransitionReason", ""))
    ended = datetime.strptime(told[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) if told else None
    return Instance(
        instance_id=raw["InstanceId"],
        instance_type=raw["InstanceType"],
        state=state,
        launched=raw["LaunchTime"],
        ended=ended if state == "terminated" else None,
        # Nobody says whether EC2 still names the reservation of an instance that has ended; how it was bought it names.
        in_block=raw.get("CapacityReservationId") == reservation_id or raw.get("InstanceLifecycle") == "capacity-block",
    )


def _running(instance: Instance) -> Usage:
    return Usage(
        kind="ec2_instance",
        resource_id=instance.instance_id,
        detail=instance.instance_type,
        quantity=Decimal(1),
        started=instance.launched,
        ended=instance.ended,
    )


def _clusters(eks: "EKSClient", session: str) -> Iterable[Usage]:
    try:
        with aws_errors("looking at the EKS cluster"):
            cluster = eks.describe_cluster(name=session)["cluster"]
    except AwsSaysNo as error:
        if error.code == "ResourceNotFoundException":
            return []
        raise
    return [_one("eks_cluster", session, cluster["status"], cluster["createdAt"])]


def _gateways(ec2: "EC2Client", session: str) -> Iterable[Usage]:
    with aws_errors("looking at the NAT gateways"):
        living: FilterTypeDef = {"Name": "state", "Values": _GATEWAY_STATES}
        gateways = ec2.describe_nat_gateways(Filters=[living])["NatGateways"]
    return [
        _one("nat_gateway", gateway["NatGatewayId"], gateway["VpcId"], gateway["CreateTime"])
        for gateway in gateways
        if {"Key": SESSION_TAG, "Value": session} in gateway.get("Tags", [])
    ]


def _addresses(ec2: "EC2Client", session: str, opened: datetime) -> Iterable[Usage]:
    with aws_errors("looking at the public addresses"):
        addresses = ec2.describe_addresses(Filters=[_tagged(session)])["Addresses"]
    return [_one("public_ipv4", address["AllocationId"], address.get("PublicIp", ""), opened) for address in addresses]


def _volumes(ec2: "EC2Client", seen: Sequence[Instance]) -> Iterable[Usage]:
    living = [instance.instance_id for instance in seen if instance.state != "terminated"]
    if not living:
        return []
    with aws_errors("looking at the volumes"):
        attached: FilterTypeDef = {"Name": "attachment.instance-id", "Values": living}
        volumes = ec2.describe_volumes(Filters=[attached])["Volumes"]
    return [
        Usage(
            kind="ebs_gp3_gib",
            resource_id=volume["VolumeId"],
            detail=volume["Attachments"][0]["InstanceId"],
            quantity=Decimal(volume["Size"]),
            started=volume["CreateTime"],
            ended=None,
        )
        for volume in volumes
    ]


def _one(kind: UsageKind, resource_id: str, detail: str, started: datetime) -> Usage:
    return Usage(kind=kind, resource_id=resource_id, detail=detail, quantity=Decimal(1), started=started, ended=None)
