"""Giving the Kubernetes provider to an engine: a link under PULUMI_HOME/plugins, where the engine looks first.

A link and not a copy: the provider has 300 MB and every rehearsal and test has a PULUMI_HOME of its own.
"""

import os
import tempfile
from pathlib import Path

from .errors import ExitCode, ToolchainError
from .find import find, missing
from .surroundings import Surroundings, real_surroundings

PROVIDER = "pulumi-resource-kubernetes"


def install_plugin(pulumi_home: Path, provider: Path | None = None, world: Surroundings | None = None) -> Path:
    """Make `pulumi-resource-kubernetes` a plugin of the engine that runs with PULUMI_HOME=`pulumi_home`.

    Takes milliseconds, may be called again and by several processes at once, and returns the path in the plugin folder.
    `provider` spares looking for it (`ensure().pulumi_resource_kubernetes`). Raises ToolchainError when the provider
    lacks or the folder cannot be written.
    """
    world = world or real_surroundings()
    [(pin, program)] = [(p, q) for p in world.pins.pins for q in p.programs if q.name == PROVIDER]
    if provider is None:
        [part] = find(world, pin) or missing(pin)
        if part.path is None:
            raise ToolchainError(
                f"{PROVIDER} {pin.version} is not on this machine.",
                "Run `python -m toolchain ensure`.",
                ExitCode.LACKING,
            )
        provider = part.path
    target = pulumi_home.absolute() / "plugins" / str(program.plugin) / PROVIDER
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(provider, target)
        # The engine takes a plugin with this mark beside it for one whose installation broke off.
        target.parent.with_name(f"{target.parent.name}.partial").unlink(missing_ok=True)
    except OSError as error:
        raise ToolchainError(
            f"{PROVIDER} could not be linked into {target.parent} ({error.strerror or error}).",
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
