"""One process owns a whole simulated world: AWS, Pulumi's providers, Kubernetes, the model server, and time.

Only its death ends the world, and its death in any way does: the reaper, a process apart, ends what is left.
"""

import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rehearsal import kubernetes
from rehearsal.aws.server import ACCOUNT_ID, REGION, SimulatedAws, start_aws
from rehearsal.control import ControlServer, Json, WorldAddress
from rehearsal.delays import Constants, Scenario
from rehearsal.engine.operations import Operations
from rehearsal.environment import WorldFolder, child_environment
from rehearsal.kubelet import Kubelet
from rehearsal.kubernetes import LocalCluster
from rehearsal.mirror import mirror, project_of, stack_names
from rehearsal.model_server import Flaw
from rehearsal.providers import providers
from rehearsal.providers.eks import EksServer
from rehearsal.reaper import start_reaper
from rehearsal.registry import RegistryMirror
from rehearsal.reuse import Reuse
from rehearsal.world import DEFAULT_START, World
from toolchain import Toolchain, install_plugins

_PULUMI_TIMEOUT_S = 60


@dataclass(frozen=True, kw_only=True)
class RunningWorld:
    """A world that stands: what it is made of, and the environment of whoever lives in it."""

    world: World
    aws: SimulatedAws
    cluster: LocalCluster
    kubelet: Kubelet
    operations: Operations
    folder: WorldFolder
    address: WorldAddress
    environment: Mapping[str, str]

    def settle(self) -> datetime:
        """Let the virtual time pass that engine operations and model requests have taken, and give the time then.

        While an engine runs its operation takes no time yet.
        """
        self.operations.settle(self.world, [self.folder.backend], self._operation_ended)
        self.world.jump(self.kubelet.take_busy())
        return self.world.now

    def advance(self, until: datetime) -> datetime:
        """Settle, then let time pass until `until`, with all that falls due on the way."""
        self.settle()
        self.world.advance(until)
        return self.world.now

    def run(self, command: Sequence[str], cwd: Path) -> int:
        """Run a command as a child of this world and give its exit code (128 + signal when a signal ended it).

        Raises:
            OSError: there is no such command.
        """
        child = subprocess.Popen(list(command), cwd=cwd, env=dict(self.environment))
        try:
            code = _wait_through_interrupts(child)
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait(timeout=30)
        self.settle()
        return code if code >= 0 else 128 - code

    def _operation_ended(self) -> None:
        self.aws.operation_ended()
        self.kubelet.settle()

    def checkout(self, folder: Path) -> Path:
        """`folder` as the world shows it: in a mirror of its project (see `mirror`), whose stacks are made in the
        world's backend, `dev` selected. A folder of no project is shown as it is."""
        project = project_of(folder)
        if project is None:
            return folder
        place = mirror(project, self.folder.root / "checkout", folder.relative_to(project))
        for name in reversed(stack_names(project)):
            subprocess.run(
                [self.folder.bin / "pulumi", "stack", "init", name, "--non-interactive"],
                cwd=place,
                env=dict(self.environment),
                check=True,
                capture_output=True,
                timeout=_PULUMI_TIMEOUT_S,
            )
        return place / folder.relative_to(project)


