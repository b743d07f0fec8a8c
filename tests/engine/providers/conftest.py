"""A place in which the real engine works: simulated AWS, the providers, a file backend and a home of its own."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from pulumi import automation

from rehearsal.aws.server import SimulatedAws, start_aws
from rehearsal.delays import load_constants
from rehearsal.engine.operations import Operations
from rehearsal.language_host import write_launcher
from rehearsal.providers.eks import EksServer
from rehearsal.world import DEFAULT_START, World
from toolchain import ToolchainError, describe, install_plugins

with warnings.catch_warnings():
    # A service of pulumi-aws is imported when it is first touched, and its deprecated resources with it.
    warnings.simplefilter("ignore", DeprecationWarning)
    import pulumi_aws as aws

    # Here and not in the programs: loading is not safe while a second thread (the eks provider's) does the same.
    assert all(
        (
            aws.cloudwatch.LogGroup,
            aws.ec2.Vpc,
            aws.eks.Cluster,
            aws.iam.Role,
            aws.s3.Bucket,
        )
    )

FIXTURE = Path(__file__).parents[1] / "fixture"
KUBECONFIG = '{"apiVersion": "v1", "kind": "Config", "secret-token": "hush-kubeconfig"}'

Program = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Place:
    """See the module."""

    folder: Path
    engine: Path
    world: World
    aws: SimulatedAws
    operations: Operations
    environment: dict[str, str]

    def stack(self, program: Program, name: str = "dev") -> automation.Stack:
        """A stack of an inline program; another program may take it up later by the same name."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        settings = automation.ProjectSettings(name="place", runtime="python")
        options = automation.LocalWorkspaceOptions(
            work_dir=str(work),
            pulumi_home=self.environment["PULUMI_HOME"],
            env_vars=self.environment,
            project_settings=settings,
            pulumi_command=automation.PulumiCommand(root=str(self.folder / "root")),
        )
        return automation.create_or_select_stack(name, project_name="place", program=program, opts=options)

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The engine from the shell, in a copy of the fixture project."""
        return subprocess.run(
            [self.engine, *arguments, "--non-interactive"],
            cwd=self.folder / "project",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def client(self, service: str) -> Any:
        """boto3, behind Pulumi's back."""
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, region_name="us-west-2", endpoint_url=self.aws.url, **keys)  # type: ignore[call-overload]

    def settle(self) -> timedelta:
        """What the operations took that have ended since the last call."""
        return self.operations.settle(self.world, [self.folder / "backend"], self.aws.operation_ended)

    @property
    def state(self) -> str:
        """The state of the inline stack `dev`, as it lies on the disk."""
        return (self.folder / "backend/.pulumi/stacks/place/dev.json").read_text()


@pytest.fixture(scope="session")
def engine() -> Path:
    """The engine. Of the toolchain's other programs these tests need the AWS provider only."""
    path = next(part.path for part in describe() if part.name == "pulumi")
    if path is None:
        pytest.skip("the Pulumi engine is not there yet: run `python -m toolchain ensure`")
    return path


@pytest.fixture
def new_place(engine: Path, tmp_path: Path) -> Iterator[Callable[[int], Place]]:
    """Makes a place with a seed; one at a time, since moto's state is the process's."""
    with ExitStack() as ending:

        def make(seed: int) -> Place:
            ending.pop_all().close()
            return _place(ending, engine, tmp_path / str(len(list(tmp_path.iterdir()))), seed)

        yield make


@pytest.fixture
def place(new_place: Callable[[int], Place]) -> Place:
    return new_place(1)


def _place(ending: ExitStack, engine: Path, folder: Path, seed: int) -> Place:
    for name in ("bin", "home", "pulumi", "backend", "root/bin", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "root/bin/pulumi").symlink_to(engine)
    write_launcher(folder / "bin")
    world = World(DEFAULT_START, seed, load_constants().delays)
    aws = start_aws(world)
    ending.callback(aws.stop)
    operations = Operations(aws.url, world.draw)
    aws.on_pulumi_request.append(operations.request)
    eks = EksServer(lambda: KUBECONFIG)
    ending.callback(eks.stop)
    try:
        install_plugins(folder / "pulumi")
    except ToolchainError as error:
        pytest.skip(str(error))
    environment = {
        "PATH": os.pathsep.join([str(folder / "bin"), "/usr/bin", "/bin"]),
        "HOME": str(folder / "home"),
        # The Kubernetes provider leaves its kubeconfig there.
        "TMPDIR": str(folder / "tmp"),
        "PULUMI_HOME": str(folder / "pulumi"),
        "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_DEBUG_PROVIDERS": f"eks:{eks.port}",
        "AWS_ENDPOINT_URL": aws.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "RENTBLOCK_AWS_WAIT_PERCENT": "2",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return Place(folder=folder, engine=engine, world=world, aws=aws, operations=operations, environment=environment)
