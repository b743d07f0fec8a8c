"""A real Kubernetes control plane on this machine, without a container: kwokctl starts etcd, the API server, the
controller manager, the scheduler and kwok as processes on 127.0.0.1."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import random
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
import yaml

from automation.errors import ClusterFailed, MachineInTheWay, RentblockError
from rehearsal.environment import WORLD_ID
from rehearsal.processes import end, lives, processes_of

_KWOK = Path(__file__).with_name("kwok")
_READY_S = 180
_KWOKCTL_S = 120 + _READY_S
"""kwokctl waits for the API server for up to two minutes, then for the rest as long as `--wait` says."""

_LAST_WORD = 200
"""Characters of a program's last words that are repeated: some end in a page of health checks."""

_LOOK_EVERY_S = 0.05
_ATTEMPTS = 3
# The controller manager waits for ten seconds, which no flag changes (WaitForAPIServer in its start-up).
_GAVE_UP = "failed to wait for apiserver being healthy"
_NAME = "rehearsal"
_PORTS = tuple(f"{who}Port" for who in ("kubeApiserver", "kubeControllerManager", "kubeScheduler", "kwokController"))
_PORTS += ("etcdPort", "etcdPeerPort")
# Below Linux's range for outgoing connections (32768 and up): a port found free is not taken by the next connection.
_PORT_RANGE = range(12_000, 32_000)

# What a throw-away control plane on two cores can do without: writing through to the disk, renewing the leadership of
# the only candidate, controllers of things that no simulated node has.
_EXTRA_ARGUMENTS = (
    "etcd=unsafe-no-fsync=true",
    "kube-controller-manager=leader-elect=false",
    "kube-controller-manager=controllers=*,-horizontal-pod-autoscaler-controller,-persistentvolume-binder-controller,"
    "-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller",
)


class Programs(Protocol):
    """What is needed of the toolchain."""

    @property
    def kube_apiserver(self) -> Path: ...
    @property
    def kube_controller_manager(self) -> Path: ...
    @property
    def kube_scheduler(self) -> Path: ...
    @property
    def etcd(self) -> Path: ...
    @property
    def kwok(self) -> Path: ...
    @property
    def kwokctl(self) -> Path: ...


class PortTaken(MachineInTheWay):
    """Another program took a port between the look and the start."""


class GaveUp(ClusterFailed):
    """A busy machine: a program of the control plane gave up waiting for the API server, which was still starting."""


