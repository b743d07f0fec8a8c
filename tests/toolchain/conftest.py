"""A small world for the toolchain: two pins, a `go` that is a shell script, a cache and a PATH of its own.

The real programs take a quarter of an hour to build; what is tested here is everything around the go command.
"""

import shutil
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from toolchain.find import Part
from toolchain.network import Network
from toolchain.obtain import obtain
from toolchain.pins import load_pins
from toolchain.progress import Reporter
from toolchain.surroundings import Surroundings

PINS = r"""
go_minimum = "1.26.6"

[[pin]]
name = "alpha"
version = "1.2.3"
why = "tests"
accept = "exact"
measured = { seconds = 60, megabytes = 1 }
[[pin.program]]
name = "alpha-one"
package = "example.com/alpha/cmd/one"
version_command = ["--version"]
version_pattern = '^alpha v(\d+\.\d+\.\d+)'
[[pin.program]]
name = "alpha-two"
package = "example.com/alpha/cmd/two"
version_command = ["--version"]
version_pattern = '^alpha v(\d+\.\d+\.\d+)'
[pin.go]
ldflags = ["-X example.com/alpha.Version={version}"]

[[pin]]
name = "beta"
version = "4.5.6"
why = "tests"
accept = "same-minor"
measured = { seconds = 10, megabytes = 1 }
[[pin.program]]
name = "beta"
package = "example.com/beta"
version_command = ["--version"]
version_pattern = 'beta Version: (\d+\.\d+\.\d+)'
[pin.go]
ldflags = []
"""

# Notes each build in $LOG; `during` is what a test lets happen in the middle of it.
FAKE_GO = r"""#!/bin/sh
PATH=/usr/bin:/bin
if [ "$1" = env ]; then echo "{version}"; exit 0; fi
if [ "$1" = run ]; then basename "$PWD" >> "{log}"; exit 0; fi
while [ "$1" != -o ]; do shift; done
target=$2 package=$3
echo "$package" >> "{log}"
echo "go: compiling $package" >&2
{during}
case "$package" in
  *alpha*) says="alpha v{alpha_says}" ;;
  *) says="beta Version: 4.5.6" ;;
esac
printf '#!/bin/sh\necho "%s"\n' "$says" > "$target"
chmod +x "$target"
"""


@dataclass(kw_only=True)
class World:
    """One machine and one user, and what was printed to that user."""

    folder: Path
    output: StringIO = field(default_factory=StringIO)
    official_base: str | None = None

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def clone(self) -> Path:
        return self.folder / "clone"

    def surroundings(self, clone: Path | None = None) -> Surroundings:
        return Surroundings(
            pins=load_pins((clone or self.clone) / "pins.toml"),
            cache=self.cache,
            search_path=str(self.bin),
            home=self.folder / "home",
            official_base=self.official_base,
        )

    def write_pins(self, text: str) -> None:
        """A clone of the project with these pins and a Go module for each."""
        (self.clone / "pins.toml").write_text(text)
        for pin in load_pins(self.clone / "pins.toml").pins:
            pin.module_folder.mkdir(parents=True, exist_ok=True)
            (pin.module_folder / "go.mod").write_text(f"module {pin.name}\n")
            (pin.module_folder / "go.sum").write_text(f"{pin.name} {pin.version}\n")

    def go(self, *, during: str = "", version: str = "go1.26.8", alpha_says: str = "1.2.3") -> None:
        """Put a go command on PATH."""
        text = FAKE_GO.format(during=during, version=version, alpha_says=alpha_says, log=self.folder / "builds")
        self.program(self.bin / "go", text)

    def program(self, path: Path, text: str) -> Path:
        """An executable script."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def says(self, path: Path, text: str) -> Path:
        """An executable that prints a text."""
        return self.program(path, f"#!/bin/sh\necho '{text}'\n")

    def builds(self) -> list[str]:
        """The packages that go was asked to build, in order."""
        log = self.folder / "builds"
        return log.read_text().split() if log.exists() else []

    def obtain(self, clone: Path | None = None, network: Network | None = None) -> dict[str, Part]:
        console = Console(file=self.output, width=200)
        return obtain(self.surroundings(clone), Reporter(console), network)

    def printed(self) -> str:
        return self.output.getvalue()

    def leftovers(self) -> list[str]:
        """What work has left in the cache besides finished folders, locks and logs."""
        return [path.name for path in self.cache.iterdir() if path.name.startswith(".")] if self.cache.exists() else []


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A machine with Go and nothing else."""
    made = World(folder=tmp_path)
    for folder in (made.bin, made.clone, made.folder / "home"):
        folder.mkdir()
    made.write_pins(PINS)
    made.go()
    return made


@pytest.fixture
def second_clone(world: World) -> Path:
    """The same project, checked out once more elsewhere."""
    return Path(shutil.copytree(world.clone, world.folder / "second-clone"))


@pytest.fixture
def with_official(world: World) -> Callable[..., World]:
    """Give a pin a vendor: `with_official(alpha='kind = ...', beta='...')`."""

    def give(**sections: str) -> World:
        text = PINS
        for name, section in sections.items():
            before, after = text.split(f'name = "{name}"\nversion', 1)
            rest, *others = after.split("[[pin]]", 1)
            official = f'[pin.official]\nplatforms = ["linux/amd64", "linux/arm64"]\n{textwrap.dedent(section)}\n'
            text = "[[pin]]".join([f'{before}name = "{name}"\nversion{rest}\n{official}', *others])
        world.write_pins(text)
        return world

    return give


@pytest.fixture
def hasty_network() -> Network:
    """A network whose patience fits a test."""
    return replace(Network(), first_byte_seconds=0.5, stall_seconds=20)
