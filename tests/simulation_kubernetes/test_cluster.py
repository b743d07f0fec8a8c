"""The local control plane: up within seconds, alone on its ports, and gone without a trace."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import yaml

from rehearsal import kubernetes
from rehearsal.cluster_client import USER_AGENT, ClusterClient
from rehearsal.kubernetes import LocalCluster
from rehearsal.processes import processes_of
from toolchain import Toolchain

pytestmark = pytest.mark.engine

PROGRAMS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}

OWNER = """
import sys, time
from pathlib import Path
from rehearsal import kubernetes
from rehearsal.reaper import start_reaper
from toolchain import locate

world_id, folder = sys.argv[1], Path(sys.argv[2])
reaper = start_reaper(world_id, folder)
kubernetes.start(folder, locate(), world_id=world_id)
print(reaper.pid, flush=True)
time.sleep(600)
"""


def listening_ports(world_id: str) -> dict[int, str]:
    """Ports on which a world's processes listen, with their addresses."""
    return {
        connection.laddr.port: connection.laddr.ip
        for process in processes_of(world_id)
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def world_id(request: pytest.FixtureRequest) -> str:
    return f"cluster-{os.getpid()}-{request.node.name}"


def test_a_stopped_control_plane_leaves_no_process_and_no_port(
    programs: Toolchain, tmp_path: Path, world_id: str
) -> None:
    cluster = kubernetes.start(tmp_path / "world", programs, world_id=world_id)
    try:
        assert {Path(process.exe()).name for process in processes_of(world_id)} >= {"etcd", "kube-apiserver"}
        assert len(processes_of(world_id)) == len(PROGRAMS)
        ports = listening_ports(world_id)
        assert set(ports.values()) == {"127.0.0.1"}
    finally:
        cluster.stop()
    cluster.stop()
    assert processes_of(world_id) == frozenset()
    assert not any(answers(port) for port in ports)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_of_a_control_plane_outlives_its_owner(
    number: signal.Signals,
    programs: Toolchain,
    tmp_path: Path,
    world_id: str,
    root: Path,
    eventually: Callable[[Callable[[], bool]], bool],
) -> None:
    folder = tmp_path / "world"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, world_id, str(folder)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    owner.stdout.readline()
    ports = listening_ports(world_id)
    assert len(processes_of(world_id)) == len(PROGRAMS)
    owner.send_signal(number)
    owner.communicate()
    assert eventually(lambda: not folder.exists())
    assert processes_of(world_id) == frozenset()
    assert not any(answers(port) for port in ports)


def test_two_control_planes_start_side_by_side(programs: Toolchain, tmp_path: Path, world_id: str) -> None:
    names = [f"{world_id}-{number}" for number in (1, 2)]
    with ThreadPoolExecutor() as pool:
        clusters = list(pool.map(lambda name: kubernetes.start(tmp_path / name, programs, world_id=name), names))
    try:
        assert not listening_ports(names[0]).keys() & listening_ports(names[1]).keys()
        clusters[0].stop()
        assert len(processes_of(names[1])) == len(PROGRAMS)
    finally:
        for cluster in clusters:
            cluster.stop()


@pytest.mark.parametrize("position", [0, 4], ids=["API server", "etcd"])
def test_a_port_that_was_taken_meanwhile_is_met_with_other_ports(
    position: int, programs: Toolchain, tmp_path: Path, world_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = kubernetes._free_ports
    with socket.create_server(("127.0.0.1", 0)) as other_program:
        choices = [look(6), look(6)]
        choices[0][position] = other_program.getsockname()[1]
        monkeypatch.setattr(kubernetes, "_free_ports", lambda count: choices.pop(0))
        cluster = kubernetes.start(tmp_path, programs, world_id=world_id)
        cluster.stop()
    assert cluster.folder.name == "cluster-2"


def test_the_kubeconfig_holds_all_that_it_needs_and_only_its_owner_reads_it(cluster: LocalCluster) -> None:
    content = json.loads(cluster.kubeconfig_json())
    assert content == yaml.safe_load(cluster.kubeconfig.read_text())
    assert content["clusters"][0]["cluster"] == {
        "server": cluster.server_url,
        "certificate-authority-data": cluster.ca_data,
    }
    assert content["users"][0]["user"].keys() == {"client-certificate-data", "client-key-data"}
    assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o600


def test_the_audit_log_tells_who_changed_what_and_holds_no_secret(cluster: LocalCluster) -> None:
    with ClusterClient(cluster.kubeconfig) as client:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "audited"},
            "stringData": {"a": "hush-hush"},
        }
        client.create("/api/v1/namespaces/default/secrets", secret)
        assert client.secret_value("default", "audited", "a") == "hush-hush"
        assert client.secret_value("default", "audited", "b") is None
        assert client.secret_value("default", "unheard-of", "a") is None
    text = cluster.audit_log.read_text()
    assert "hush-hush" not in text
    ours = [event for event in map(json.loads, text.splitlines()) if event["userAgent"] == USER_AGENT]
    assert [(event["verb"], event["objectRef"]["resource"], event["objectRef"]["name"]) for event in ours] == [
        ("create", "secrets", "audited")
    ]
    assert not [line for line in map(json.loads, text.splitlines()) if line["verb"] in {"get", "list", "watch"}]
