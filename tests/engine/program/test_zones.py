"""The zones of an existing stack stay as they are, on the real engine: whatever AWS lists, no subnet is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses.availability_zones_and_regions import AvailabilityZonesAndRegions
from pulumi import automation

from automation.ledger.folder import SessionFolder
from automation.session.engine import diagnostics
from tests.engine.program.conftest import changes

pytestmark = [
    pytest.mark.engine,
    # Pulumi's SDK leaves the event loop of a program open when its operation has failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ON_DEMAND = {
    "region": "us-west-2",
    "capacity": "on-demand",
    "availabilityZoneId": "usw2-az2",
    "instanceType": "g6.xlarge",
    "model": "qwen3-0.6b",
    "endpointPublicAccessCidrs": ["203.0.113.7/32"],
}

FREE = {"launch_template", "iam_role", "log_group"}

ListZones = Callable[..., None]


@pytest.fixture
def list_zones(monkeypatch: pytest.MonkeyPatch) -> ListZones:
    """What DescribeAvailabilityZones of the simulated AWS answers from now on; without zones it refuses."""

    listing = AvailabilityZonesAndRegions.describe_availability_zones

    def answer(*zone_ids: str) -> None:
        def describe(self: AvailabilityZonesAndRegions) -> Any:
            if not zone_ids:
                raise EC2ClientError("UnauthorizedOperation", "You are not authorized to list zones.")
            listed: Any = listing(self)
            listed.result["AvailabilityZones"] = [
                zone for zone in listed.result["AvailabilityZones"] if zone.zone_id in zone_ids
            ]
            return listed

        monkeypatch.setattr(AvailabilityZonesAndRegions, "describe_availability_zones", describe)

    return answer


def test_an_update_keeps_the_zones_whatever_aws_lists(
    place: Any, open_it: Any, folder: SessionFolder, list_zones: ListZones
) -> None:
    stack = open_it(place)(ON_DEMAND)
    list_zones("usw2-az2", "usw2-az3")
    stack.up(show_secrets=False)
    before = place.everything()
    for listed in (
        ("usw2-az1", "usw2-az2", "usw2-az3"),  # a new zone sorts first
        ("usw2-az1", "usw2-az2"),  # AWS does not list the second zone
        ("usw2-az2",),
        ("usw2-az1", "usw2-az4"),  # AWS does not list the zone of the GPUs
        (),
    ):
        list_zones(*listed)
        assert changes(stack.up(show_secrets=False).summary).keys() == {"same"}, listed
    assert place.everything() == before

    moved = open_it(place)({**ON_DEMAND, "availabilityZoneId": "usw2-az1"})
    list_zones("usw2-az1", "usw2-az2")
    for operation in (moved.preview, moved.up):
        with pytest.raises(automation.CommandError, match="network of this stack is in usw2-az2") as refused:
            operation()
        assert "Traceback" not in str(refused.value)
    assert place.everything() == before
    assert changes(open_it(place)(ON_DEMAND).destroy(show_secrets=False).summary).keys() == {"delete"}
    assert place.everything() == []


def test_a_new_stack_without_two_zones_creates_no_network(
    place: Any, open_it: Any, folder: SessionFolder, list_zones: ListZones
) -> None:
    stack = open_it(place)(ON_DEMAND)
    for listed, says in {
        ("usw2-az2",): "AWS lists only usw2-az2 in us-west-2",
        ("usw2-az1", "usw2-az4"): "usw2-az2 is not among the zones of us-west-2 that EKS can use: usw2-az1, usw2-az4",
        (): "AWS did not list the zones of us-west-2: .*not authorized",
    }.items():
        list_zones(*listed)
        with pytest.raises(automation.CommandError, match=f"network cannot be created: .*{says}") as refused:
            stack.preview()
        assert "Traceback" not in str(refused.value)
    assert place.changes() == []
    # An update of the Automation API has no preview: what needs no network may be created before it fails.
    with pytest.raises(automation.CommandError):
        stack.up(show_secrets=False)
    assert "network cannot be created" in diagnostics(folder.root / "up.events")
    assert {each.kind for each in place.everything()} <= FREE
    stack.destroy(show_secrets=False)
    assert place.everything() == []
