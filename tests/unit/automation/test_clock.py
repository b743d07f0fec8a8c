"""A session's time is AWS's time."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import boto3
import pytest

from automation import clock as clock_module
from automation.clock import AwsClock
from automation.errors import AwsUnreachable

NOON = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)


class Machine:
    """This machine's clock that goes on while it sleeps, turned by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        monkeypatch.setattr(clock_module.time, "clock_gettime", self.read)
        monkeypatch.setattr(clock_module.time, "sleep", self.sleep)
        self.slept: list[float] = []

    def read(self, which: int) -> float:
        assert which == getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def aws_answers(session: boto3.Session, at: datetime) -> None:
    headers = {"date": format_datetime(at, usegmt=True)}
    session.events.emit("after-call.ec2.DescribeRegions", http_response=SimpleNamespace(headers=headers), parsed={})


def test_without_an_answer_there_is_no_time(machine: Machine) -> None:
    with pytest.raises(AwsUnreachable):
        AwsClock(boto3.Session()).now()


def test_time_is_carried_on_between_two_answers(machine: Machine) -> None:
    session = boto3.Session()
    clock = AwsClock(session)
    aws_answers(session, NOON)
    machine.seconds += 90
    assert clock.now() == NOON + timedelta(seconds=90)


def test_a_cut_second_does_not_turn_the_clock_back(machine: Machine) -> None:
    session = boto3.Session()
    clock = AwsClock(session)
    aws_answers(session, NOON)
    machine.seconds += 1.9
    aws_answers(session, NOON + timedelta(seconds=1))
    assert clock.now() == NOON + timedelta(seconds=1.9)


@pytest.mark.parametrize("step", [timedelta(minutes=-10), timedelta(minutes=10)])
def test_aws_is_believed_when_the_machine_slept_or_ran_ahead(machine: Machine, step: timedelta) -> None:
    session = boto3.Session()
    clock = AwsClock(session)
    aws_answers(session, NOON)
    aws_answers(session, NOON + step)
    assert clock.now() == NOON + step


def test_a_wait_ends_at_its_moment_in_small_steps(machine: Machine) -> None:
    session = boto3.Session()
    clock = AwsClock(session)
    aws_answers(session, NOON)
    clock.wait(NOON + timedelta(seconds=2.2))
    assert clock.now() == NOON + timedelta(seconds=2.2)
    assert max(machine.slept) <= 0.5


def test_a_wait_ends_with_its_operation(machine: Machine) -> None:
    session = boto3.Session()
    clock = AwsClock(session)
    aws_answers(session, NOON)
    clock.wait(NOON + timedelta(hours=1), SimpleNamespace(ended=lambda: machine.seconds >= 1003))
    assert clock.now() == NOON + timedelta(seconds=3)
