"""Finding programs that are already there: on PATH, among the user's Pulumi plugins, in the cache.

A pin is taken from one place whole: a kwok from PATH with a kwokctl of our own would be a pair that nobody tried.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, cast

from . import cache
from .errors import ExitCode, ToolchainError
from .pins import Pin, Program
from .surroundings import Surroundings

Way = Literal["path", "official", "built", "missing"]

_VERSION_SECONDS = 15


@dataclass(frozen=True, kw_only=True)
class Part:
    """One program: its version, the way it was had, where it is. If missing, `path` is None and `version` the pin's."""

    name: str
    version: str
    way: Way
    path: Path | None


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Absolute paths of all programs, and how the AWS provider was obtained.

    `official_aws`: the caller asked for the vendor's plugin.
    """

    pulumi: Path
    pulumi_resource_kubernetes: Path
    pulumi_resource_aws: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    etcd: Path
    kwok: Path
    kwokctl: Path
    aws_way: Way = "built"
    official_aws: bool = False


def toolchain_of(parts: Mapping[str, Part], *, official_aws: bool = False) -> Toolchain:
    """The parts as a Toolchain; raises ToolchainError that names those that lack."""
    paths: dict[str, Path] = {}
    lacking: list[str] = []
    for field in fields(Toolchain):
        if field.type is not Path:
            continue
        name = field.name.replace("_", "-")
        part = parts.get(name)
        if part is None or part.path is None:
            lacking.append(name)
        else:
            paths[field.name] = part.path
    if lacking:
        raise ToolchainError(
            f"These programs are neither on PATH in the pinned version nor in the cache: {', '.join(lacking)}.",
            "Run `python -m toolchain ensure`.",
            ExitCode.LACKING,
        )
    return Toolchain(**paths, aws_way=parts["pulumi-resource-aws"].way, official_aws=official_aws)


def find(world: Surroundings, pin: Pin) -> tuple[Part, ...] | None:
    """The programs of a pin where they already are, PATH first; None when at least one is missing everywhere.

    If a pin prefers a build, a program that is found on this machine counts only where Go is missing.
    """
    if pin.ways[0] == "build":
        without_go = shutil.which("go", path=world.search_path) is None
        return in_cache(world, pin) or (on_path(world, pin) if without_go else None)
    return on_path(world, pin) or in_cache(world, pin)


def missing(pin: Pin) -> tuple[Part, ...]:
    """The programs of a pin as missing parts."""
    return tuple(Part(name=program.name, version=pin.version, way="missing", path=None) for program in pin.programs)


def in_cache(world: Surroundings, pin: Pin) -> tuple[Part, ...] | None:
    """The programs of a pin in the cache."""
    folder = cache.folder_of(world.cache, pin)
    way = cache.way_of(folder, pin)
    if way is None:
        return None
    return tuple(
        Part(name=program.name, version=pin.version, way=cast(Way, way), path=folder / program.name)
        for program in pin.programs
    )


def on_path(world: Surroundings, pin: Pin) -> tuple[Part, ...] | None:
    """The programs of a pin on PATH (the provider: in ~/.pulumi/plugins), if all are there in an acceptable version."""
    parts: list[Part] = []
    for program in pin.programs:
        part = _installed_plugin(world, pin, program) if program.plugin else _on_path(world, pin, program)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _on_path(world: Surroundings, pin: Pin, program: Program) -> Part | None:
    found = shutil.which(program.name, path=world.search_path)
    if found is None:
        return None
    path = Path(found).absolute()
    version = version_of(path, program)
    if version is None or not pin.accepts(version):
        return None
    return Part(name=program.name, version=version, way="path", path=path)


def _installed_plugin(world: Surroundings, pin: Pin, program: Program) -> Part | None:
    """Not $PULUMI_HOME: a rehearsal sets that to a temporary folder, which holds a link to what we are looking for."""
    folder = world.home / ".pulumi" / "plugins" / str(program.plugin)
    path = folder / program.name
    # The engine leaves this mark beside a plugin whose installation did not come to its end.
    if folder.with_name(f"{folder.name}.partial").exists() or not cache.is_program(path):
        return None
    return Part(name=program.name, version=pin.version, way="path", path=path)


def version_of(path: Path, program: Program) -> str | None:
    """What a program says of its version; None when it does not run or says something else."""
    # Even `pulumi version` writes a log into PULUMI_HOME: looking must leave no trace in the user's own.
    with tempfile.TemporaryDirectory(prefix="toolchain-") as home:
        return _ask_version(path, program, os.environ | {"PULUMI_HOME": home, "PULUMI_SKIP_UPDATE_CHECK": "true"})


def _ask_version(path: Path, program: Program, environment: Mapping[str, str]) -> str | None:
    try:
        answer = subprocess.run(
            [path, *program.version_command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(program.version_pattern, answer.stdout + answer.stderr, re.MULTILINE)
    return match.group(1) if match and answer.returncode == 0 else None
