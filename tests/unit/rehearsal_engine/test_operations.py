"""Virtual time stands still while an engine runs, and jumps when it has ended."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rehearsal.delays import Delay, Delays, load_constants
from rehearsal.engine.operations import Operations
from rehearsal.world import World

START = datetime(2027, 1, 4, 16, 0, tzinfo=UTC)
ENDPOINT = "http://127.0.0.1:1"
CLUSTER, VPC = "aws:eks/cluster:Cluster", "aws:ec2/vpc:Vpc"
SECONDS = {
    "eks_cluster_create": 600,
    "eks_cluster_delete": 300,
    "node_group_create": 120,
    "node_group_create_empty": 60,
}


def delay(seconds: int) -> Delay:
    return Delay(low_s=seconds, high_s=seconds, source="this test", date="2027-01-04", confidence="A")


@pytest.fixture
def world() -> World:
    by_name = {name: delay(seconds) for name, seconds in SECONDS.items()}
    return World(START, 1, Delays(by_name={"aws_call": delay(2), "helm_release": delay(10), **by_name}))


@pytest.fixture
def operations(world: World) -> Operations:
    return Operations(ENDPOINT, world.draw)


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


def resource(name: str, kind: str, *needs: str, **more: object) -> dict[str, object]:
    return {"urn": f"urn:pulumi:dev::shop::{kind}::{name}", "type": kind, "custom": True, "id": name,
            "dependencies": list(needs), **more}  # fmt: skip


VPC_URN = f"urn:pulumi:dev::shop::{VPC}::vpc"


def settle(operations: Operations, world: World, backend: Backend) -> tuple[float, int]:
    """The seconds of the jump, and how often the end of an operation was told."""
    ended: list[datetime] = []
    took = operations.settle(world, [backend.folder], lambda: ended.append(world.now))
    assert all(when == world.now for when in ended), "told before the jump"
    return took.total_seconds(), len(ended)


def test_the_world_jumps_by_the_longest_chain(operations: Operations, world: World, backend: Backend) -> None:
    backend.holds(resource("vpc", VPC), resource("cluster", CLUSTER, VPC_URN))
    assert settle(operations, world, backend) == (602, 1)
    assert world.now == START + timedelta(seconds=602)
    assert settle(operations, world, backend) == (0, 0)


def test_deletions_follow_the_dependencies_of_the_state_before(
    operations: Operations, world: World, backend: Backend
) -> None:
    backend.holds(resource("vpc", VPC), resource("cluster", CLUSTER, VPC_URN))
    settle(operations, world, backend)
    backend.holds()
    assert settle(operations, world, backend) == (302, 1)


def test_a_removed_stack_has_taken_its_time_too(operations: Operations, world: World, backend: Backend) -> None:
    backend.holds(resource("cluster", CLUSTER))
    settle(operations, world, backend)
    backend.state.unlink()
    assert settle(operations, world, backend) == (300, 1)


def test_an_update_takes_a_call_and_a_replacement_both_halves(
    operations: Operations, world: World, backend: Backend
) -> None:
    backend.holds(resource("cluster", CLUSTER, modified="1"))
    settle(operations, world, backend)
    backend.holds(resource("cluster", CLUSTER, modified="2"))
    assert settle(operations, world, backend) == (2, 1)
    backend.holds(resource("cluster", CLUSTER, modified="3", id="another"))
    assert settle(operations, world, backend) == (900, 1)


@pytest.mark.parametrize(("size", "seconds"), [(0, 60), (2, 120)])
def test_a_node_group_without_nodes_is_created_sooner(
    operations: Operations, world: World, backend: Backend, size: int, seconds: int
) -> None:
    sizes = {"scalingConfig": {"minSize": 0, "desiredSize": size, "maxSize": 2}}
    backend.holds(resource("gpu", "aws:eks/nodeGroup:NodeGroup", inputs=sizes))
    assert settle(operations, world, backend) == (seconds, 1)


def test_a_helm_release_takes_time_and_other_kubernetes_objects_none(
    operations: Operations, world: World, backend: Backend
) -> None:
    backend.holds(resource("vllm", "kubernetes:helm.sh/v3:Release"), resource("ns", "kubernetes:core/v1:Namespace"))
    assert settle(operations, world, backend) == (10, 1)


def test_every_delay_of_a_slow_type_is_in_the_constants(world: World) -> None:
    names = [f"{name}_{kind}" for name in ("eks_cluster", "node_group", "eks_addon", "nat_gateway")
             for kind in ("create", "delete")]  # fmt: skip
    assert {*names, "node_group_create_empty", "aws_call", "helm_release"} <= set(load_constants().delays.by_name)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the name and the endpoint of the world's AWS provider."""
    program = tmp_path / "pulumi-resource-aws"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"], env={**os.environ, "AWS_ENDPOINT_URL": ENDPOINT}) as process:
        yield process
        process.kill()


def test_time_stands_still_while_the_provider_of_an_engine_runs(
    operations: Operations, world: World, backend: Backend, provider: subprocess.Popen[bytes]
) -> None:
    backend.holds(resource("cluster", CLUSTER))
    operations.request("50001")
    assert operations.running()
    assert settle(operations, world, backend) == (0, 0)
    assert world.now == START

    provider.kill()
    # A killed process has ended even while its parent has not collected it.
    while operations.running():
        pass
    assert settle(operations, world, backend) == (600, 1)


def test_a_provider_of_another_simulated_aws_is_none_of_this_world(
    world: World, provider: subprocess.Popen[bytes]
) -> None:
    other = Operations("http://127.0.0.1:2", world.draw)
    other.request("50001")
    assert not other.running()


def test_the_owner_settles_once_before_each_new_engine(
    operations: Operations, provider: subprocess.Popen[bytes]
) -> None:
    begun: list[str] = []
    operations.before_operation = lambda: begun.append("settled")
    for connection in ("50001", "50002", "50001"):
        operations.request(connection)
    assert begun == ["settled"]


def test_an_operation_that_changed_no_state_has_ended_too(
    operations: Operations, world: World, backend: Backend, provider: subprocess.Popen[bytes]
) -> None:
    """Its engine may have been killed between AWS's answer and the state: the meter must look again."""
    operations.request("50001")
    provider.kill()
    provider.wait()
    assert settle(operations, world, backend) == (0, 1)
