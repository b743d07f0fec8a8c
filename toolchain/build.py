"""Building programs from the pinned Go modules with the ordinary go command.

The module's folder is copied into the work folder first, because the provider needs a generated file beside its main.go
and the checkout may be read-only. `-trimpath` keeps paths out of the result, so Go's build cache serves every copy.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import children
from .errors import ExitCode, ToolchainError
from .find import version_of
from .pins import Pin, Program, version_tuple
from .progress import Reporter, Task
from .surroundings import Surroundings

# The slowest cold build takes 7 minutes on 2 cores; a build that hangs on a dead network must still end.
_BUILD_SECONDS = 90 * 60.0
_GO_VERSION_SECONDS = 30
_DISK_FULL = "no space left on device"


def require_go(world: Surroundings) -> Path:
    """The go command on PATH, if it is new enough; raises ToolchainError with what to install."""
    minimum = world.pins.go_minimum
    remedy = f"Install Go {minimum} or later, or put the programs of `python -m toolchain list` on PATH yourself."
    found = shutil.which("go", path=world.search_path)
    if found is None:
        raise ToolchainError("Something has to be built, and there is no go command on PATH.", remedy, ExitCode.NO_GO)
    try:
        answer = subprocess.run(
            [found, "env", "GOVERSION"],
            env=_environment(world),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GO_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"The go command at {found} does not run ({error}).", remedy, ExitCode.NO_GO) from error
    match = re.search(r"go(\d+\.\d+(?:\.\d+)?)", answer.stdout)
    if match is None:
        raise ToolchainError(f"The go command at {found} does not tell its version.", remedy, ExitCode.NO_GO)
    if version_tuple(match.group(1)) < version_tuple(minimum):
        raise ToolchainError(f"The go command at {found} is {match.group(1)}: too old.", remedy, ExitCode.NO_GO)
    return Path(found)


def build(world: Surroundings, pin: Pin, work: Path, into: Path, reporter: Reporter) -> None:
    """Build all programs of a pin into the folder `into`; `work` is a folder for everything else."""
    go = _Go(world, pin, require_go(world), work)
    text = f"building {pin.name} {pin.version}"
    with reporter.task(text, usual=pin.usual_seconds, done=f"built {pin.name} {pin.version}") as task:
        shutil.copytree(pin.module_folder, go.source)
        if pin.schema is not None:
            _write_schema(pin, go, task)
        if pin.prepare is not None:
            go.run(*pin.prepare.arguments, task=task, folder=pin.prepare.folder)
        for program in pin.programs:
            flags = " ".join(["-s -w", *(pin.fill(flag) for flag in pin.ldflags)])
            target = into / program.name
            go.run("build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", str(target),
                   program.package, task=task)  # fmt: skip
            _check(pin, program, target)


class _Go:
    """The go command with its environment, its source folder and its log, for one pin."""

    def __init__(self, world: Surroundings, pin: Pin, command: Path, work: Path) -> None:
        self._pin = pin
        self._command = command
        self._log = work / "go.log"
        # Kept after the work folder is gone, for whoever wants to know why a build failed.
        self._kept_log = world.cache / "logs" / f"{pin.name}.log"
        self.source = work / "source"
        temporary = work / "tmp"
        temporary.mkdir()
        # go leaves its temporary folders behind when it is killed; here they go with the work folder.
        self._environment = _environment(world) | {"GOTMPDIR": str(temporary)}

    def run(self, *arguments: str, task: Task, folder: str = ".") -> str:
        """Run go in `folder` of the source and return what it printed last; raises ToolchainError if it fails."""
        what = f"{self._pin.name} {self._pin.version}"
        try:
            code = children.run(
                [str(self._command), *arguments],
                folder=self.source / folder,
                environment=self._environment,
                log=self._log,
                seconds=_BUILD_SECONDS,
                tick=task.tick,
            )
        except children.ChildTimeout as error:
            raise ToolchainError(
                f"Building {what} did not end within {_BUILD_SECONDS / 60:.0f} minutes.",
                "See whether Go reaches its proxy (`go env GOPROXY`) and run this again: it goes on where it stopped.",
            ) from error
        output = self._log.read_text(encoding="utf-8", errors="replace")
        if code != 0:
            raise self._failure(what, output)
        return output

    def _failure(self, what: str, output: str) -> ToolchainError:
        # go tells a full disk by these words alone; its exit code is 1 for everything.
        if _DISK_FULL in output:
            return disk_full(f"building {what}", self._kept_log.parent.parent)
        self._kept_log.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._log, self._kept_log)
        return ToolchainError(
            f"go could not build {what}: {children.last_line(self._log)}",
            f"The whole log is {self._kept_log}; when the cause is gone, run this again: it goes on where it stopped.",
        )


def disk_full(doing: str, cache: Path) -> ToolchainError:
    """The sentence for a full disk, wherever it was noticed."""
    return ToolchainError(
        f"The disk is full while {doing}.",
        f"All builds together need about 13 GB in Go's caches (`go env GOCACHE GOMODCACHE`) and 1 GB in {cache}; "
        "free some, then run this again: it goes on where it stopped.",
        ExitCode.DISK_FULL,
    )


def _environment(world: Surroundings) -> dict[str, str]:
    """The user's environment (proxies, GOPROXY, caches) less what would change the result."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH", "GOEXPERIMENT")}
    # GOTOOLCHAIN=local: never fetch another Go behind the user's back; require_go says what to install instead.
    # CGO_ENABLED=0: the same result whether or not there is a C compiler, as the vendors do.
    return environment | {"PATH": world.search_path, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def _write_schema(pin: Pin, go: _Go, task: Task) -> None:
    """Write the module's schema, with its version set, where main.go embeds it: what the vendor's Makefile does."""
    assert pin.schema is not None
    output = go.run("mod", "download", "-json", pin.schema.module, task=task)
    # The log holds go's progress lines before the JSON object.
    module = json.loads(output[output.index("{") :])
    schema = json.loads((Path(module["Dir"]) / pin.schema.file).read_text(encoding="utf-8"))
    schema["version"] = pin.version
    target = go.source / Path(pin.schema.file).name
    target.write_text(json.dumps(schema, separators=(",", ":")), encoding="utf-8")


def _check(pin: Pin, program: Program, path: Path) -> None:
    """A program that does not say the pinned version is not the one we meant to build."""
    if not program.version_command:
        return
    version = version_of(path, program)
    if version != pin.version:
        raise ToolchainError(
            f"{program.name} was built, but says it is version {version} and not {pin.version}.",
            "Report this: pins.toml and the Go module do not agree.",
        )
