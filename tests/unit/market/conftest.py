"""An EC2 client that answers what a test prepares, and a clock that a test turns."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.stub import Stubber

from automation.ledger.entries import Opened
from automation.ledger.journal import Journal
from automation.ledger.request import RentRequest
from automation.market import purchase
from automation.target import Target
from planning.ranking import Offer

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SESSION = "rtb-20261201-a1b2"


class TurnedClock:
    """Waiting makes its time pass."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        return self.time

    def wait(self, until: datetime, operation: object = None) -> None:
        self.time = max(self.time, until)


class OneClient(boto3.Session):
    """Gives one stubbed EC2 client to everybody, and remembers how it was asked for."""

    def __init__(self, ec2: BaseClient) -> None:
        super().__init__(region_name="us-west-2")
        self.ec2 = ec2
        self.attempts: list[int] = []

    def client(self, service_name: str, *, config: Config, **_: object) -> BaseClient:  # type: ignore[override]
        assert service_name == "ec2"
        self.attempts.append(config.retries["total_max_attempts"])  # type: ignore[attr-defined]
        return self.ec2


@pytest.fixture(scope="session")
def ec2() -> BaseClient:
    """Made once: botocore reads EC2's large model for each new session."""
    return boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-west-2").client("ec2")


@pytest.fixture
def aws(ec2: BaseClient) -> OneClient:
    return OneClient(ec2)


@pytest.fixture
def stub(ec2: BaseClient) -> Iterator[Stubber]:
    with Stubber(ec2) as stubber:
        yield stubber


@pytest.fixture
def target(aws: OneClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setattr(purchase, "check_account", lambda target: None)
    return Target(
        mode="rehearsal",
        account_id="123456789012",
        region="us-west-2",
        boto_session=aws,
        endpoint_url=None,
        clock=TurnedClock(),
        home=tmp_path,
        engine_environment={},
    )


@pytest.fixture
def request_of() -> Callable[..., RentRequest]:
    return lambda **more: RentRequest(endpoint_cidrs=("192.0.2.1/32",), **more)


@pytest.fixture
def journal(tmp_path: Path, request_of: Callable[..., RentRequest]) -> Journal:
    journal = Journal(tmp_path / "journal.jsonl")
    request = request_of(max_fee_usd=Decimal(3500))
    journal.write(Opened(at=NOW, session=SESSION, mode="rehearsal", account_id="123456789012", request=request))
    return journal


@pytest.fixture
def offer() -> Offer:
    return Offer(
        offering_id="cb-0123456789abcdef0",
        instance_type="p6-b300.48xlarge",
        instance_count=1,
        region="us-west-2",
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
        end=datetime(2026, 12, 2, 11, 30, tzinfo=UTC),
        fee_usd=Decimal("3100.03"),
        currency="USD",
    )
