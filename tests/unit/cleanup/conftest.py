"""An empty simulated account."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from automation.target import Target
from tests.unit.cleanup.account import StillClock


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    # moto would first load hundreds of machine images that nothing here uses.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield Target(
            mode="aws",
            account_id="123456789012",
            region="us-west-2",
            boto_session=boto3.Session(region_name="us-west-2"),
            endpoint_url=None,
            clock=StillClock(),
            home=tmp_path,
            engine_environment={},
        )
