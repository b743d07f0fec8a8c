"""`rentblock rehearse -- CMD`: any command runs in the simulated world, sees only it, and changes nothing outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from automation.errors import ExitCode
from rehearsal.aws.server import ACCOUNT_ID
from tests.end_to_end import inside
from tests.end_to_end.conftest import ROOT, Wish

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal, Rehearse

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

FIXTURE = ROOT / "tests" / "engine" / "fixture"
UP = ("--", "pulumi", "up", "--yes", "--non-interactive", "--stack", "dev")

# What a user may have, and what no child of a rehearsal may see.
OF_THE_USER = {
    "AWS_ACCESS_KEY_ID": "a-real-key-id",
    "AWS_SECRET_ACCESS_KEY": "a-real-secret",
    "AWS_SESSION_TOKEN": "a-real-token",
    "AWS_PROFILE": "a-real-profile",
    "AWS_CONFIG_FILE": "/a-real/config",
    "AWS_SHARED_CREDENTIALS_FILE": "/a-real/credentials",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/a-real/token",
    "KUBECONFIG": "/a-real/kubeconfig",
    "PULUMI_ACCESS_TOKEN": "a-real-access-token",
    "PULUMI_BACKEND_URL": "s3://a-real-bucket",
    "PULUMI_CONFIG_PASSPHRASE": "a-real-passphrase",
    "SSH_AUTH_SOCK": "/a-real/agent",
}


@pytest.fixture(scope="module")
def asked_inside(rehearse: Rehearse) -> Rehearsal:
    """What `inside.py` saw, run by a user who has a lot in the environment."""
    command = ("--", sys.executable, inside.__file__)
    [rehearsal] = rehearse(Wish(name="inside", arguments=command, environment=OF_THE_USER))
    return rehearsal


@pytest.fixture(scope="module")
def seen_inside(asked_inside: Rehearsal) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads(asked_inside.printed)
    return seen


def test_a_rehearsal_ends_with_the_exit_code_of_its_command(asked_inside: Rehearsal) -> None:
    assert asked_inside.exit_code == inside.EXIT_CODE, asked_inside.said


def test_a_child_sees_nothing_of_the_user(seen_inside: dict[str, Any]) -> None:
    environment = seen_inside["environment"]
    assert [name for name, value in environment.items() if "a-real" in value] == []
    assert environment["HOME"] != os.environ["HOME"]
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE"} & environment.keys()


def test_a_child_has_the_credentials_of_the_simulated_account(seen_inside: dict[str, Any]) -> None:
    assert seen_inside["account"] == ACCOUNT_ID


def test_a_reader_that_has_ended_spoils_no_exit_code(seen_inside: dict[str, Any]) -> None:
    assert seen_inside["unread"] == ExitCode.USAGE


def test_offers_are_those_of_the_simulated_market(asked_inside: Rehearsal, seen_inside: dict[str, Any]) -> None:
    offers = json.loads(seen_inside["offers"]["printed"])
    assert {offer["instance_type"] for offer in offers} == {"p6-b300.48xlarge"}
    searches = [call for call in asked_inside.seen.calls if call.action == "DescribeCapacityBlockOfferings"]
    assert {call.principal for call in searches} == {"session"}
    assert asked_inside.seen.bill.purchases == 0


def test_status_says_that_there_is_no_session(seen_inside: dict[str, Any]) -> None:
    status = seen_inside["status"]
    assert status["code"] == ExitCode.UNKNOWN_SESSION
    assert "There is no session yet." in status["said"]


def test_doctor_examines_the_simulated_account(seen_inside: dict[str, Any]) -> None:
    findings = {finding["part"]: finding for finding in json.loads(seen_inside["doctor"]["printed"])}
    assert findings["AWS account"]["ok"] is True
    assert ACCOUNT_ID in findings["AWS account"]["detail"]
    assert "rehearsal" in findings["AWS account"]["detail"]


def test_a_rehearsal_inside_a_rehearsal_is_refused(seen_inside: dict[str, Any]) -> None:
    again = seen_inside["rehearse"]
    assert again["code"] == ExitCode.USAGE
    assert "This is a rehearsal already." in again["said"]


def test_pulumi_up_works_in_a_project_and_leaves_its_files_alone(rehearse: Rehearse) -> None:
    before = contents(FIXTURE)
    [up] = rehearse(Wish(name="fixture", arguments=UP, cwd=FIXTURE))
    assert up.exit_code == 0, up.said + up.printed
    assert "+ 5 created" in up.printed
    made = {call.action for call in up.seen.calls if call.changed_something and call.principal == "pulumi"}
    assert {"CreateVpc", "CreateSubnet", "CreateInternetGateway"} <= made
    assert contents(FIXTURE) == before


def test_pulumi_up_works_in_the_checkout_and_leaves_its_stack_files_alone(rehearse: Rehearse) -> None:
    before = stack_files()
    [up] = rehearse(Wish(name="checkout", arguments=UP))
    assert up.exit_code == 0, up.said + up.printed
    assert [call.action for call in up.seen.calls].count("CreateNodegroup") == 2
    assert up.seen.bill.purchases == 0
    assert stack_files() == before


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def stack_files() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in ROOT.glob("Pulumi*.yaml")}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--scenario", "sunshine"),
            "There is no scenario 'sunshine'; there are: cold-cache, default, engine-crash, failed-addon, "
            "leftover-interface.",
        ),
        (("--", "no-such-command", "--with", "a flag"), "There is no command 'no-such-command'."),
    ],
    ids=["scenario", "command"],
)
def test_what_does_not_exist_is_said_in_a_sentence(arguments: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "rehearsal.command", "rehearse", "--out", str(tmp_path), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == ExitCode.USAGE
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr
