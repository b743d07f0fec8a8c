"""The product's own program on the real engine, in a simulated world: from the shell and by the Automation API."""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from pulumi import automation

from automation.clock import AwsClock
from automation.ledger.folder import SessionFolder, session_folder
from automation.session.engine import engine_environment, open_stack, workspace_files
from automation.target import Target
from components.program import session_program
from rehearsal.aws.calls import Call
from rehearsal.aws.inventory import Existing
from rehearsal.delays import load_constants, load_scenario
from rehearsal.supervisor import RunningWorld, running_world
from toolchain import ToolchainError, locate

with warnings.catch_warnings():
    # These packages warn of modules of their own when they are imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pulumi_aws as aws
    import pulumi_kubernetes as k8s

    # Services are loaded when they are first touched, which is not safe while the eks provider's thread does the same.
    assert all((aws.cloudwatch.LogGroup, aws.ec2.Vpc, aws.eks.Cluster, aws.iam.Role))
    assert all((k8s.apps.v1.DaemonSet, k8s.core.v1.Namespace, k8s.helm.v3.Release))

PROJECT = Path(__file__).resolve().parents[3]
NAMESPACE = "rent-the-block"
SESSION = "rtb-20261201-a1b2"
CONFIG: Mapping[str, str | list[str]] = {
    "region": "us-west-2",
    "capacity": "block",
    "reservationId": "cr-0123456789abcdef0",
    "instanceType": "p6-b300.48xlarge",
    "instanceCount": "2",
    "model": "kimi-k3",
    "endpointPublicAccessCidrs": ["203.0.113.7/32"],
    "weights": "s3://rent-the-block-weights/kimi-k3",
}

OpenStack = Callable[[Mapping[str, str | list[str]]], automation.Stack]
_HANGS_S = 240


@dataclass(frozen=True, kw_only=True)
class Place:
    """A world, and the checkout as the world shows it."""

    running: RunningWorld
    checkout: Path

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`pulumi` as a user of the world types it, in the checkout."""
        ended = subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color=never"],
            cwd=self.checkout,
            env=dict(self.running.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_HANGS_S,
        )
        self.running.settle()
        return ended

    def works(self, *arguments: str) -> str:
        """What a `pulumi` says that has to go well."""
        ended = self.pulumi(*arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def outputs(self) -> dict[str, object]:
        """The outputs of `dev`, secrets hidden."""
        shown: dict[str, object] = json.loads(self.works("stack", "output", "--json", "--stack", "dev"))
        return shown

    def configure(self, changes: Mapping[str, object]) -> None:
        """Make the stack file of `dev` the one that ships, with these changes; a value of None takes a key away."""
        shipped = yaml.safe_load((PROJECT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))["config"]
        file = self.checkout / "Pulumi.dev.yaml"
        changed = shipped | {f"{NAMESPACE}:{key}": value for key, value in changes.items()}
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
        settings["config"] = {key: value for key, value in changed.items() if value is not None}
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def client(self, service: str, region: str = "us-west-2") -> Any:
        """boto3, behind Pulumi's back."""
        keys = {"aws_access_key_id": "other", "aws_secret_access_key": "other"}
        url = self.running.address.endpoint_url
        return boto3.client(service, region_name=region, endpoint_url=url, **keys)  # type: ignore[call-overload]

    def gpu_scaling(self, cluster: str, region: str = "us-west-2") -> dict[str, int]:
        """What the cloud says of the GPU group's size."""
        group = self.client("eks", region).describe_nodegroup(clusterName=cluster, nodegroupName="gpu")["nodegroup"]
        scaling: dict[str, int] = group["scalingConfig"]
        return scaling

    def everything(self) -> list[Existing]:
        """What exists in the cloud, asked directly."""
        return self.running.aws.inventory()

    def changes(self) -> list[Call]:
        """The calls that have changed the cloud since the world began."""
        return [call for call in self.running.aws.calls if call.changed_something]

    def files_that_hold(self, text: str) -> list[Path]:
        """Files of the world's users in which `text` stands: states, settings, logs. Not the cluster's own disk."""
        folder = self.running.folder
        places = (folder.backend, folder.home, folder.pulumi_home, self.checkout, folder.root / "tmp")
        files = [file for place in places for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
        return [file for file in files if text.encode() in file.read_bytes()]


@contextmanager
def _place() -> Iterator[Place]:
    try:
        toolchain = locate()
    except ToolchainError as error:
        pytest.skip(str(error))
    with running_world(toolchain, load_scenario("default"), constants=load_constants(), seed=1) as running:
        yield Place(running=running, checkout=running.checkout(PROJECT))


@pytest.fixture
def place() -> Iterator[Place]:
    """A world for one test."""
    with _place() as made:
        yield made


@pytest.fixture(scope="module")
def shared_place() -> Iterator[Place]:
    """A world in which nothing is ever made."""
    with _place() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    folder = session_folder(tmp_path / "rentblock", SESSION)
    folder.create()
    return folder


@pytest.fixture
def open_it(folder: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], OpenStack]:
    """Opens the session's stack in a world, with a configuration."""

    def in_place(place: Any) -> OpenStack:
        world = place.running.environment
        monkeypatch.setenv("PATH", world["PATH"])
        monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
        given = {name: value for name, value in world.items() if name.startswith(("PULUMI_", "AWS_", "KUBE", "HOME"))}

        def opened(config: Mapping[str, str | list[str]]) -> automation.Stack:
            workspace_files(folder, config)
            return open_stack(folder, folder.root, session_program, engine_environment(folder, given))

        return opened

    return in_place


@pytest.fixture
def target(place: Any, tmp_path: Path) -> Target:
    return Target(
        mode="rehearsal",
        account_id="123456789012",
        region="us-west-2",
        boto_session=boto3.Session("k", "s"),
        endpoint_url=place.running.address.endpoint_url,
        clock=AwsClock(boto3.Session("k", "s")),
        home=tmp_path,
        engine_environment={},
    )


def without(resource: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if name not in names}


def changes(summary: automation.UpdateSummary) -> dict[str, int]:
    return {str(getattr(kind, "value", kind)): count for kind, count in (summary.resource_changes or {}).items()}
