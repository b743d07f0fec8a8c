"""What is left of a session in AWS, asked from every service that bills or keeps something else from being deleted.

A destroy that succeeded proves little: controllers in the cluster make load balancers, volumes and network interfaces
that no stack knows, and a crash leaves what never came into the state. So the account is asked three times over: for
the session's tag, for the tags that EKS and Kubernetes put on what belongs to a cluster, and for what lies in the
session's VPC. What cannot be looked at is a finding too: only an answer proves that there is nothing.

Capacity reservations are not looked for: nobody can cancel one, and its fee is paid. It ends by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from planning.catalogue import load

from ..aws_errors import aws_errors
from ..errors import AwsSaysNo
from ..ledger.record import Residual
from ..target import Target
from . import ec2, services
from .scope import NOTHING, Found, Scope

_OTHER_SERVICES: Mapping[str, Callable[[Scope], Iterator[Found]]] = {
    "eks_cluster": services.clusters,
    "eks_node_group": services.node_groups,
    "auto_scaling_group": services.scaling_groups,
    "load_balancer": services.load_balancers,
    "classic_load_balancer": services.classic_load_balancers,
    "log_group": services.log_groups,
    "iam_role": services.roles,
}


_KEPT = "not deleted here, since it may hold data of yours"


def sweep(target: Target, session: str, cluster_name: str) -> tuple[Residual, ...]:
    """Everything of the session that still exists in the target's region, with what it costs a day.

    Empty only when every service has answered and none knew anything. A service that refuses to answer is a Residual of
    its kind without an id. Raises AwsUnreachable and CredentialsMissing: then nothing at all has been learned.
    """
    scope = Scope(target=target.acting_as("sweep"), session=session, cluster_name=cluster_name, catalogue=load())
    vpcs = _look(scope, "vpc", ec2.left(scope, "vpc"))
    inside = replace(scope, vpc_ids=tuple(vpc.resource_id for vpc in vpcs if vpc.resource_id))
    found: list[Residual] = []
    for kind, look in _OTHER_SERVICES.items():
        found += _look(inside, kind, look(inside))
    for kind in ec2.KINDS:
        found += _look(inside, kind, ec2.left(inside, kind)) if kind != "vpc" else vpcs
    return tuple(found)


def _look(scope: Scope, kind: str, left: Iterator[Found]) -> list[Residual]:
    region = scope.target.region
    try:
        with aws_errors(f"looking for what is left ({kind})"):
            return [_residual(kind, region, found) for found in left]
    except AwsSaysNo as error:
        why = f"could not look: {error.happened}"
        return [Residual(kind=kind, resource_id="", region=region, detail=why, usd_per_day=NOTHING)]


def _residual(kind: str, region: str, found: Found) -> Residual:
    detail = "; ".join(part for part in (found.detail, _KEPT if found.kept else "") if part)
    return Residual(
        kind=kind,
        resource_id=found.resource_id,
        region=region,
        detail=detail,
        usd_per_day=found.usd_per_day,
        kept=found.kept,
    )
