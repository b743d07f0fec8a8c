"""What EKS says of the session's cluster, node groups and add-ons, before and after `pulumi up`.

The AWS provider waits for a creation and records one that failed. The next `up` only reads such a resource and reports
success, so a session would start its nodes without CoreDNS or without an Auto Scaling group. So a failed creation is
deleted before the next try, and `up` counts as done only when EKS says ACTIVE for all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import WaiterError
from pulumi import automation as auto

from automation.aws_errors import aws_errors
from automation.errors import AwsSaysNo, EngineFailed
from automation.target import Target

_FAILED = frozenset({"FAILED", "CREATE_FAILED"})
_CLUSTER = "aws:eks/cluster:Cluster"
_KINDS = {"aws:eks/addon:Addon": "addon", "aws:eks/nodeGroup:NodeGroup": "nodegroup", _CLUSTER: "cluster"}
# EKS's names for what belongs to a cluster: parameter of the calls, and kind in sentences.
_NAME_KEYS = {"addon": "addonName", "nodegroup": "nodegroupName", "cluster": "name"}
_WORDS = {"addon": "add-on", "nodegroup": "node group", "cluster": "cluster"}


@dataclass(frozen=True, kw_only=True)
class EksResource:
    """A cluster, node group or add-on of the stack, and what EKS says of it. `status` None: EKS does not have it."""

    urn: str
    kind: str
    which: Mapping[str, str]
    status: str | None
    issues: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """For example: `add-on coredns is CREATE_FAILED: InsufficientNumberOfReplicas: ...`."""
        why = f": {'; '.join(self.issues)}" if self.issues else ""
        return f"{_WORDS[self.kind]} {self.which[_NAME_KEYS[self.kind]]} is {self.status or 'gone'}{why}"


def delete_failed(target: Target, stack: auto.Stack) -> tuple[EksResource, ...]:
    """Delete what EKS failed to create, and remove it from the stack's state, so that the next `up` creates it again.

    Add-ons and node groups go before their cluster. Gives what was deleted. Raises as `aws_errors`, and
    auto.CommandError when the state cannot be refreshed.
    """
    failed = [one for one in _resources(target, stack) if one.status in _FAILED]
    eks: Any = target.client("eks")
    for one in sorted(failed, key=lambda each: each.kind == "cluster"):
        with aws_errors(f"deleting the {one.sentence}"):
            try:
                getattr(eks, f"delete_{one.kind}")(**one.which)
                eks.get_waiter(f"{one.kind}_deleted").wait(**one.which)
            except WaiterError as error:
                raise EngineFailed(
                    happened=f"EKS does not delete the {one.sentence}.",
                    cost="It may be billed until it is deleted.",
                    remedy="The next try asks EKS again.",
                ) from error
    if failed:
        stack.refresh(target=[one.urn for one in failed], show_secrets=False, suppress_outputs=True, color="never")
    return tuple(failed)


def require_active(target: Target, stack: auto.Stack) -> None:
    """Raise EngineFailed with EKS's own reasons unless everything of the stack in EKS is ACTIVE."""
    wrong = [one for one in _resources(target, stack) if one.status != "ACTIVE"]
    if wrong:
        raise EngineFailed(
            happened=f"`pulumi up` ended, but EKS says: {'; '.join(one.sentence for one in wrong)}.",
            cost="What the stack has created stays and is billed. No GPU nodes were started.",
            remedy="The next try deletes what EKS failed to create and creates it again.",
        )


def _resources(target: Target, stack: auto.Stack) -> Iterator[EksResource]:
    for entry in (stack.export_stack().deployment or {}).get("resources", []):
        kind = _KINDS.get(entry["type"])
        if kind is not None and entry.get("id"):
            cluster, _, name = entry["id"].partition(":")
            which = {"name": cluster} if kind == "cluster" else {"clusterName": cluster, _NAME_KEYS[kind]: name}
            status, issues = _look(target, kind, which)
            yield EksResource(urn=entry["urn"], kind=kind, which=which, status=status, issues=issues)


def _look(target: Target, kind: str, which: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    try:
        with aws_errors(f"looking at the {_WORDS[kind]} {which[_NAME_KEYS[kind]]}"):
            shown = getattr(target.client("eks"), f"describe_{kind}")(**which)[kind]
    except AwsSaysNo as error:
        if error.code == "ResourceNotFoundException":
            return None, ()
        raise
    issues = shown.get("health", {}).get("issues", [])
    return shown["status"], tuple(f"{one.get('code', '')}: {one.get('message', '')}" for one in issues)
