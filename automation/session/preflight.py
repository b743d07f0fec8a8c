"""What would stop a session's stack, found before money is spent: afterwards it would come too late.

It loads Pulumi and its packages, so whoever needs it imports it where it is needed.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from ipaddress import AddressValueError, IPv4Address

import httpx
from botocore.credentials import RefreshableCredentials

from automation.errors import AwsSaysNo, InvalidRequest, MachineInTheWay, RentblockError
from automation.ledger.request import RentRequest
from automation.market import offers
from automation.pins import Judgement
from automation.session.stack_config import stack_config
from automation.target import Target
from components.location import LookupFailed, Reservation
from components.node_groups import SYSTEM_INSTANCE_TYPE
from components.settings import SettingsError, judge
from planning.block import Block
from planning.catalogue import load


@dataclass(frozen=True, kw_only=True)
class _AsBought:
    """Answers the program's questions as AWS will once `block` is bought."""

    target: Target
    block: Block

    def reservation(self, region: str, reservation_id: str) -> Reservation:
        return Reservation(
            instance_type=self.block.instance_type,
            availability_zone_id=self.block.availability_zone_id,
            state="scheduled",
        )

    def zone_ids(self, region: str) -> tuple[str, ...]:
        try:
            return tuple(offers.zone_ids(self.target.in_region(region)).values())
        except RentblockError as error:
            raise LookupFailed(error.happened) from error


# AWS's own answer to this question: the address is the one that its endpoints see, behind any NAT of an office.
_WHO_AM_I = "https://checkip.amazonaws.com"
_WHO_AM_I_TIMEOUT_S = 5.0
# The engine, and what pulumi-eks, the Kubernetes provider and the kubeconfig sign in to the cluster with.
_PROGRAMS = ("pulumi", "aws")


def require_programs(target: Target) -> None:
    """Raise MachineInTheWay when a program lacks that a real session's children call by its name."""
    path = {**os.environ, **target.engine_environment}.get("PATH", os.defpath)
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=path) is None]
    if lacking:
        raise MachineInTheWay(
            happened=f"This machine lacks on PATH: {', '.join(lacking)}.",
            cost="Nothing was bought.",
            remedy="Install it or put its folder on PATH; `rentblock doctor` says what else lacks.",
        )


def warnings(target: Target, request: RentRequest) -> Iterator[str]:
    """What may well stop the session after the purchase, but that only its user can judge."""
    credentials = target.boto_session.get_credentials()
    if credentials and credentials.token and not isinstance(credentials, RefreshableCredentials):
        yield (
            "The credentials are a session token that nobody can renew from here: when it ends, the session stands "
            "still, and what bills beside the block bills on, until `rentblock rent --session` goes on with new ones. "
            "A role, or a profile that takes one, renews itself."
        )
    address = _own_address() if target.mode == "aws" else None
    if address and not any(address in cidr for cidr in request.endpoint_cidrs):
        yield (
            f"AWS sees this machine as {address}, which --cidr does not include: unless it reaches the cluster by "
            "another way, the session could not make, prove or drain what it serves."
        )


def image_warnings(judgements: Iterable[Judgement], block: Block) -> Iterator[str]:
    """What a registry's rate limit may cost on `block`: nodes pull while it is paid."""
    for judged in judgements:
        if judged.rate_limited:
            yield (
                f"The registry of {judged.pin.value} refuses requests from this machine for now (HTTP 429). It counts "
                "anonymous pulls by address, and all nodes of a session pull through one NAT address. If it refuses "
                f"them too, the model server does not start, and each hour costs {_usd_per_hour(block)}. Pull from a "
                "mirror or a pull-through cache: --image-registry-prefix."
            )


def _usd_per_hour(block: Block) -> str:
    if block.fee_usd:
        hours = Decimal((block.end - block.start) / timedelta(hours=1))
        return f"US${block.fee_usd / hours:,.2f} of the block"
    price = load().instance_type(block.instance_type).on_demand_usd_per_hour
    return f"US${price.value * block.instance_count:,.2f}" if price else "a paid hour"


def _own_address() -> IPv4Address | None:
    """The address from which this machine reaches AWS, as a service of AWS's own tells it; None when nobody tells."""
    try:
        return IPv4Address(httpx.get(_WHO_AM_I, timeout=_WHO_AM_I_TIMEOUT_S).text.strip())
    except (httpx.HTTPError, AddressValueError):
        return None


def require_system_nodes(target: Target, block: Block) -> None:
    """Raise InvalidRequest when the block's zone has no machine for the nodes that serve nobody but the cluster."""
    try:
        zones = offers.zones_with(target.in_region(block.region), SYSTEM_INSTANCE_TYPE)
    except AwsSaysNo:
        # Whoever may not ask can still make them.
        return
    if block.availability_zone not in zones:
        raise InvalidRequest(
            happened=f"{block.availability_zone} has no {SYSTEM_INSTANCE_TYPE}, which the cluster needs besides.",
            cost="Nothing was bought.",
            remedy="Take an offer in another zone.",
        )


def require_a_stack(target: Target, request: RentRequest, block: Block) -> None:
    """Raise InvalidRequest, with everything that the program would refuse about a session on `block`."""
    try:
        settings = judge(stack_config(request, block, image_digest=None), _AsBought(target=target, block=block))
        if settings.zone_problems:
            raise SettingsError(settings.zone_problems)
    except SettingsError as error:
        problems = "; ".join(f"{found.key}: {found.what}. {found.remedy}" for found in error.problems)
        raise InvalidRequest(
            happened=f"The program would refuse this session: {problems}.",
            cost="Nothing was bought.",
            remedy="Put these right and try again.",
        ) from error
