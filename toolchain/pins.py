"""The pins of pins.toml as values, the rule which version found on PATH is good enough, and the key of the cache.

The key is a hash of what decides the result of a build: version, packages, linker flags, the files of the Go module and
the platform. Comments, measured figures and download addresses may change without anybody having to build again.
"""

import hashlib
import json
import platform
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

PINS_FILE = Path(__file__).with_name("pins.toml")

Accept = Literal["exact", "same-minor", "minor-or-later"]
Kind = Literal["tarball", "binaries", "plugin"]
Way = Literal["found", "download", "build"]

_USUAL_WAYS: tuple[Way, ...] = ("found", "download", "build")

# Python's names of processors and systems, and Go's, which most vendors use too.
_GO_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}


def go_os() -> str:
    """This system by Go's name: linux, darwin."""
    return sys.platform


def go_arch() -> str:
    """This processor by Go's name: amd64, arm64."""
    machine = platform.machine()
    return _GO_ARCH.get(machine, machine)


def version_tuple(version: str) -> tuple[int, ...]:
    """`3.274.1` as (3, 274, 1)."""
    return tuple(int(number) for number in version.split("."))


@dataclass(frozen=True, kw_only=True)
class Program:
    """One executable of a pin. `plugin` is the folder of Pulumi's plugins that it is looked for in instead of PATH."""

    name: str
    package: str
    version_command: tuple[str, ...]
    version_pattern: str
    plugin: str | None


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A JSON file of a Go module that is embedded with its `version` set."""

    module: str
    file: str


@dataclass(frozen=True, kw_only=True)
class Prepare:
    """What the go command runs before the build, in a folder of the Go module."""

    folder: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Official:
    """The vendor's own download. `checksum_url` is None where the vendor publishes no checksum."""

    kind: Kind
    url: str
    checksum_url: str | None
    folder: str
    arch_names: Mapping[str, str]
    platforms: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One pinned release, the programs it brings and the ways to get them, in the order in which they are tried."""

    name: str
    version: str
    why: str
    accept: Accept
    programs: tuple[Program, ...]
    ldflags: tuple[str, ...]
    schema: Schema | None
    prepare: Prepare | None
    official: Official | None
    ways: tuple[Way, ...]
    usual_seconds: int
    usual_megabytes: int
    module_folder: Path

    def accepts(self, found: str) -> bool:
        """Whether a version found on this machine is good enough; `accept` in pins.toml explains the three rules."""
        have, want = version_tuple(found), version_tuple(self.version)
        match self.accept:
            case "exact":
                return have == want
            case "same-minor":
                return have[:2] == want[:2]
            case "minor-or-later":
                return have[0] == want[0] and have[1] >= want[1]

    def fill(self, text: str, program: str = "") -> str:
        """Put version, platform and program into an address, a folder or a linker flag of pins.toml."""
        major, minor, *_ = self.version.split(".")
        arch = go_arch()
        if self.official is not None:
            arch = self.official.arch_names.get(arch, arch)
        return text.format(version=self.version, major=major, minor=minor, os=go_os(), arch=arch, program=program)

    def key(self) -> str:
        """Twelve hex digits that change whenever a build would give something else."""
        digest = hashlib.sha256()
        recipe = {
            "version": self.version,
            "programs": [[program.name, program.package] for program in self.programs],
            "ldflags": self.ldflags,
            "schema": [self.schema.module, self.schema.file] if self.schema else None,
            "prepare": [self.prepare.folder, self.prepare.arguments] if self.prepare else None,
            "platform": [go_os(), go_arch()],
        }
        digest.update(json.dumps(recipe, sort_keys=True).encode())
        for file in sorted(path for path in self.module_folder.rglob("*") if path.is_file() and path.name[0] != "."):
            content = file.read_bytes()
            digest.update(f"\n{file.relative_to(self.module_folder)} {len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class Pins:
    """All pins, and the oldest Go that builds them."""

    go_minimum: str
    pins: tuple[Pin, ...]

    def official_only(self, name: str) -> "Pins":
        """The same pins, but the vendor's own program for the pin `name`: found or downloaded, never built."""
        changed = (replace(pin, ways=("found", "download")) if pin.name == name else pin for pin in self.pins)
        return replace(self, pins=tuple(changed))


def load_pins(file: Path = PINS_FILE) -> Pins:
    """Read a pins file; the Go modules stand in `modules/<name>/` beside it."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    modules = file.parent / "modules"
    return Pins(go_minimum=document["go_minimum"], pins=tuple(_pin(entry, modules) for entry in document["pin"]))


def _pin(entry: dict[str, Any], modules: Path) -> Pin:
    version = entry["version"]
    schema, prepare = entry["go"].get("schema"), entry["go"].get("prepare")
    return Pin(
        name=entry["name"],
        version=version,
        why=entry["why"],
        accept=cast(Accept, entry["accept"]),
        programs=tuple(_program(program, version) for program in entry["program"]),
        ldflags=tuple(entry["go"]["ldflags"]),
        schema=Schema(module=schema["module"], file=schema["file"]) if schema else None,
        prepare=Prepare(folder=prepare["folder"], arguments=tuple(prepare["arguments"])) if prepare else None,
        official=_official(entry["official"]) if "official" in entry else None,
        ways=tuple(entry.get("ways", _USUAL_WAYS)),
        usual_seconds=entry["measured"]["seconds"],
        usual_megabytes=entry["measured"]["megabytes"],
        module_folder=modules / entry["name"],
    )


def _program(entry: dict[str, Any], version: str) -> Program:
    plugin = entry.get("plugin")
    return Program(
        name=entry["name"],
        package=entry["package"],
        version_command=tuple(entry.get("version_command", ())),
        version_pattern=entry.get("version_pattern", ""),
        plugin=plugin.format(version=version) if plugin else None,
    )


def _official(entry: dict[str, Any]) -> Official:
    return Official(
        kind=cast(Kind, entry["kind"]),
        url=entry["url"],
        checksum_url=entry.get("checksum_url"),
        folder=entry.get("folder", ""),
        arch_names=entry.get("arch_names", {}),
        platforms=tuple(entry["platforms"]),
    )
