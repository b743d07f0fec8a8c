"""Pulumi's Automation API for one session: its own working folder, and the engine's output in files.

The engine dies when the pipe to its reader breaks, and then leaves a lock and a pending operation; with its output in
files it finishes what it is doing. So the long commands write to files and are read afterwards.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from pulumi import automation as auto

from automation.errors import MachineInTheWay, machine_error
from automation.ledger.folder import SessionFolder

# Wins over the file that names the session's own passphrase, so it must not be there.
PASSPHRASE = "PULUMI_CONFIG_PASSPHRASE"
PROJECT = "rent-the-block"
_LONG = frozenset({"up", "destroy", "refresh"})
# The plugin of each package has the package's own version.
_PLUGINS = {"aws": "pulumi-aws", "eks": "pulumi-eks", "kubernetes": "pulumi-kubernetes"}
_INSTALL_TIMEOUT_S = 900.0
_CHARTS = Path(__file__).resolve().parents[2] / "charts"
_TEMPORARY = "tmp"
_MOST_DIAGNOSTICS = 3
# The engine says with these words once more what an inline program's error has said by itself.
_SAID_AGAIN = "an unhandled error occurred: "


class FiledPulumi(auto.PulumiCommand):
    """The `pulumi` of PATH, whose long commands write into `folder`: `up.out`, `up.err`, `up.events`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], Any] | None = None,
        on_error: Callable[[str], Any] | None = None,
    ) -> auto.CommandResult:
        """As the base class, which is told of the output only after the end."""
        if args[0] not in _LONG:
            return super().run(args, cwd, additional_env, on_output, on_error)
        out, err, events = (self._folder / f"{args[0]}.{kind}" for kind in ("out", "err", "events"))
        command = [self.command, *args, "--non-interactive", "--event-log", str(events)]
        with out.open("w", encoding="utf-8") as stdout, err.open("w", encoding="utf-8") as stderr:
            ended = subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, **additional_env, "PULUMI_AUTOMATION_API": "true"},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                check=False,
            )
        result = auto.CommandResult(out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"), ended.returncode)
        if ended.returncode != 0:
            raise auto.errors.create_command_error(result)
        return result


def workspace_files(folder: SessionFolder, config: Mapping[str, str | list[str]]) -> None:
    """Write project and stack settings, and the link to our charts. An encryption salt that is there already stays."""
    project = {
        "name": PROJECT,
        "runtime": "python",
        "description": f"Session {folder.session} of rent-the-block",
        # A resource without an explicit provider is then an error and not a resource somewhere else.
        "config": {"pulumi:disable-default-providers": ["*"]},
    }
    (folder.work / _TEMPORARY).mkdir(exist_ok=True)
    (folder.work / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False), encoding="utf-8")
    stack_file = folder.work / f"Pulumi.{folder.session}.yaml"
    known = yaml.safe_load(stack_file.read_text(encoding="utf-8")) if stack_file.exists() else None
    stack = {**(known or {}), "config": {f"{PROJECT}:{key}": value for key, value in config.items()}}
    stack_file.write_text(yaml.safe_dump(stack, sort_keys=False), encoding="utf-8")
    charts = folder.work / "charts"
    if charts.is_symlink() and charts.readlink() != _CHARTS:
        charts.unlink()
    if not charts.is_symlink():
        charts.symlink_to(_CHARTS)


def engine_environment(folder: SessionFolder, given: Mapping[str, str]) -> dict[str, str]:
    """The engine's settings for this session, under those that the target brings: a backend of its own wins,
    a passphrase does not."""
    environment = {
        "PULUMI_BACKEND_URL": folder.state.absolute().as_uri(),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # The Kubernetes provider leaves kubeconfigs there, under any name: so in a place that is nobody else's.
        "TMPDIR": str(folder.work / _TEMPORARY),
        **given,
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder.passphrase),
    }
    environment.pop(PASSPHRASE, None)
    return environment


def open_stack(
    folder: SessionFolder, logs: Path, program: Callable[[], None], environment: Mapping[str, str]
) -> auto.Stack:
    """The session's stack, made if there is none. Raises auto.CommandError."""
    options = auto.LocalWorkspaceOptions(
        work_dir=str(folder.work), env_vars=dict(environment), pulumi_command=FiledPulumi(logs)
    )
    return auto.create_or_select_stack(stack_name=folder.session, project_name=PROJECT, program=program, opts=options)


def plugins() -> tuple[tuple[str, str], ...]:
    """Name and version of each provider plugin that the program makes the engine start.

    pulumi-eks makes a Kubernetes provider of its own, of the version that it was built with: the least that its package
    asks for. The engine takes no other for it."""
    asked = map(Requirement, requires("pulumi-eks") or ())
    least = (bound.version for each in asked if each.name == "pulumi-kubernetes" for bound in each.specifier)
    own = [(plugin, version(package)) for plugin, package in _PLUGINS.items()]
    return (*own, ("kubernetes", min(least, key=Version)))


def install_plugins(environment: Mapping[str, str]) -> None:
    """Fetch the provider plugins that this machine lacks. Raises MachineInTheWay with the engine's own words."""
    given = {**os.environ, **environment}
    pulumi = shutil.which("pulumi", path=given.get("PATH")) or "pulumi"
    for plugin, wanted in plugins():
        command = [pulumi, "plugin", "install", "resource", plugin, f"v{wanted}", "--non-interactive"]
        try:
            subprocess.run(
                command,
                env=given,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_INSTALL_TIMEOUT_S,
                check=True,
            )
        except OSError as error:
            raise machine_error(error) from error
        except subprocess.SubprocessError as error:
            said = " ".join((getattr(error, "stderr", None) or str(error)).split())
            raise MachineInTheWay(
                happened=f"The plugin {plugin} {wanted} of Pulumi can't be installed: {said}",
                cost="Nothing is bought without it; what is bought goes on and is billed.",
                remedy="Let this machine reach get.pulumi.com and github.com, or install it by hand "
                f"(`pulumi plugin install resource {plugin} v{wanted}`).",
            ) from error


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock of the file backend: who holds the stack."""

    pid: int
    hostname: str
    timestamp: str


def locks(backend_url: str, session: str) -> tuple[Lock, ...]:
    """The locks on a session's stack in a file backend; none is known for another kind of backend."""
    if not backend_url.startswith("file://"):
        return ()
    backend = Path(unquote(backend_url.removeprefix("file://")))
    return tuple(_locks(backend / ".pulumi" / "locks" / "organization" / PROJECT / session))


def _locks(root: Path) -> Iterator[Lock]:
    for file in sorted(root.glob("*.json")):
        try:
            held = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # Given back between listing and reading, or being written.
            continue
        yield Lock(pid=int(held["pid"]), hostname=str(held["hostname"]), timestamp=str(held["timestamp"]))


def diagnostics(events: Path) -> str:
    """The engine's own words on what went wrong, from its event log: the first few errors in one sentence each."""
    try:
        lines = events.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    errors: list[str] = []
    for line in lines:
        try:
            said = json.loads(line).get("diagnosticEvent") or {}
        except ValueError:
            continue
        text = " ".join(str(said.get("message", "")).split()).removeprefix(_SAID_AGAIN)
        if said.get("severity") == "error" and text:
            name = str(said.get("urn", "")).rpartition("::")[2]
            errors.append(f"{name}: {text}" if name else text)
    # A failure is told once by itself and once more by whatever failed because of it.
    different = [text for number, text in enumerate(errors) if not any(told in text for told in errors[:number])]
    return "; ".join(different[:_MOST_DIAGNOSTICS])
