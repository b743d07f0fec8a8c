"""Each example stack file in a rehearsed world: it comes up, says how to start its nodes, and goes away."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.engine.program.conftest import PROJECT

pytestmark = pytest.mark.engine

EXAMPLES = sorted((PROJECT / "examples").glob("Pulumi.*.yaml"))


def command(next_step: str, words: str) -> str:
    """The command of the text that begins with `words`."""
    [line] = [line.strip() for line in next_step.splitlines() if line.strip().startswith(words)]
    return line


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.name)
def test_an_example_comes_up_and_its_nodes_stay_as_a_person_scaled_them(place: Any, example: Path) -> None:
    stack = example.name.removeprefix("Pulumi.").removesuffix(".yaml")
    shutil.copy(example, place.checkout)
    place.works("stack", "init", stack)
    place.works("up", "--yes", "--stack", stack)
    next_step = place.works("stack", "output", "next_step", "--stack", stack)

    start = command(next_step, "aws eks update-nodegroup-config")
    subprocess.run(start, shell=True, env=dict(place.running.environment), check=True, capture_output=True, timeout=60)
    region = start.split()[start.split().index("--region") + 1]
    assert place.gpu_scaling(stack, region) == {"minSize": 0, "maxSize": 1, "desiredSize": 1}
    assert "unchanged" in place.works("up", "--yes", "--stack", stack)
    assert "unchanged" in place.works("up", "--yes", "--refresh", "--stack", stack)
    assert place.gpu_scaling(stack, region)["desiredSize"] == 1

    for kubectl in ("rollout status deployment/vllm", "port-forward service/vllm 8000:8000", "get secret vllm-api-key"):
        command(next_step, f"kubectl --namespace vllm {kubectl}")
    place.works(*command(next_step, "pulumi destroy").split()[1:], "--yes")
    assert place.everything() == []
