"""Getting what lacks: the vendor's download first, else a build, one pin after the other, each under its lock."""

import errno
from pathlib import Path

from . import build, cache, official
from .children import ending_on_signals
from .errors import ExitCode, OfficialFailed, ToolchainError
from .find import Part, find, in_cache
from .network import Network
from .pins import Pin, Way
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
            f"Not on this machine yet: {names}. Each is downloaded from its vendor or built; building all takes about "
            f"{usual} on 2 cores, once."
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
                finished, way = _get(world, pin, staged, network, pulumi, reporter)
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


def _get(
    world: Surroundings, pin: Pin, staged: Path, network: Network, pulumi: Path | None, reporter: Reporter
) -> tuple[Path, str]:
    """A folder with all programs of the pin, and "official" or "built"; raises the error of the last way."""
    unreachable_before = network.unreachable
    *earlier, last = [way for way in pin.ways if way != "found"]
    for way in earlier:
        try:
            return _get_by(way, world, pin, staged, network, pulumi, reporter)
        except OfficialFailed as failure:
            # Once the network is known to be unreachable, the same sentence for each pin helps the user no further.
            if unreachable_before is None:
                reporter.say(f"Downloading {pin.name} failed: {failure}. Building it instead.")
        except ToolchainError as failure:
            if failure.exit_code != ExitCode.NO_GO:
                raise
            reporter.say(f"{failure.message} Downloading {pin.name} instead.")
    try:
        return _get_by(last, world, pin, staged, network, pulumi, reporter)
    except OfficialFailed as failure:
        raise ToolchainError(
            f"{pin.name} {pin.version} could not be downloaded: {failure}.",
            "Check the network, or install Go and run this again.",
        ) from failure


def _get_by(
    way: Way, world: Surroundings, pin: Pin, staged: Path, network: Network, pulumi: Path | None, reporter: Reporter
) -> tuple[Path, str]:
    finished, work = staged / way, staged / f"{way}-work"
    finished.mkdir()
    work.mkdir()
    if way == "build":
        build.build(world, pin, work, finished, reporter)
        return finished, "built"
    official.fetch(world, pin, work, finished, network, pulumi, reporter)
    return finished, "official"
