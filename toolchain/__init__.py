"""The programs of a rehearsal that no Python package holds: found here, downloaded, or built from pinned Go modules.

    pins.toml, pins.py   every pin with its reason, and the key of the cache
    modules/             the Go modules (go.mod, go.sum) that a build uses
    surroundings.py      where a run looks and writes
    find.py              PATH, the user's Pulumi plugins, the cache
    official.py, network.py   the vendors' downloads, and how soon they are given up
    build.py, children.py     the go command, and ending it when we are ended
    cache.py             the per-user cache: whole folders or none, one lock for each
    obtain.py            finding, downloading, building in that order
    plugin.py            the providers as plugins of an engine
    doctor.py, progress.py, errors.py, __main__.py   what a user sees

Callers use what this file exports. It imports nothing of the project's other packages.
"""

from rich.console import Console

from .doctor import describe
from .errors import ToolchainError
from .find import Toolchain, toolchain_of
from .obtain import obtain
from .plugin import install_plugins
from .progress import Reporter
from .surroundings import real_surroundings

__all__ = [
    "Toolchain",
    "ToolchainError",
    "describe",
    "ensure",
    "install_plugins",
    "locate",
]


def ensure(console: Console | None = None, *, official_aws: bool = False) -> Toolchain:
    """All programs: found, downloaded or built. Progress goes to `console` (default: standard error).

    `official_aws`: the vendor's plugin of pulumi-aws instead of the build with scaled waits.
    The first call on a machine takes up to a quarter of an hour, later ones milliseconds. Raises ToolchainError with a
    message and a remedy. In the main thread SIGTERM and SIGHUP end the build's children and then raise SystemExit.
    """
    return toolchain_of(
        obtain(real_surroundings(official_aws=official_aws), Reporter(console)), official_aws=official_aws
    )


def locate() -> Toolchain:
    """All programs where they already are; fetches and builds nothing. Raises ToolchainError that names what lacks."""
    return toolchain_of({part.name: part for part in describe()})
