"""Where a session runs is said once, and a detached child finds the same place again."""

import subprocess
import sys
from pathlib import Path

import pytest
from moto import mock_aws

from automation.errors import InvalidRequest
from automation.target import aws_target, home_from, target_from_environment


@pytest.fixture(autouse=True)
def _nobodys_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "RENTBLOCK_TARGET_FACTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("RENTBLOCK_HOME", str(tmp_path))


def test_the_real_target_knows_its_account_and_aws_time(tmp_path: Path) -> None:
    with mock_aws():
        target = aws_target("us-west-2")
    assert (target.mode, target.account_id, target.region) == ("aws", "123456789012", "us-west-2")
    assert target.endpoint_url is None
    assert target.home == tmp_path


def test_aws_region_wins_as_it_does_for_every_other_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-2")
    monkeypatch.setenv("AWS_REGION", "sa-east-1")
    with mock_aws():
        assert aws_target().region == "sa-east-1"


def test_a_client_speaks_to_its_region_and_retries_only_when_it_may() -> None:
    with mock_aws():
        target = aws_target("us-west-2")
    once = target.in_region("sa-east-1").client("ec2", total_max_attempts=1)
    assert once.meta.region_name == "sa-east-1"
    assert once.meta.config.retries["total_max_attempts"] == 1
    assert target.client("ec2").meta.config.retries["total_max_attempts"] > 1


def test_a_child_makes_its_target_by_the_factory_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RENTBLOCK_TARGET_FACTORY", "automation.target:aws_target")
    with mock_aws():
        assert target_from_environment().mode == "aws"


@pytest.mark.parametrize("factory", ["no.such.module:f", "automation.target:no_such", "automation.target", "os:getcwd"])
def test_a_factory_that_makes_no_target_is_named(monkeypatch: pytest.MonkeyPatch, factory: str) -> None:
    monkeypatch.setenv("RENTBLOCK_TARGET_FACTORY", factory)
    with pytest.raises(InvalidRequest, match=r"RENTBLOCK_TARGET_FACTORY|makes no Target"):
        target_from_environment()


def test_home_is_the_one_of_the_environment_or_the_platforms() -> None:
    assert home_from({"RENTBLOCK_HOME": "/somewhere"}) == Path("/somewhere")
    assert home_from({}).name == "rent-the-block"


def test_small_modules_load_without_the_engine_and_the_rest() -> None:
    code = "import sys, automation.errors, automation.ledger.record; sys.exit('pulumi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
