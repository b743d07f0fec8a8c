"""Offers, purchases and reservations, asked with boto3."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

HELD = "cr-0123456789abcdef0"
TAGS = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "rent-the-block:session", "Value": "s"}]}]


def offers(ec2: Any, **changes: Any) -> list[dict[str, Any]]:
    asked = {"InstanceType": "p6-b300.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24} | changes
    found: list[dict[str, Any]] = ec2.describe_capacity_block_offerings(**asked)["CapacityBlockOfferings"]
    return found


def buy(ec2: Any, offer: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = {"CapacityBlockOfferingId": offer["CapacityBlockOfferingId"], "InstancePlatform": "Linux/UNIX"} | more
    bought: dict[str, Any] = ec2.purchase_capacity_block(**asked)["CapacityReservation"]
    return bought


def described(ec2: Any, reservation_id: str = HELD) -> dict[str, Any]:
    found = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"]
    assert len(found) == 1
    reservation: dict[str, Any] = found[0]
    return reservation


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_search_finds_the_rest_of_a_day_and_whole_days_in_several_zones(cloud: Any) -> None:
    found = offers(cloud.client("ec2"))
    lengths = [(offer["CapacityBlockDurationHours"], offer["CapacityBlockDurationMinutes"]) for offer in found]
    assert lengths == [(19, 0), (24, 0), (24, 0), (48, 0)]
    assert {offer["EndDate"].timetz() for offer in found} == {cloud.end.timetz()}
    assert len({offer["CapacityBlockOfferingSegments"][0]["AvailabilityZoneId"] for offer in found}) == 2
    assert found[0]["StartDate"] == cloud.world.now + timedelta(minutes=30)
    assert found[1]["StartDate"] == cloud.start


def test_the_fee_is_the_price_of_the_hours(cloud: Any) -> None:
    first, second = offers(cloud.client("ec2"), InstanceCount=2)[:2]
    assert Decimal(first["UpfrontFee"]) == (Decimal("129.168") * 19 * 2).quantize(Decimal("0.01"))
    assert Decimal(second["UpfrontFee"]) == (Decimal("129.168") * 24 * 2).quantize(Decimal("0.01"))
    assert second["CurrencyCode"] == "USD"


def test_both_regions_sell_and_others_do_not(cloud: Any) -> None:
    assert offers(cloud.client("ec2", region="us-east-1"))
    assert offers(cloud.client("ec2", region="sa-east-1")) == []


def test_a_search_keeps_to_its_dates(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    assert [offer["StartDate"] for offer in offers(ec2, StartDateRange=cloud.start, EndDateRange=cloud.end)] == [
        cloud.start
    ]


@pytest.mark.parametrize("hours", [0, 12, 15 * 24, 190 * 24])
def test_lengths_that_aws_does_not_sell_are_refused(cloud: Any, hours: int) -> None:
    with pytest.raises(ClientError) as error:
        offers(cloud.client("ec2"), CapacityDurationHours=hours)
    assert code_of(error) == "InvalidParameterValue"


def test_offering_ids_change_between_searches_and_expire(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    old = offers(ec2)[1]
    assert old["CapacityBlockOfferingId"] not in {offer["CapacityBlockOfferingId"] for offer in offers(ec2)}
    cloud.world.jump(timedelta(hours=1))
    with pytest.raises(ClientError) as error:
        buy(ec2, old)
    assert code_of(error) == "InvalidCapacityBlockOfferingId.Expired"
    assert cloud.aws.meter.bill().purchases == 0


def test_which_region_is_asked_first_changes_no_offer(new_cloud: Any) -> None:
    """Sessions ask all regions at once, so the order is chance: the same world would sell something else each time."""
    told = []
    for regions in (("us-east-1", "us-west-2"), ("us-west-2", "us-east-1")):
        cloud = new_cloud()
        found = {region: offers(cloud.client("ec2", region=region)) for region in regions}
        first = found["us-west-2"][1]
        bought = buy(cloud.client("ec2"), first)["CapacityReservationId"]
        lifetimes = [cloud.aws.blocks.check(each["CapacityBlockOfferingId"]).expires for each in found["us-east-1"]]
        told.append((sorted(found.items()), bought, lifetimes))
    assert told[0] == told[1]
    east, west = ({each["CapacityBlockOfferingId"] for each in answer} for _, answer in told[0][0])
    assert not east & west


def test_a_dry_run_buys_nothing(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    with pytest.raises(ClientError) as error:
        buy(ec2, offers(ec2)[1], DryRun=True)
    assert code_of(error) == "DryRunOperation"
    assert [reservation.reservation_id for reservation in cloud.aws.blocks.reservations] == [HELD]


def test_buying_twice_buys_twice(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    offer = offers(ec2)[1]
    first, second = buy(ec2, offer), buy(ec2, offer)
    assert first["CapacityReservationId"] != second["CapacityReservationId"]
    bill = cloud.aws.meter.bill()
    assert (bill.purchases, bill.block_usd) == (2, Decimal("6200.06"))


def test_a_purchase_is_found_by_its_tag_in_every_state(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    bought = buy(ec2, offers(ec2)[1], TagSpecifications=TAGS)
    by_tag = [{"Name": "tag:rent-the-block:session", "Values": ["s"]}]
    states = []
    for until in (cloud.world.now, cloud.start - timedelta(hours=1), cloud.start, cloud.end):
        cloud.world.advance(until)
        found = ec2.describe_capacity_reservations(Filters=by_tag)["CapacityReservations"]
        assert [reservation["CapacityReservationId"] for reservation in found] == [bought["CapacityReservationId"]]
        states.append(found[0]["State"])
    assert states == ["payment-pending", "scheduled", "active", "expired"]
    other = [{"Name": "tag:rent-the-block:session", "Values": ["another"]}]
    assert ec2.describe_capacity_reservations(Filters=other)["CapacityReservations"] == []
    active = [{"Name": "state", "Values": ["active"]}]
    assert ec2.describe_capacity_reservations(Filters=active)["CapacityReservations"] == []


def test_a_block_that_starts_at_once_is_active_when_its_start_comes(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    bought = buy(ec2, offers(ec2)[0])
    cloud.world.advance(bought["StartDate"])
    assert described(ec2, bought["CapacityReservationId"])["State"] == "active"


def test_the_world_holds_a_reservation_that_nobody_paid_for(cloud: Any) -> None:
    held = described(cloud.client("ec2"))
    assert (held["InstanceType"], held["AvailabilityZoneId"]) == ("p6-b300.48xlarge", "usw2-az2")
    assert (held["StartDate"], held["EndDate"], held["State"]) == (cloud.start, cloud.end, "scheduled")
    assert (held["ReservationType"], held["Tenancy"]) == ("capacity-block", "default")
    assert cloud.aws.meter.bill().block_usd == 0
    assert cloud.aws.inventory() == []


def test_before_the_start_only_a_tag_shows_the_size(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    held = described(ec2)
    assert (held["TotalInstanceCount"], held["AvailableInstanceCount"]) == (0, 0)
    assert {"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "1"} in held["Tags"]
    cloud.world.advance(cloud.start)
    held = described(ec2)
    assert (held["TotalInstanceCount"], held["AvailableInstanceCount"]) == (1, 1)


def test_tags_can_be_put_on_a_reservation(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    ec2.create_tags(Resources=[HELD], Tags=[{"Key": "team", "Value": "llm"}])
    assert {"Key": "team", "Value": "llm"} in described(ec2)["Tags"]


def test_unknown_ids_and_filters_are_refused(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    with pytest.raises(ClientError) as error:
        described(ec2, "cr-0123456789abcdef1")
    assert code_of(error) == "InvalidCapacityReservationId.NotFound"
    with pytest.raises(ClientError) as error:
        ec2.describe_capacity_reservations(Filters=[{"Name": "colour", "Values": ["red"]}])
    assert code_of(error) == "InvalidParameterValue"
    with pytest.raises(ClientError) as error:
        described(cloud.client("ec2", region="us-east-1"))
    assert code_of(error) == "InvalidCapacityReservationId.NotFound"


def test_the_block_behind_a_reservation_can_be_asked_for(cloud: Any) -> None:
    ec2 = cloud.client("ec2")
    cloud.world.advance(datetime(2027, 1, 5, 12, tzinfo=UTC))
    block = ec2.describe_capacity_blocks()["CapacityBlocks"][0]
    assert (block["CapacityReservationIds"], block["State"]) == ([HELD], "active")
    status = ec2.describe_capacity_block_status(CapacityBlockIds=[block["CapacityBlockId"]])
    assert status["CapacityBlockStatuses"][0]["TotalAvailableCapacity"] == 1
