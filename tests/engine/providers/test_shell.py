"""`pulumi up` from the shell, with the language host of a rehearsal."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rehearsal.language_host import write_launcher

FIXTURE = Path(__file__).parents[1] / "fixture"


@pytest.mark.engine
def test_a_project_with_three_resources_works_by_plain_commands(place: Any) -> None:
    shutil.copytree(FIXTURE, place.folder / "project")
    assert place.pulumi("stack", "init", "dev").returncode == 0
    up = place.pulumi("up", "--yes", "--stack", "dev")
    assert up.returncode == 0, up.stdout + up.stderr
    assert "+ 5 created" in up.stdout
    again = place.pulumi("up", "--yes", "--stack", "dev")
    assert "5 unchanged" in again.stdout
    subnet = place.pulumi("stack", "output", "subnet_id", "--stack", "dev").stdout.strip()
    shown = place.client("ec2").describe_subnets(SubnetIds=[subnet])["Subnets"][0]
    assert shown["Tags"] == [{"Key": "fixture", "Value": "dev"}]
    down = place.pulumi("destroy", "--yes", "--stack", "dev")
    assert down.returncode == 0, down.stdout + down.stderr
    assert place.aws.inventory() == []


@pytest.mark.engine
def test_a_program_that_fails_fails_the_command_with_its_own_error(place: Any) -> None:
    shutil.copytree(FIXTURE, place.folder / "project")
    (place.folder / "project" / "__main__.py").write_text("raise ValueError('the program is wrong')\n")
    place.pulumi("stack", "init", "dev")
    up = place.pulumi("up", "--yes", "--stack", "dev")
    assert up.returncode != 0
    assert "ValueError: the program is wrong" in up.stdout + up.stderr


@pytest.fixture
def host(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    launcher = write_launcher(tmp_path)
    command = [str(launcher), "-root=x", "127.0.0.1:1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_language_host_says_its_port_and_ends_quietly(host: subprocess.Popen[str], number: signal.Signals) -> None:
    assert host.stdout is not None
    assert host.stderr is not None
    assert int(host.stdout.readline()) > 0
    host.send_signal(number)
    assert host.wait(timeout=20) == 0
    assert host.stdout.read() + host.stderr.read() == ""


def test_the_language_host_goes_when_its_engine_has_gone(tmp_path: Path) -> None:
    launcher = write_launcher(tmp_path)
    # The parent says the child's id, and dies without a word to it.
    parent = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen([sys.argv[1], '127.0.0.1:1'], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    # What holds this pipe is the child alone once the parent has gone: the read ends when the child does.
    seen = subprocess.run([sys.executable, "-c", parent, launcher], capture_output=True, timeout=60, check=True)
    # Who takes over an orphan may leave it uncollected.
    assert not psutil.pid_exists(pid := int(seen.stdout)) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
