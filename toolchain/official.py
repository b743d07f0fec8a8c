"""The vendors' own downloads: tarballs, single binaries, and the engine's `plugin install`.

Tested only against a loopback server (tests/toolchain/test_official.py): the machine that this was written on reaches
none of the vendors. Whatever goes wrong here is an OfficialFailed, and the program is built instead.
"""

import hashlib
import os
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

from . import children
from .cache import is_program
from .errors import OfficialFailed
from .find import version_of
from .network import Network
from .pins import Official, Pin, go_arch, go_os
from .progress import Reporter, Task
from .surroundings import Surroundings

_PLUGIN_SECONDS = 600.0


def fetch(
    world: Surroundings, pin: Pin, work: Path, into: Path, network: Network, pulumi: Path | None, reporter: Reporter
) -> None:
    """Download the programs of a pin into the folder `into`; raises OfficialFailed. `pulumi` installs the plugin."""
    official = pin.official
    if official is None or f"{go_os()}/{go_arch()}" not in official.platforms:
        raise OfficialFailed(f"the vendor publishes no {pin.name} for {go_os()}/{go_arch()}")
    if network.unreachable:
        raise OfficialFailed(network.unreachable)
    what = f"{pin.name} {pin.version}"
    with reporter.task(f"downloading {what}", done=f"downloaded {what}") as task:
        match official.kind:
            case "tarball":
                _fetch_tarball(world, pin, official, work, into, network, task)
            case "binaries":
                _fetch_binaries(world, pin, official, into, network, task)
            case "plugin":
                _install_plugin(world, pin, official, work, into, network, pulumi, task)
        _check(pin, into)


def address(world: Surroundings, url: str) -> str:
    """The address itself, or the loopback server's path for it: `http://127.0.0.1:PORT/<host>/<path>`."""
    if world.official_base is None:
        return url
    return f"{world.official_base.rstrip('/')}/{url.split('://', 1)[1]}"


def _fetch_tarball(
    world: Surroundings, pin: Pin, official: Official, work: Path, into: Path, network: Network, task: Task
) -> None:
    archive = work / "archive.tar.gz"
    _download(world, pin, official, "", archive, network, task)
    unpacked = work / "unpacked"
    if not hasattr(tarfile, "data_filter"):  # Python 3.11.0 to 3.11.3
        raise OfficialFailed("this Python cannot unpack an archive safely")
    try:
        with tarfile.open(archive) as tar:
            # "data" refuses names that lead out of the folder, devices and set-user-id bits.
            tar.extractall(unpacked, filter="data")
    except tarfile.TarError as error:
        raise OfficialFailed(f"the archive of {pin.name} cannot be unpacked ({error})") from error
    folder = unpacked / pin.fill(official.folder)
    if not folder.is_dir():
        raise OfficialFailed(f"the archive of {pin.name} holds no folder {folder.name}")
    # All of it: the engine looks for its language hosts beside itself.
    for entry in folder.iterdir():
        entry.rename(into / entry.name)


def _fetch_binaries(
    world: Surroundings, pin: Pin, official: Official, into: Path, network: Network, task: Task
) -> None:
    for program in pin.programs:
        target = into / program.name
        _download(world, pin, official, program.name, target, network, task)
        target.chmod(0o755)


def _install_plugin(
    world: Surroundings,
    pin: Pin,
    official: Official,
    work: Path,
    into: Path,
    network: Network,
    pulumi: Path | None,
    task: Task,
) -> None:
    if pulumi is None:
        raise OfficialFailed("there is no engine to install the plugin with")
    # The engine tries for minutes when nothing answers, so ask first, and let it go nowhere else than where we asked.
    url = address(world, pin.fill(official.url))
    network.reach(url)
    server = url.rsplit("/", 1)[0]
    [program] = pin.programs
    package = program.name.removeprefix("pulumi-resource-")
    home = work / "pulumi-home"
    home.mkdir()
    command = [str(pulumi), "plugin", "install", "resource", package, pin.version, "--server", server]
    log = work / "plugin.log"
    environment = {**os.environ, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        code = children.run(
            command, folder=work, environment=environment, log=log, seconds=_PLUGIN_SECONDS, tick=task.tick
        )
    except children.ChildTimeout as error:
        raise OfficialFailed(f"the engine did not install {program.name} within {_PLUGIN_SECONDS:.0f} s") from error
    installed = home / "plugins" / str(program.plugin) / program.name
    if code != 0 or not is_program(installed):
        raise OfficialFailed(f"the engine did not install {program.name}: {children.last_line(log)}")
    installed.rename(into / program.name)


def _download(
    world: Surroundings, pin: Pin, official: Official, program: str, target: Path, network: Network, task: Task
) -> None:
    url = pin.fill(official.url, program)
    expected = None
    if official.checksum_url is not None:
        listing = network.text(address(world, pin.fill(official.checksum_url, program)))
        expected = _checksum(listing, Path(urlsplit(url).path).name)
        if expected is None:
            raise OfficialFailed(f"the vendor's checksum file does not name {Path(urlsplit(url).path).name}")
    network.download(address(world, url), target, task.tick)
    if expected is not None:
        with target.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != expected:
            target.unlink()
            raise OfficialFailed(f"the checksum of {url} is not the vendor's, so it was thrown away")


def _checksum(listing: str, name: str) -> str | None:
    """The SHA-256 of a file from `<hex>  <name>` lines, or from a file that is nothing but the checksum."""
    for line in listing.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].lstrip("*").removeprefix("./") == name:
            return words[0].lower()
    words = listing.split()
    return words[0].lower() if len(words) == 1 and len(words[0]) == 64 else None


def _check(pin: Pin, into: Path) -> None:
    for program in pin.programs:
        path = into / program.name
        if not is_program(path):
            raise OfficialFailed(f"the vendor's download holds no program {program.name}")
        if program.version_command and (version := version_of(path, program)) != pin.version:
            raise OfficialFailed(f"the vendor's {program.name} says it is version {version} and not {pin.version}")