@dataclass(frozen=True, kw_only=True)
class LocalCluster:
    """A running control plane.

    Its `kubeconfig` holds certificates and key itself, so a copy of it works anywhere on this machine; `audit_log` has
    a line of JSON for each change, with the user agent that made it; `ca_data` is base64, as `aws eks describe-cluster`
    gives it; `kubelet_port` is where kwok answers for every node's kubelet.
    """

    folder: Path
    kubeconfig: Path
    server_url: str
    ca_data: str
    audit_log: Path
    kubelet_port: int
    world_id: str

    def kubeconfig_json(self) -> str:
        """The kubeconfig as JSON, as a stack's output carries it. It lets its reader do anything in the cluster."""
        return json.dumps(yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8")))

    def stop(self) -> None:
        """End the control plane. Idempotent. Its files stay, for whoever wants to read its logs."""
        # Nothing of it is used again, so nothing needs the time to end well.
        end(_processes(self.folder, self.world_id), grace_s=0)


def start(folder: Path, programs: Programs, *, world_id: str) -> LocalCluster:
    """Start a control plane whose files are all below `folder` and whose processes carry the mark of `world_id`.

    Raises:
        MachineInTheWay: a program is missing, a port is in use, the disk is full.
        ClusterFailed: the control plane did not become ready in time.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        place = folder / f"cluster-{attempt}"
        try:
            return _start(place, programs, world_id)
        except (PortTaken, GaveUp):
            if attempt == _ATTEMPTS:
                raise
        except OSError as error:
            happened = f"This machine refused {error.filename or place}: {error.strerror}."
            raise MachineInTheWay(happened=happened, remedy="Repair that, then try again.") from error
    raise AssertionError("the last attempt returns or raises")


def _start(place: Path, programs: Programs, world_id: str) -> LocalCluster:
    place.mkdir(mode=0o700, parents=True)
    ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
    _write_files(place, ports)
    environment = {WORLD_ID: world_id, "KWOK_WORKDIR": str(place), "HOME": str(place), "PATH": str(place / "bin")}
    try:
        _run(_command(place, programs), place, environment)
        return LocalCluster(
            folder=place,
            kubeconfig=place / "kubeconfig",
            server_url=f"https://127.0.0.1:{ports['kubeApiserverPort']}",
            ca_data=_put_data_inside(place / "kubeconfig"),
            audit_log=_workdir(place) / "logs" / "audit.log",
            kubelet_port=ports["kwokControllerPort"],
            world_id=world_id,
        )
    except BaseException:
        end(_processes(place, world_id), grace_s=0)
        raise


def _write_files(place: Path, ports: dict[str, int]) -> None:
    options = {"bindAddress": "127.0.0.1", "enableCRDs": ["Logs", "PortForward"], "disableQPSLimits": True, **ports}
    configuration = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokctlConfiguration", "options": options}
    stages = (_KWOK / "stages.yaml").read_text(encoding="utf-8")
    (place / "kwokctl.yaml").write_text(f"{yaml.safe_dump(configuration)}---\n{stages}", encoding="utf-8")
    kubectl = place / "bin" / "kubectl"
    kubectl.parent.mkdir()
    command = shlex.join([sys.executable, str(_KWOK / "raw_get.py")])
    kubectl.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    kubectl.chmod(0o700)


def _command(place: Path, programs: Programs) -> list[str]:
    """Raises MachineInTheWay when a program is missing."""
    binaries = {
        "kube-apiserver": programs.kube_apiserver,
        "kube-controller-manager": programs.kube_controller_manager,
        "kube-scheduler": programs.kube_scheduler,
        "kwok-controller": programs.kwok,
        "etcd": programs.etcd,
    }
    for program in (programs.kwokctl, *binaries.values()):
        if not os.access(program, os.X_OK):
            happened = f"There is no program at {program}, or it can't be run."
            raise MachineInTheWay(happened=happened, remedy="Run `python -m toolchain ensure`.")
    return [
        *(str(programs.kwokctl), "create", "cluster", "--runtime=binary", f"--name={_NAME}", f"--wait={_READY_S}s"),
        *(f"--config={place / 'kwokctl.yaml'}", f"--kubeconfig={place / 'kubeconfig'}"),
        *(f"--kube-audit-policy={_KWOK / 'audit-policy.yaml'}", f"--kube-scheduler-config={_KWOK / 'scheduler.yaml'}"),
        *(f"--{name}-binary={path}" for name, path in binaries.items()),
        *(f"--extra-args={argument}" for argument in _EXTRA_ARGUMENTS),
    ]


def _run(command: list[str], place: Path, environment: dict[str, str]) -> None:
    started = time.monotonic()
    # A file, not a pipe: the control plane's processes outlive kwokctl and would hold a pipe open.
    with (place / "kwokctl.log").open("wb") as log:
        kwokctl = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            while kwokctl.poll() is None:
                # kwokctl itself would wait its full time for a program that has already ended.
                if _dead(place) or time.monotonic() - started > _KWOKCTL_S:
                    break
                time.sleep(_LOOK_EVERY_S)
        finally:
            ended_well = kwokctl.poll() == 0
            kwokctl.kill()
            kwokctl.wait()
    # kwokctl also ends well when it has given up waiting.
    if not ended_well or _dead(place) or b"Failed to wait" in (place / "kwokctl.log").read_bytes():
        raise _diagnosis(place, seconds=round(time.monotonic() - started))


def _workdir(place: Path) -> Path:
    return place / "clusters" / _NAME


def _processes(place: Path, world_id: str) -> frozenset[psutil.Process]:
    """The control plane's processes: the world's, as far as they were told to work in `place`."""
    return frozenset(process for process in processes_of(world_id) if _works_in(process, place))


def _works_in(process: psutil.Process, place: Path) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return process.environ().get("KWOK_WORKDIR") == str(place)
    return False


def _dead(place: Path) -> list[str]:
    """Programs that kwokctl has started and that have ended, by the files in which it keeps their process ids."""
    files = _workdir(place).glob("pids/*.pid")
    # A file may be empty for the moment in which it is written.
    return sorted(file.stem for file in files if (pid := file.read_text()) and not _runs(int(pid)))


def _runs(pid: int) -> bool:
    try:
        return lives(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def _diagnosis(place: Path, *, seconds: int) -> RentblockError:
    """What kept the control plane from starting, as far as the programs' last words tell."""
    dead = _dead(place)
    logs = [place / "kwokctl.log", *(_workdir(place) / "logs" / f"{name}.log" for name in dead)]
    words = {log.stem: log.read_text(encoding="utf-8", errors="replace") for log in logs if log.exists()}
    said = "\n".join(words.values())
    if os.strerror(errno.ENOSPC).lower() in said.lower():
        happened = f"The disk that holds {place} is full."
        return MachineInTheWay(happened=happened, remedy="Free some space, then try again.")
    if os.strerror(errno.EADDRINUSE).lower() in said.lower():
        happened = f"A port that {' and '.join(dead) or 'Kubernetes'} wanted on 127.0.0.1 is in use."
        return PortTaken(happened=happened, remedy="Try again.")
    last = next((line.strip()[:_LAST_WORD] for line in reversed(said.splitlines()) if line.strip()), "nothing")
    who = f"{' and '.join(dead)} ended" if dead else "it was not ready"
    happened = f"The local Kubernetes control plane did not start: {who} after {seconds} s; the last word was: {last}."
    kind = GaveUp if _GAVE_UP in said else ClusterFailed
    return kind(happened=happened, remedy="Try again; a busy machine needs more time.")


def _put_data_inside(kubeconfig: Path) -> str:
    """Replace paths in a kubeconfig by what the files hold. Returns the certificate of the authority, in base64."""
    content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    for holder, key in ((cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key")):
        holder[f"{key}-data"] = base64.b64encode(Path(holder.pop(key)).read_bytes()).decode()
    kubeconfig.chmod(0o600)
    kubeconfig.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(cluster["certificate-authority-data"])


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, taken at random: two worlds that start together rarely choose the same."""
    free: list[int] = []
    for port in random.sample(_PORT_RANGE, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            free.append(port)
        if len(free) == count:
            return free
    raise MachineInTheWay(happened="Hardly any port is free on this machine.", remedy="End what listens on them.")
