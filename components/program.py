"""The program of a stack: settings, platform, outputs. `pulumi up` runs it, and so does the Automation API."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pulumi
import pulumi_aws as aws

from components import names
from components.cluster import eks_provider
from components.location import LookupFailed, Reservation
from components.next_step import next_step
from components.platform import Platform, PlatformArgs
from components.settings import Settings, read_settings

Answer = TypeVar("Answer")


class AwsLookup:
    """The settings' questions, answered by AWS through the provider that the whole stack uses."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._providers: dict[str, aws.Provider] = {}

    def provider(self, region: str) -> aws.Provider:
        """The stack's only aws provider; every resource that takes tags gets the session's."""
        if region not in self._providers:
            self._providers[region] = aws.Provider(
                "aws",
                region=region,
                default_tags={"tags": {names.SESSION_TAG: self._session}},
            )
        return self._providers[region]

    def reservation(self, region: str, reservation_id: str) -> Reservation:
        ask = partial(aws.ec2.get_capacity_block_reservation, id=reservation_id)
        found = _answer(ask, self._options(region))
        return Reservation(
            instance_type=found.instance_type,
            availability_zone_id=found.availability_zone_id,
            state=found.state,
        )

    def zone_ids(self, region: str) -> tuple[str, ...]:
        only_zones = [aws.GetAvailabilityZonesFilterArgs(name="zone-type", values=["availability-zone"])]
        ask = partial(aws.get_availability_zones, state="available", filters=only_zones)
        found = _answer(ask, self._options(region))
        return tuple(zone_id for zone_id in found.zone_ids if zone_id not in names.ZONES_WITHOUT_EKS)

    def gpu_nodes(self, region: str) -> int | LookupFailed:
        """How many GPU nodes the stack's Auto Scaling group shall run now; 0 for a stack without one.

        A failure is a value: it matters only to an update that would change the nodes.
        """
        options = self._options(region)
        try:
            group = _answer(
                partial(aws.eks.get_node_group, cluster_name=self._session, node_group_name=names.GPU_NODE_GROUP),
                options,
            )
            scaling_groups = [each.name for behind in group.resources for each in behind.autoscaling_groups]
            return sum(_answer(partial(aws.autoscaling.get_group, name=each), options).desired_capacity
                       for each in scaling_groups)  # fmt: skip
        except LookupFailed as error:
            return 0 if _NOT_FOUND.search(str(error)) else error

    def _options(self, region: str) -> pulumi.InvokeOptions:
        return pulumi.InvokeOptions(provider=self.provider(region))


# The provider's words for a cluster or node group that does not exist: an invoke has no error code.
_NOT_FOUND = re.compile(r"ResourceNotFoundException|couldn't find resource|empty result")


def _answer(ask: Callable[..., Answer], options: pulumi.InvokeOptions) -> Answer:
    try:
        return ask(opts=options)
    except Exception as error:  # the SDK raises nothing narrower for an invoke that failed
        # What stands before the provider's own words names the function, twice.
        raise LookupFailed(str(error).rpartition(" returned an error: ")[2]) from error


def session_program() -> None:
    """The stack of one session; its stack's name is the session id. Raises SettingsError before anything is created."""
    session = pulumi.get_stack()
    lookup = AwsLookup(session)
    settings = read_settings(lookup, stack=session)
    providers: list[pulumi.ProviderResource] = [lookup.provider(settings.region), eks_provider()]
    platform = Platform(
        "session",
        PlatformArgs(session=session, settings=settings, gpu_nodes=lookup.gpu_nodes(settings.region)),
        opts=pulumi.ResourceOptions(providers=providers),
    )
    for name, value in stack_outputs(session, platform, settings).items():
        pulumi.export(name, value)


def stack_outputs(session: str, platform: Platform, settings: Settings) -> dict[str, pulumi.Input[str]]:
    """What others read from the stack; `kubeconfig` is secret, `next_step` is for people."""
    return {
        "cluster_name": platform.cluster.cluster_name,
        "kubeconfig": platform.cluster.kubeconfig,
        "region": settings.region,
        "vpc_id": platform.network.vpc_id,
        "availability_zone_id": settings.availability_zone_id,
        "gpu_node_group": platform.nodes.gpu.node_group_name,
        "namespace": names.VLLM,
        "service": names.VLLM,
        "served_model": settings.model.served_name,
        "next_step": next_step(session, settings),
    }
