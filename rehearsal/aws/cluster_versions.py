"""Which Kubernetes versions EKS has, and which support they have at the world's time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time

from rehearsal.aws.clock import naive
from rehearsal.aws.operations import Request
from rehearsal.delays import ClusterVersion
from rehearsal.world import World


class ClusterVersionOperations:
    """Each public method is an operation of EKS."""

    def __init__(self, world: World, versions: Mapping[str, ClusterVersion]) -> None:
        self._world = world
        self._versions = versions

    def describe_cluster_versions(self, request: Request) -> Mapping[str, object]:
        wanted = request.texts("clusterVersions") or list(self._versions)
        listed = [self._described(name) for name in self._versions if name in wanted]
        states = (request.text("versionStatus"),) if request.text("versionStatus") else _supported(request)
        return {"clusterVersions": [each for each in listed if each["versionStatus"] in states]}

    def _described(self, name: str) -> dict[str, object]:
        version = self._versions[name]
        return {
            "clusterVersion": name,
            "clusterType": "eks",
            "versionStatus": _status(version, self._world.now.date()),
            "endOfStandardSupportDate": _midnight(version.standard_until),
            "endOfExtendedSupportDate": _midnight(version.extended_until),
        }


def _supported(request: Request) -> tuple[str, ...]:
    supported = ("STANDARD_SUPPORT", "EXTENDED_SUPPORT")
    return (*supported, "UNSUPPORTED") if request.flag("includeAll") else supported


def _status(version: ClusterVersion, today: date) -> str:
    if today < version.standard_until:
        return "STANDARD_SUPPORT"
    return "EXTENDED_SUPPORT" if today < version.extended_until else "UNSUPPORTED"


def _midnight(day: date) -> datetime:
    return naive(datetime.combine(day, time(tzinfo=UTC)))
