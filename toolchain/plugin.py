"""Gives providers to an engine: a link under PULUMI_HOME/plugins, the first place where the engine looks.

Links instead of copies: the two providers have 440 MB, and every rehearsal and test has its own PULUMI_HOME.
"""

import os
import tempfile
from pathlib import Path

from .errors import ExitCode, ToolchainError
from .find import find, missing
from .pins import Pin
from .surroundings import Surroundings, real_surroundings


def install_plugins(pulumi_home: Path, world: Surroundings | None = None, *, official_aws: bool = False) -> list[Path]:
    """Make each provider of the pins a plugin of the engine that runs with PULUMI_HOME=`pulumi_home`.

    Takes milliseconds, may be called again and by several processes at the same time, and returns the paths in the
    plugin folder. Raises ToolchainError when a provider is missing or the folder cannot be written.
    """
    world = world or real_surroundings(official_aws=official_aws)
    return [
        _install(pulumi_home, world, pin)
        for pin in world.pins.pins
        if any(program.plugin is not None for program in pin.programs)
    ]


def _install(pulumi_home: Path, world: Surroundings, pin: Pin) -> Path:
    [program] = pin.programs
    [part] = find(world, pin) or missing(pin)
    if part.path is None:
        raise ToolchainError(
            f"{program.name} {pin.version} is not on this machine.",
            "Run `python -m toolchain ensure`.",
            ExitCode.LACKING,
        )
    target = pulumi_home.absolute() / "plugins" / str(program.plugin) / program.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(part.path, target)
        # With this mark beside it the engine takes a plugin for one whose installation was interrupted.
        target.parent.with_name(f"{target.parent.name}.partial").unlink(missing_ok=True)
    except OSError as error:
        raise ToolchainError(
            f"{program.name} could not be linked into {target.parent} ({error.strerror or error}).",
            "Give a PULUMI_HOME that you may write to.",
        ) from error
    return target


def _link(source: Path, target: Path) -> None:
    """A hard link outlives the cache's folder; across file systems it has to be a symbolic one."""
    if target.exists() and target.samefile(source):
        return
    with tempfile.TemporaryDirectory(prefix=".link-", dir=target.parent) as folder:
        link = Path(folder) / target.name
        try:
            os.link(source, link)
        except OSError:
            link.symlink_to(source)
        link.replace(target)
