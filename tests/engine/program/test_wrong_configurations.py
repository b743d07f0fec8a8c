"""A wrong configuration stops the first preview, once and readably, and the cloud has not been touched."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.engine

OPEN = ["0.0.0.0/0"]
SENTENCE = "I accept that anyone can reach this endpoint"
TOO_SMALL = {"capacity": "on-demand", "reservationId": None, "instanceType": "p6-b200.48xlarge"}

CASES: dict[str, tuple[dict[str, object], list[tuple[str, str, str]]]] = {
    "unknown key": (
        {"reservationID": "cr-0123456789abcdef0"},
        [("reservationID", "there is no such key", "Did you mean reservationId")],
    ),
    "offering for reservation": (
        {"reservationId": "cb-0123456789abcdef0"},
        [("reservationId", "a cb- id names an offering", "Give cr- and 17 hex digits")],
    ),
    "reservation of another type": (
        {"instanceType": "g6.xlarge", "model": "qwen3-0.6b"},
        [
            (
                "instanceType",
                "it is g6.xlarge, and cr-0123456789abcdef0 holds p6-b300.48xlarge",
                "Set it to p6-b300.48xlarge, or name another reservation",
            )
        ],
    ),
    "reservation in another zone": (
        {"availabilityZoneId": "usw2-az1"},
        [("availabilityZoneId", "it is usw2-az1, and the reservation is in usw2-az2", "Remove it")],
    ),
    "reservation of nobody": (
        {"reservationId": "cr-0123456789abcdef1"},
        [
            ("reservationId", told, "Check the id, and set region")
            for told in (
                "AWS did not show cr-0123456789abcdef1 in us-west-2: reading EC2 Capacity Block Reservation",
                "InvalidCapacityReservationId.NotFound: The Capacity Reservation ID 'cr-0123456789abcdef1'",
            )
        ],
    ),
    "any address": (
        {"endpointPublicAccessCidrs": OPEN},
        [("endpointPublicAccessCidrs", "any address may call the cluster", f"or set allowAnyAddress to: {SENTENCE}")],
    ),
    "another sentence": (
        {"endpointPublicAccessCidrs": OPEN, "allowAnyAddress": "yes"},
        [
            ("allowAnyAddress", f"Input should be '{SENTENCE}'", "Leave it out"),
            ("endpointPublicAccessCidrs", "any address may call the cluster", "Name your own networks"),
        ],
    ),
    "model too big": (
        TOO_SMALL,
        [("model", "needs 2,014.7 GB of GPU memory; 8 GPU(s) of p6-b200.48xlarge", "Choose a smaller model")],
    ),
    "nothing at all": (
        dict.fromkeys(
            ["region", "capacity", "reservationId", "availabilityZoneId", "instanceType", "instanceCount", "model"]
        )
        | {"endpointPublicAccessCidrs": None, "weights": None},
        [
            ("region", "it is missing", "Give a region"),
            ("instanceType", "it is missing", "Give an instance type"),
            ("model", "it is missing", "Give a model"),
            ("endpointPublicAccessCidrs", "it is missing", "Give a list of the networks"),
            ("reservationId", "it is missing, and capacity is block", "Give cr- and 17 hex digits"),
        ],
    ),
    "all that can be wrong before AWS is asked": (
        {
            "reservationID": "cr-0123456789abcdef0",
            "reservationId": "cb-0123456789abcdef0",
            "instanceType": "p6-b200.48xlarge",
            "endpointPublicAccessCidrs": OPEN,
            "instanceCount": 0,
            "logRetentionDays": 8,
        },
        [
            ("reservationID", "there is no such key", "Did you mean reservationId"),
            ("reservationId", "a cb- id names an offering", "Give cr- and 17 hex digits"),
            ("instanceCount", "Input should be greater than or equal to 1", "Give a number from 1 to 64"),
            ("logRetentionDays", "CloudWatch Logs knows no retention of 8 days", "Give one of 1, 3, 5"),
            ("endpointPublicAccessCidrs", "any address may call the cluster", "Name your own networks"),
            ("model", "needs 2,014.7 GB of GPU memory", "Choose a smaller model"),
        ],
    ),
    "all that can be wrong with a reservation that exists": (
        {
            "reservationID": "cr-0123456789abcdef0",
            "instanceType": "p6-b200.48xlarge",
            "availabilityZoneId": "usw2-az1",
            "endpointPublicAccessCidrs": OPEN,
        },
        [
            ("reservationID", "there is no such key", "Did you mean reservationId"),
            ("endpointPublicAccessCidrs", "any address may call the cluster", "Name your own networks"),
            ("model", "needs 2,014.7 GB of GPU memory", "Choose a smaller model"),
            ("instanceType", "holds p6-b300.48xlarge", "Set it to p6-b300.48xlarge"),
            ("availabilityZoneId", "the reservation is in usw2-az2", "Remove it"),
        ],
    ),
}


def problems(output: str) -> dict[str, str]:
    """Each line of the message by its key. The message is the only error among the engine's diagnostics."""
    told = output.partition("Diagnostics:")[2].partition("Resources:")[0]
    [message] = re.findall(r"error: (.*)", told, re.DOTALL)
    first, *lines = message.strip().splitlines()
    assert first == f"{len(lines)} problem(s) in the configuration, nothing was created:"
    return {line.split(":")[0].strip(): line for line in lines}


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=list(CASES))
def test_every_problem_is_told_with_its_key_and_its_remedy(
    shared_place: Any, changes: dict[str, object], expected: list[tuple[str, str, str]]
) -> None:
    shared_place.configure(changes)
    preview = shared_place.pulumi("preview", "--stack", "dev")
    assert preview.returncode != 0
    found = problems(preview.stdout)
    assert found.keys() == {key for key, _, _ in expected}
    for key, what, remedy in expected:
        line = found[key]
        assert what in line.partition(f". {remedy}")[0], line
        assert line.endswith(".")
        assert preview.stdout.count(line) == 1
    assert "Traceback" not in preview.stdout + preview.stderr
    assert shared_place.everything() == []
    assert shared_place.changes() == []


def test_an_up_stops_as_a_preview_does(shared_place: Any) -> None:
    shared_place.configure({"model": "gpt-2"})
    up = shared_place.pulumi("up", "--yes", "--skip-preview", "--stack", "dev")
    assert up.returncode != 0
    assert problems(up.stdout).keys() == {"model"}
    assert shared_place.everything() == []
    assert shared_place.changes() == []


def test_any_address_may_be_let_in_by_who_writes_the_sentence(shared_place: Any) -> None:
    shared_place.configure({"endpointPublicAccessCidrs": OPEN, "allowAnyAddress": SENTENCE})
    assert "to create" in shared_place.works("preview", "--stack", "dev")


def test_a_resource_without_a_provider_is_an_error(shared_place: Any) -> None:
    program = shared_place.checkout / "__main__.py"
    assert program.is_symlink()
    program.unlink()
    program.write_text("import pulumi_aws as aws\naws.ec2.Vpc('stray', cidr_block='10.0.0.0/16')\n")
    preview = shared_place.pulumi("preview", "--stack", "dev")
    assert preview.returncode != 0
    assert "Default provider for 'aws' disabled" in preview.stdout
