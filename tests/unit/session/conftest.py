"""A session on a day-long block, at any point of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from automation.ledger.record import Record
from automation.ledger.request import RentRequest
from automation.serving.startup import StartupView
from automation.session.observation import GpuGroup, Observation
from automation.session.plan import Plan, plan_of
from planning.block import Block
from planning.catalogue import load

SESSION = "rtb-20261201-a1b2"
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A session whose pieces a test may replace."""

    plan: Plan
    record: Record
    observation: Observation
    ready: StartupView

    def with_record(self, **more: Any) -> "Case":
        return replace(self, record=replace(self.record, **more))

    def seeing(self, **more: Any) -> "Case":
        return replace(self, observation=replace(self.observation, **more))


@pytest.fixture
def rent_request() -> RentRequest:
    return RentRequest(endpoint_cidrs=("192.0.2.1/32",), weights_uri="s3://store/kimi-k3")


@pytest.fixture
def block() -> Block:
    return Block(
        reservation_id="cr-0123456789abcdef0",
        offering_id="cb-0123456789abcdef0",
        instance_type="p6-b300.48xlarge",
        instance_count=1,
        region="us-west-2",
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=START,
        end=START + timedelta(hours=24),
        fee_usd=Decimal("3100.03"),
    )


@pytest.fixture
def record(rent_request: RentRequest, block: Block) -> Record:
    return Record(
        session=SESSION,
        mode="rehearsal",
        account_id="123456789012",
        opened=START - timedelta(hours=6),
        request=rent_request,
        block=block,
    )


@pytest.fixture
def case(record: Record) -> Case:
    """Bought, paid, and nothing made yet."""
    observation = Observation(
        reservation_state="scheduled",
        reserved=None,
        operation=None,
        group=None,
        instances=(),
        usage=(),
        unseen=frozenset(),
        startup=None,
    )
    ready = StartupView(
        phase="acceptance",
        ended=(),
        sentence="The model is ready.",
        late_by=timedelta(0),
        ready_since=START,
        restarts=0,
    )
    return Case(plan=plan_of(record, load()), record=record, observation=observation, ready=ready)


@pytest.fixture
def group() -> Callable[[int], GpuGroup]:
    return lambda desired: GpuGroup(name="eks-gpu", desired=desired, last_activity="", failed=False, suspended=())
