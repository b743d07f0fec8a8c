"""What AWS sells and what is bought, read as AWS words it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.stub import Stubber

from automation.errors import AwsSaysNo, CredentialsMissing, NoOffer
from automation.market import offers, reservations
from automation.market.offers import Wanted
from automation.target import Target

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
WANTED = Wanted(
    instance_type="p6-b300.48xlarge",
    instance_count=1,
    hours=24,
    start_from=NOW,
    end_until=NOW + timedelta(weeks=8),
)
ZONES = {
    "AvailabilityZones": [
        {"ZoneName": "us-west-2a", "ZoneId": "usw2-az1"},
        {"ZoneName": "us-west-2b", "ZoneId": "usw2-az2"},
    ]
}


def offering(number: int, **more: Any) -> dict[str, Any]:
    return {
        "CapacityBlockOfferingId": f"cb-{number}",
        "InstanceType": "p6-b300.48xlarge",
        "InstanceCount": 1,
        "AvailabilityZone": "us-west-2b",
        "StartDate": NOW + timedelta(hours=1),
        "EndDate": NOW + timedelta(hours=25),
        "UpfrontFee": "3100.0300",
        "CurrencyCode": "USD",
        **more,
    }


def asked(**more: Any) -> dict[str, Any]:
    return {
        "InstanceType": "p6-b300.48xlarge",
        "InstanceCount": 1,
        "CapacityDurationHours": 24,
        "StartDateRange": NOW,
        "EndDateRange": NOW + timedelta(weeks=8),
        **more,
    }


def test_every_page_is_read_and_prices_lose_no_cent(target: Target, stub: Stubber) -> None:
    first = {"CapacityBlockOfferings": [offering(1)], "NextToken": "more"}
    stub.add_response("describe_capacity_block_offerings", first, asked())
    stub.add_response(
        "describe_capacity_block_offerings", {"CapacityBlockOfferings": [offering(2)]}, asked(NextToken="more")
    )
    stub.add_response("describe_availability_zones", ZONES)
    found = offers.search(target, WANTED, ["us-west-2"]).offers
    assert [offer.offering_id for offer in found] == ["cb-1", "cb-2"]
    assert found[0].fee_usd == Decimal("3100.03")
    assert found[0].availability_zone_id == "usw2-az2"


def test_an_offering_with_a_gap_is_passed_over(target: Target, stub: Stubber) -> None:
    segments = [{"AvailabilityZone": "us-west-2b"}, {"AvailabilityZone": "us-west-2b"}]
    listed = [
        offering(1, CapacityBlockOfferingSegments=segments),
        offering(2, CapacityBlockOfferingSegments=segments[:1]),
    ]
    stub.add_response("describe_capacity_block_offerings", {"CapacityBlockOfferings": listed})
    stub.add_response("describe_availability_zones", ZONES)
    assert [offer.offering_id for offer in offers.search(target, WANTED, ["us-west-2"]).offers] == ["cb-2"]


def test_one_silent_region_does_not_hide_the_others(
    target: Target, stub: Stubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "_AT_ONCE", 1)
    stub.add_client_error("describe_capacity_block_offerings", "OptInRequired", "not here")
    stub.add_response("describe_capacity_block_offerings", {"CapacityBlockOfferings": [offering(1)]})
    stub.add_response("describe_availability_zones", ZONES)
    found = offers.search(target, WANTED, ["me-south-1", "us-west-2"])
    assert [offer.offering_id for offer in found.offers] == ["cb-1"]
    assert [region for region, _ in found.unanswered] == ["me-south-1"]


def test_credentials_that_no_region_takes_are_an_error(target: Target, stub: Stubber) -> None:
    stub.add_client_error("describe_capacity_block_offerings", "AuthFailure")
    with pytest.raises(CredentialsMissing):
        offers.search(target, WANTED, ["us-west-2"])


def test_regions_are_asked_from_aws_and_never_from_a_table(target: Target, stub: Stubber) -> None:
    stub.add_response("describe_regions", {"Regions": [{"RegionName": "us-west-2"}, {"RegionName": "sa-east-1"}]}, {})
    assert offers.enabled_regions(target) == ("sa-east-1", "us-west-2")


def test_on_demand_takes_a_zone_that_has_the_machine(target: Target, stub: Stubber) -> None:
    stub.add_response(
        "describe_instance_type_offerings",
        {"InstanceTypeOfferings": [{"Location": "us-west-2-lax-1a"}, {"Location": "us-west-2b"}]},
        {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": ["g6.xlarge"]}]},
    )
    no_local_zones = {"Filters": [{"Name": "zone-type", "Values": ["availability-zone"]}]}
    stub.add_response("describe_availability_zones", ZONES, no_local_zones)
    assert offers.on_demand_zone(target, "g6.xlarge") == ("us-west-2b", "usw2-az2")


def test_on_demand_passes_over_a_zone_that_cannot_hold_a_cluster(target: Target, stub: Stubber) -> None:
    stub.add_response("describe_instance_type_offerings", {"InstanceTypeOfferings": [{"Location": "us-east-1a"}]})
    zones = {"AvailabilityZones": [{"ZoneName": "us-east-1a", "ZoneId": "use1-az3"}]}
    stub.add_response("describe_availability_zones", zones)
    with pytest.raises(NoOffer):
        offers.on_demand_zone(target, "g6.xlarge")


def test_a_region_without_the_machine_says_so(target: Target, stub: Stubber) -> None:
    stub.add_response("describe_instance_type_offerings", {"InstanceTypeOfferings": []})
    stub.add_response("describe_availability_zones", ZONES)
    with pytest.raises(NoOffer, match=r"us-west-2 has no g6\.xlarge"):
        offers.on_demand_zone(target, "g6.xlarge")


def test_a_look_up_by_session_asks_for_every_state(target: Target, stub: Stubber) -> None:
    filters = [{"Name": "tag:rent-the-block:session", "Values": ["s"]}]
    states = ["payment-pending", "payment-failed", "scheduled", "active", "expired"]
    listed = [{"CapacityReservationId": f"cr-{state}", "State": state} for state in states]
    stub.add_response("describe_capacity_reservations", {"CapacityReservations": listed}, {"Filters": filters})
    assert [found.state for found in reservations.by_session(target, "s")] == states


def test_the_size_of_a_block_that_has_not_started_stands_in_its_tag(target: Target, stub: Stubber) -> None:
    raw = {
        "CapacityReservationId": "cr-1",
        "State": "scheduled",
        "TotalInstanceCount": 0,
        "AvailableInstanceCount": 0,
        "Tags": [
            {"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "4"},
            {"Key": "rent-the-block:session", "Value": "s"},
        ],
    }
    stub.add_response("describe_capacity_reservations", {"CapacityReservations": [raw]})
    found = reservations.by_id(target, "cr-1")
    assert found is not None
    assert (found.instance_count, found.session, found.start) == (4, "s", None)


def test_a_reservation_that_aws_has_forgotten_is_no_error(target: Target, stub: Stubber) -> None:
    stub.add_client_error("describe_capacity_reservations", "InvalidCapacityReservationId.NotFound")
    assert reservations.by_id(target, "cr-1") is None
    stub.add_client_error("describe_capacity_reservations", "UnauthorizedOperation")
    with pytest.raises(AwsSaysNo):
        reservations.by_id(target, "cr-1")
