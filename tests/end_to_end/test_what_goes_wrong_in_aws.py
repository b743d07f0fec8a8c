"""Whole sessions in which AWS fails a creation, or someone leaves a network interface in the VPC."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.conftest import Wish

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal, Rehearse

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def failed_addon(rehearse: Rehearse) -> Rehearsal:
    [rehearsal] = rehearse(Wish(name="failed-addon", arguments=("--scenario", "failed-addon")))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


@pytest.fixture(scope="module")
def leftover(rehearse: Rehearse) -> Rehearsal:
    [rehearsal] = rehearse(Wish(name="leftover", arguments=("--scenario", "leftover-interface")))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


def operations(rehearsal: Rehearsal) -> list[str]:
    entries = map(json.loads, rehearsal.seen.journals[0].splitlines())
    return [entry["name"] for entry in entries if entry["kind"] == "operation-started"]


def test_a_failed_addon_is_created_again_before_the_block_starts(failed_addon: Rehearsal) -> None:
    assert operations(failed_addon) == ["up", "up", "destroy"]
    assert failed_addon.report.outcome == "ok"
    coredns = [
        (call.action, call.status)
        for call in failed_addon.seen.calls
        if call.parameters.get("addonName") == "coredns" and call.action in ("CreateAddon", "DeleteAddon")
    ]
    assert [action for action, status in coredns if status < 400][:3] == ["CreateAddon", "DeleteAddon", "CreateAddon"]


def test_one_destroy_deletes_a_vpc_in_which_someone_left_an_interface(leftover: Rehearsal) -> None:
    assert operations(leftover) == ["up", "destroy"]
    assert {item.kind for item in leftover.seen.left} == {"capacity_block"}
    deleted = [call for call in leftover.seen.calls if call.action == "DeleteNetworkInterface" and call.status < 400]
    assert [call.by for call in deleted] == ["sweep"]
    refused = [call for call in leftover.seen.calls if call.action == "DeleteSubnet" and call.status >= 400]
    assert refused, "the scenario did not let EC2 refuse anything"


def test_each_rehearsal_writes_who_called_which_action(leftover: Rehearsal) -> None:
    rows = json.loads((leftover.folder / "out" / "calls.json").read_text())
    assert rows == sorted(rows, key=lambda row: (row["action"], row["by"]))
    assert {row["by"] for row in rows} >= {"provider", "runner", "purchase", "sweep"}
    bought = [row for row in rows if row["action"] == "ec2:PurchaseCapacityBlock"]
    assert bought == [{"action": "ec2:PurchaseCapacityBlock", "by": "purchase", "count": 1}]
    assert sum(row["count"] for row in rows) <= len(leftover.seen.calls)


def test_the_report_names_the_providers_and_how_they_were_obtained(leftover: Rehearsal) -> None:
    assert leftover.report.versions["provider-aws"].startswith("7.51.1, ")
    assert leftover.report.versions["provider-eks"] == "4.4.0, fake"
