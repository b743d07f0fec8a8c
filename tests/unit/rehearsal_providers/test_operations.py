"""Virtual time stands still while an engine runs, and jumps when it has ended."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rehearsal.delays import Delay, Delays
from rehearsal.providers.critical_path import Mutation
from rehearsal.providers.operations import OperationLog
from rehearsal.world import World

START = datetime(2027, 1, 4, 16, 0, tzinfo=UTC)
NOBODY = "127.0.0.1:1"
LISTEN = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"


def delay(seconds: int) -> Delay:
    return Delay(low_s=seconds, high_s=seconds, source="this test", date="2027-01-04", confidence="A")


@pytest.fixture
def world() -> World:
    return World(START, 1, Delays(by_name={"long": delay(600), "short": delay(2), "helm_release": delay(10)}))


@pytest.fixture
def log(world: World) -> OperationLog:
    return OperationLog(world.draw)


class Backend:
    """A file backend with one stack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / ".pulumi" / "stacks" / "shop" / "dev.json"
        self.state.parent.mkdir(parents=True)

    def holds(self, *resources: dict[str, object]) -> None:
        self.state.write_text(json.dumps({"checkpoint": {"latest": {"resources": list(resources)}}}))


@pytest.fixture
def backend(tmp_path: Path) -> Backend:
    return Backend(tmp_path)


def urn(name: str, kind: str = "aws:x/y:Z") -> str:
    return f"urn:pulumi:dev::shop::{kind}::{name}"


def resource(name: str, *needs: str, kind: str = "aws:x/y:Z") -> dict[str, object]:
    return {"urn": urn(name, kind), "type": kind, "custom": True, "dependencies": [urn(need) for need in needs]}


def settle(log: OperationLog, world: World, backend: Backend) -> tuple[timedelta, int]:
    ended: list[datetime] = []
    took = log.settle(world, [backend.folder], lambda: ended.append(world.now))
    assert all(when == world.now for when in ended), "told before the jump"
    return took, len(ended)


def test_the_world_jumps_by_the_longest_chain(log: OperationLog, world: World, backend: Backend) -> None:
    backend.holds(resource("one"), resource("two", "one"))
    log.attached(NOBODY)
    log.record(Mutation(urn=urn("one"), kind="create", delay="long"))
    log.record(Mutation(urn=urn("two"), kind="create", delay="short"))
    assert settle(log, world, backend) == (timedelta(seconds=602), 1)
    assert world.now == START + timedelta(seconds=602)


def test_nothing_happens_twice(log: OperationLog, world: World, backend: Backend) -> None:
    backend.holds(resource("one"))
    log.record(Mutation(urn=urn("one"), kind="create", delay="long"))
    settle(log, world, backend)
    assert settle(log, world, backend) == (timedelta(), 0)


def test_a_preview_takes_no_time(log: OperationLog, world: World, backend: Backend) -> None:
    log.attached(NOBODY)
    assert settle(log, world, backend) == (timedelta(), 0)
    assert world.now == START


def test_deletions_are_ordered_by_the_state_of_the_last_settlement(
    log: OperationLog, world: World, backend: Backend
) -> None:
    backend.holds(resource("one"), resource("two", "one"))
    settle(log, world, backend)
    backend.holds()
    log.record(Mutation(urn=urn("one"), kind="delete", delay="long"))
    log.record(Mutation(urn=urn("two"), kind="delete", delay="short"))
    assert settle(log, world, backend) == (timedelta(seconds=602), 1)


def test_a_removed_stack_has_taken_its_time_too(log: OperationLog, world: World, backend: Backend) -> None:
    backend.holds(resource("one"))
    settle(log, world, backend)
    backend.state.unlink()
    log.record(Mutation(urn=urn("one"), kind="delete", delay="long"))
    assert settle(log, world, backend) == (timedelta(seconds=600), 1)


def test_a_helm_release_takes_time_though_another_provider_makes_it(
    log: OperationLog, world: World, backend: Backend
) -> None:
    backend.holds(resource("vllm", kind="kubernetes:helm.sh/v3:Release"))
    assert settle(log, world, backend) == (timedelta(seconds=10), 1)
    backend.holds()
    assert settle(log, world, backend) == (timedelta(seconds=10), 1)


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[str]]:
    """A process that listens, as an engine does while it runs."""
    process = subprocess.Popen([sys.executable, "-c", LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        yield process
        process.kill()


def test_time_stands_still_until_the_engine_has_ended(
    log: OperationLog, world: World, backend: Backend, engine: subprocess.Popen[str]
) -> None:
    assert engine.stdout is not None
    backend.holds(resource("one"))
    log.attached(f"127.0.0.1:{engine.stdout.readline().strip()}")
    log.record(Mutation(urn=urn("one"), kind="create", delay="long"))
    assert log.running()
    assert settle(log, world, backend) == (timedelta(), 0)
    assert world.now == START

    engine.kill()
    engine.wait(timeout=10)
    assert not log.running()
    assert settle(log, world, backend) == (timedelta(seconds=600), 1)


def test_a_killed_engine_has_ended_even_when_nobody_has_collected_it(
    log: OperationLog, engine: subprocess.Popen[str]
) -> None:
    assert engine.stdout is not None
    log.attached(f"127.0.0.1:{engine.stdout.readline().strip()}")
    engine.kill()
    engine.stdout.read()
    for _ in range(200):
        if not log.running():
            break
    assert not log.running()


def test_the_owner_settles_before_the_next_operation(log: OperationLog, world: World, backend: Backend) -> None:
    backend.holds(resource("one"))
    log.before_operation = lambda: settle(log, world, backend) and None
    log.attached(NOBODY)
    log.record(Mutation(urn=urn("one"), kind="create", delay="long"))
    log.attached("127.0.0.1:2")
    assert world.now == START + timedelta(seconds=600)


def test_an_engine_that_attaches_for_a_second_provider_is_still_the_same(log: OperationLog) -> None:
    begun: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        log.before_operation = lambda: begun.append(address)
        log.attached(address)
        log.attached(address)
    assert begun == [address]
