"""A control plane that does not start says why in one sentence, and leaves no process behind.

The programs are small scripts here: what the real ones do is tested in test_cluster.py.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from automation.errors import ClusterFailed, MachineInTheWay
from rehearsal import kubernetes
from rehearsal.processes import processes_of

# What kwokctl leaves when one of its programs ends at once: a file with the program's process id, and its log.
DYING_PROGRAM = """
import os, subprocess, sys, time
from pathlib import Path
workdir = Path(os.environ["KWOK_WORKDIR"], "clusters", "rehearsal")
(workdir / "pids").mkdir(parents=True)
(workdir / "logs").mkdir()
with (workdir / "logs" / "etcd.log").open("w") as log:
    lives = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    died = subprocess.Popen(["/bin/sh", "-c", "echo 'WORDS'"], stdout=log, start_new_session=True)
    died.wait()
(workdir / "pids" / "kube-apiserver.pid").write_text(str(lives.pid))
(workdir / "pids" / "etcd.pid").write_text(str(died.pid))
time.sleep(600)
"""


@dataclass(frozen=True, kw_only=True)
class Scripts:
    kwokctl: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    etcd: Path
    kwok: Path


def scripts(folder: Path, kwokctl: str) -> Scripts:
    program = folder / "program"
    program.write_text(f"#!{sys.executable}\n{kwokctl}\n")
    program.chmod(0o700)
    return Scripts(
        kwokctl=program, kube_apiserver=program, kube_controller_manager=program, kube_scheduler=program, etcd=program,
        kwok=program,
    )  # fmt: skip


@pytest.fixture
def world_id(request: pytest.FixtureRequest) -> str:
    return f"failures-{os.getpid()}-{request.node.name}"


def test_a_missing_program_is_named(tmp_path: Path, world_id: str) -> None:
    programs = scripts(tmp_path, "")
    programs.etcd.chmod(0o600)
    with pytest.raises(MachineInTheWay, match=f"no program at {programs.etcd}"):
        kubernetes.start(tmp_path / "world", programs, world_id=world_id)


def test_a_full_disk_is_named(tmp_path: Path, world_id: str) -> None:
    programs = scripts(tmp_path, 'raise SystemExit("write /x/pki/ca.crt: no space left on device")')
    with pytest.raises(MachineInTheWay, match=r"disk that holds .* is full"):
        kubernetes.start(tmp_path / "world", programs, world_id=world_id)


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path, world_id: str) -> None:
    (tmp_path / "world").write_text("a file")
    with pytest.raises(MachineInTheWay, match="world"):
        kubernetes.start(tmp_path / "world", scripts(tmp_path, ""), world_id=world_id)


def test_a_port_in_use_is_tried_again_with_others_then_named(tmp_path: Path, world_id: str) -> None:
    programs = scripts(
        tmp_path, DYING_PROGRAM.replace("WORDS", "listen tcp 127.0.0.1:12345: bind: address already in use")
    )
    with pytest.raises(MachineInTheWay, match=r"port that etcd wanted on 127\.0\.0\.1 is in use"):
        kubernetes.start(tmp_path / "world", programs, world_id=world_id)
    configs = [config.read_text() for config in (tmp_path / "world").glob("cluster-*/kwokctl.yaml")]
    assert len(configs) == 3
    assert len({config[: config.index("---")] for config in configs}) == 3


def test_a_program_that_gave_up_waiting_for_the_api_server_gets_more_tries(tmp_path: Path, world_id: str) -> None:
    programs = scripts(tmp_path, DYING_PROGRAM.replace("WORDS", "failed to wait for apiserver being healthy: timeout"))
    with pytest.raises(ClusterFailed, match="apiserver being healthy"):
        kubernetes.start(tmp_path / "world", programs, world_id=world_id)
    assert len(list((tmp_path / "world").glob("cluster-*"))) == 3
    assert processes_of(world_id) == frozenset()


def test_a_program_that_ends_at_once_is_not_waited_for(tmp_path: Path, world_id: str) -> None:
    programs = scripts(tmp_path, DYING_PROGRAM.replace("WORDS", "I have had enough"))
    with pytest.raises(ClusterFailed, match=r"etcd ended .* last word was: I have had enough"):
        kubernetes.start(tmp_path / "world", programs, world_id=world_id)
    assert processes_of(world_id) == frozenset()


def test_a_control_plane_that_is_not_ready_in_time_is_an_error(tmp_path: Path, world_id: str) -> None:
    programs = scripts(tmp_path, 'print("Failed to wait for cluster to be ready")')
    with pytest.raises(ClusterFailed, match="it was not ready"):
        kubernetes.start(tmp_path / "world", programs, world_id=world_id)