@contextmanager
def running_world(
    toolchain: Toolchain,
    scenario: Scenario,
    *,
    constants: Constants,
    seed: int,
    start: datetime = DEFAULT_START,
    flaws: frozenset[Flaw] = frozenset(),
) -> Iterator[RunningWorld]:
    """Start a world and end it, whatever happens in between. `flaws` are those of its model server.

    Raises:
        MachineInTheWay: the disk is full or a port can't be had.
        ClusterFailed: the local control plane did not come up.
    """
    world_id = secrets.token_hex(6)
    folder = WorldFolder(root=Path(tempfile.mkdtemp(prefix="rentblock-world-")))
    with ExitStack() as ending:
        reaper = start_reaper(world_id, folder.root)
        ending.callback(reaper.reap)
        folder.create()
        _lay_out_programs(folder, toolchain)
        world = World(start, seed, constants.delays)
        cluster, aws = _start_servers(ending, world, world_id, folder, toolchain, constants)
        kubelet = Kubelet(world, cluster, scenario, log_folder=folder.root / "pod-logs", flaws=flaws)
        ending.callback(kubelet.close)
        aws.fleet.listener = kubelet
        aws.apply(scenario)
        aws.cluster_endpoint = (cluster.server_url, cluster.ca_data)
        aws.on_new_cluster.append(Reuse(cluster).empty)
        operations = Operations(aws.url, world.draw)
        aws.on_pulumi_request.append(operations.request)
        eks = EksServer(cluster.kubeconfig_json)
        ending.callback(eks.stop)
        registry = RegistryMirror(constants.images)
        ending.callback(registry.stop)
        yield _running(ending, world, aws, cluster, kubelet, operations, eks, registry, folder, world_id, toolchain)


def _start_servers(
    ending: ExitStack, world: World, world_id: str, folder: WorldFolder, toolchain: Toolchain, constants: Constants
) -> tuple[LocalCluster, SimulatedAws]:
    """The control plane and moto's tables take seconds each: they start side by side."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        starting = beside.submit(kubernetes.start, folder.root / "kwok", toolchain, world_id=world_id)
        aws = start_aws(world, constants=constants)
        ending.callback(aws.stop)
        cluster = starting.result()
        ending.callback(cluster.stop)
    return cluster, aws


def _running(
    ending: ExitStack,
    world: World,
    aws: SimulatedAws,
    cluster: LocalCluster,
    kubelet: Kubelet,
    operations: Operations,
    eks: EksServer,
    registry: RegistryMirror,
    folder: WorldFolder,
    world_id: str,
    toolchain: Toolchain,
) -> RunningWorld:
    routes: dict[str, Callable[[Mapping[str, str]], Json]] = {}
    control = ControlServer(routes)
    ending.callback(control.stop)
    running = RunningWorld(
        world=world,
        aws=aws,
        cluster=cluster,
        kubelet=kubelet,
        operations=operations,
        folder=folder,
        address=WorldAddress(
            control_url=control.url,
            token=control.token,
            endpoint_url=aws.url,
            region=REGION,
            account_id=ACCOUNT_ID,
            providers=providers(toolchain),
            registry_url=registry.url,
        ),
        environment=child_environment(
            world_id=world_id,
            folder=folder,
            endpoint_url=aws.url,
            region=REGION,
            kubeconfig=cluster.kubeconfig,
            debug_providers=f"eks:{eks.port}",
            aws_wait_percent=aws.wait_percent,
            host=os.environ,
        ),
    )
    running.address.write(folder.address_file)
    exports = [f"export {name}={shlex.quote(value)}" for name, value in running.environment.items()]
    folder.enter_script.write_text("\n".join(exports) + "\n", encoding="utf-8")
    operations.before_operation = running.settle
    routes |= {
        "GET /now": lambda _: {"now": running.settle()},
        "POST /advance": lambda body: {"now": running.advance(datetime.fromisoformat(body["until"]))},
    }
    return running


def _lay_out_programs(folder: WorldFolder, toolchain: Toolchain) -> None:
    """The engine on the PATH of the world's children, with the AWS and Kubernetes providers as installed plugins."""
    (folder.bin / "pulumi").symlink_to(toolchain.pulumi)
    install_plugins(folder.pulumi_home, official_aws=toolchain.official_aws)
    if shutil.which("pulumi-language-python") is None:
        from rehearsal.language_host import write_launcher

        write_launcher(folder.bin)


def _wait_through_interrupts(child: subprocess.Popen[bytes]) -> int:
    """Ctrl-C reaches the child as well, and the child knows what to do with it: this process waits for it to end."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            print("Waiting for the command to end.", file=sys.stderr)  # noqa: T201
