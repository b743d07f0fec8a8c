"""A real control plane for the tests of a module, and what each test may count on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rehearsal import kubernetes
from rehearsal.kubernetes import LocalCluster
from toolchain import Toolchain, ToolchainError, locate

DEADLINE_S = 60


@pytest.fixture(scope="session")
def programs() -> Toolchain:
    try:
        return locate()
    except ToolchainError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="module")
def cluster(programs: Toolchain, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("world")
    cluster = kubernetes.start(folder, programs, world_id=f"kubelet-tests-{os.getpid()}-{worker_id}")
    yield cluster
    cluster.stop()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Whether something came true while real Kubernetes had its time."""

    def wait(condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + DEADLINE_S
        while not (true := condition()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return true

    return wait


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).parents[2]
