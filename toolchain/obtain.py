"""Getting what lacks: the vendor's download first, else a build, one pin after the other, each under its lock."""

import errno
from pathlib import Path

from . import build, cache, official
from .children import ending_on_signals
from .errors import OfficialFailed, ToolchainError
from .find import Part, find, in_cache
from .network import Network
from .pins import Pin
from .progress import Reporter, spell
from .surroundings import Surroundings


def obtain(world: Surroundings, reporter: Reporter, network: Network | None = None) -> dict[str, Part]:
    """All programs by name: found, downloaded or built. Raises ToolchainError; SIGTERM ends the children and exits."""
    network = network or Network()
    found = {pin.name: find(world, pin) for pin in world.pins.pins}
    lacking = [pin for pin in world.pins.pins if found[pin.name] is None]
    parts = {part.name: part for several in found.values() for part in several or ()}
    if lacking:
        names = ", ".join(f"{pin.name} {pin.version}" for pin in lacking)
        usual = spell(sum(pin.usual_seconds for pin in lacking))
        reporter.say(
            f"Not on this machine yet: {names}. They are downloaded from their vendors; what cannot be is built, "
            f"which takes about {usual} on 2 cores, once."
        )
    with ending_on_signals():
        for pin in lacking:
            pulumi = parts["pulumi"].path if "pulumi" in parts else None
            parts |= {part.name: part for part in _obtain_pin(world, pin, network, pulumi, reporter)}
    return parts


def _obtain_pin(
    world: Surroundings, pin: Pin, network: Network, pulumi: Path | None, reporter: Reporter
) -> tuple[Part, ...]:
    folder = cache.folder_of(world.cache, pin)
    try:
        with cache.lock(folder, pin, reporter):
            # Another caller may have got it while we waited for the lock.
            if (parts := in_cache(world, pin)) is not None:
                return parts
            with cache.staging(folder) as staged:
                finished, way = _fetch_or_build(world, pin, staged, network, pulumi, reporter)
                cache.commit(finished, folder, pin, way)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise build.disk_full(f"getting {pin.name} {pin.version}", world.cache) from error
        raise ToolchainError(
            f"{pin.name} {pin.version} could not be put into {world.cache} ({error.strerror or error}).",
            "Set RENTBLOCK_TOOLCHAIN_CACHE to a folder that you may write to.",
        ) from error
    parts = in_cache(world, pin)
    if parts is None:
        raise ToolchainError(f"{folder} was removed while it was made.", "Run this again.")
    return parts


def _fetch_or_build(
    world: Surroundings, pin: Pin, staged: Path, network: Network, pulumi: Path | None, reporter: Reporter
) -> tuple[Path, str]:
    """A folder with all programs of the pin, and the way they were had."""
    known = network.unreachable
    try:
        finished, work = staged / "official", staged / "official-work"
        finished.mkdir()
        work.mkdir()
        official.fetch(world, pin, work, finished, network, pulumi, reporter)
        return finished, "official"
    except OfficialFailed as failure:
        # Once the network is known to be unreachable, five times the same sentence would help nobody.
        if known is None:
            reporter.say(f"Downloading {pin.name} failed: {failure}. Building it instead.")
    finished, work = staged / "built", staged / "built-work"
    finished.mkdir()
    work.mkdir()
    build.build(world, pin, work, finished, reporter)
    return finished, "built"
