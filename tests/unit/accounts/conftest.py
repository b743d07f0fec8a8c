"""A day's session on one p6-b300 as its record tells it, and a way to tell it otherwise."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from automation.ledger.record import CheckResult, Fault, PhaseSpan, Purchase, Record, StartupMark
from automation.ledger.request import RentRequest
from planning.block import Block
from planning.costs import STARTUP_PHASES, Usage

START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
END = START + timedelta(days=1)
FEE = Decimal("3100.03")
CHECKS = ("model_id", "chat", "reasoning", "streaming", "tool_call", "wrong_key", "no_key", "wrong_model")


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def _phases() -> tuple[PhaseSpan, ...]:
    starts = {
        "buy": -300,
        "prepare": -60,
        "wait": -43,
        "start": 0,
        "accept": 11,
        "serve": 11.75,
        "drain": 1390,
        "destroy": 1394,
        "sweep": 1409,
    }
    ends = [*list(starts.values())[1:], 1410]
    return tuple(
        PhaseSpan(name=name, started=at(start), ended=at(end))
        for (name, start), end in zip(starts.items(), ends, strict=True)
    )


def _usage() -> tuple[Usage, ...]:
    def usage(kind: str, name: str, detail: str = "", quantity: str = "1") -> Usage:
        return Usage(
            kind=kind, resource_id=name, detail=detail, quantity=Decimal(quantity), started=at(-55), ended=at(1400)
        )

    return (
        usage("eks_cluster", "rtb-20261201-a1b2"),
        usage("nat_gateway", "nat-0a1b2c3d4e5f60718"),
        usage("public_ipv4", "eipalloc-0a1b2c3d4e5f60718"),
        usage("ec2_instance", "i-0system", "m7i.large"),
        usage("ebs_gp3_gib", "vol-0system", "system", "20"),
    )


@pytest.fixture
def record() -> Record:
    ends = (0.7, 3.2, 3.9, 5.1, 9.4, 11, 11.75)
    return Record(
        session="rtb-20261201-a1b2",
        mode="rehearsal",
        account_id="123456789012",
        opened=at(-301),
        request=RentRequest(endpoint_cidrs=("198.51.100.7/32",)),
        purchases=(
            Purchase(
                offering_id="cb-0a1b2c3d4e5f60718",
                reservation_id="cr-0a1b2c3d4e5f60718",
                fee_usd=FEE,
                bought_at=at(-300),
            ),
        ),
        block=Block(
            reservation_id="cr-0a1b2c3d4e5f60718",
            offering_id="cb-0a1b2c3d4e5f60718",
            instance_type="p6-b300.48xlarge",
            instance_count=1,
            region="us-west-2",
            availability_zone="us-west-2b",
            availability_zone_id="usw2-az2",
            start=START,
            end=END,
            fee_usd=FEE,
        ),
        phases=_phases(),
        startup=tuple(StartupMark(phase=phase, ended=at(end)) for phase, end in zip(STARTUP_PHASES, ends, strict=True)),
        acceptance=tuple(CheckResult(check=check, ok=True, detail="as promised") for check in CHECKS),
        usage=_usage(),
        sweeps=1,
        faults=(Fault(at=at(0.2), what="Auto Scaling: the block was not active yet; tried again."),),
        outcome="ok",
    )


@pytest.fixture
def told_otherwise(record: Record) -> Callable[..., Record]:
    """The same session with some fields of its record replaced."""
    return lambda **changes: replace(record, **changes)


@pytest.fixture
def on_demand(record: Record) -> RentRequest:
    """A wish for capacity by the hour: its session has a block too, of the hours that it planned."""
    return record.request.model_copy(update={"capacity": "on-demand"})


@pytest.fixture
def minute() -> Callable[[float], datetime]:
    """An instant by its minute of the block."""
    return at
