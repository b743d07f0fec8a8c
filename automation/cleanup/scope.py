"""Whose left-overs are looked for, and how AWS is asked page by page."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from botocore.client import BaseClient

from components.names import SESSION_TAG
from planning.catalogue import Catalogue

from ..target import Target

NOTHING = Decimal("0.00")
# Of EKS, of the AWS Load Balancer Controller, and of the VPC CNI on interfaces, which it leaks when a node dies.
_CLUSTER_NAME_TAGS = ("eks:cluster-name", "elbv2.k8s.aws/cluster", "cluster.k8s.amazonaws.com/name")

# The other value of Kubernetes' tag is "shared": that is somebody else's, and only used by the cluster.
_OWNED = "owned"

# An answer of AWS, or a part of one. Several services are asked here that the boto3 stubs of this project do not cover.
Item = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Found:
    """Something that exists. `usd_per_day` in cents, by list price. `kept`: nobody but people may delete it."""

    resource_id: str
    detail: str = ""
    usd_per_day: Decimal = NOTHING
    kept: bool = False


@dataclass(frozen=True, kw_only=True)
class Scope:
    target: Target
    session: str
    cluster_name: str
    catalogue: Catalogue
    vpc_ids: tuple[str, ...] = ()

    @property
    def tag_filters(self) -> list[Mapping[str, object]]:
        """Each alone is enough: AWS takes several filters of one call together as "and"."""
        return [
            {"Name": f"tag:{SESSION_TAG}", "Values": [self.session]},
            {"Name": f"tag:{self.cluster_tag}", "Values": [_OWNED]},
            *({"Name": f"tag:{key}", "Values": [self.cluster_name]} for key in _CLUSTER_NAME_TAGS),
        ]

    @property
    def cluster_tag(self) -> str:
        return f"kubernetes.io/cluster/{self.cluster_name}"

    def owns(self, tags: Iterable[Mapping[str, str]]) -> bool:
        """Whether tags in AWS's form say that something belongs to the session."""
        said = {tag["Key"]: tag.get("Value", "") for tag in tags}
        return (
            said.get(SESSION_TAG) == self.session
            or said.get(self.cluster_tag) == _OWNED
            or any(said.get(key) == self.cluster_name for key in _CLUSTER_NAME_TAGS)
        )

    def made_by_the_stack(self, tags: Iterable[Mapping[str, str]]) -> bool:
        """Whether tags say that the stack itself, or the launch template that it made, made something."""
        return {"Key": SESSION_TAG, "Value": self.session} in ({**tag} for tag in tags)

    def pages(self, service: str, operation: str, **parameters: object) -> Iterator[Item]:
        """All pages of a listing; one page where the operation has no more."""
        client = self.client(service)
        if client.can_paginate(operation):
            yield from client.get_paginator(operation).paginate(**parameters)
        else:
            yield getattr(client, operation)(**parameters)

    def client(self, service: str) -> BaseClient:
        """Of any service: also of those that the boto3 stubs of this project do not cover."""
        make: Callable[..., BaseClient] = self.target.client
        return make(service)
