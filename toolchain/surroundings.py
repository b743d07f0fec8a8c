"""Where one run looks and writes: the pins, PATH, the user's home and the per-user cache.

Everything else in this package gets these as a value, so that a test can give it a world of its own.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from .errors import ExitCode, ToolchainError
from .pins import Pins, load_pins

CACHE_VARIABLE = "RENTBLOCK_TOOLCHAIN_CACHE"
# For tests only, hence in no --help: a loopback server that stands in for every vendor.
OFFICIAL_VARIABLE = "RENTBLOCK_TOOLCHAIN_OFFICIAL"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The world of one run. `official_base` replaces scheme and host of every download address (tests)."""

    pins: Pins
    cache: Path
    search_path: str
    home: Path
    official_base: str | None = None

    def __post_init__(self) -> None:
        # Programs and their checksums would come from the same server: nobody but this machine may be that server.
        if self.official_base and urlsplit(self.official_base).hostname not in ("127.0.0.1", "::1"):
            raise ToolchainError(
                f"{OFFICIAL_VARIABLE} is for tests and names something other than a loopback address.",
                f"Unset {OFFICIAL_VARIABLE}.",
                ExitCode.USAGE,
            )


def real_surroundings(*, official_aws: bool = False) -> Surroundings:
    """The real ones, read from the environment at the time of the call.

    `official_aws`: the vendor's plugin of pulumi-aws instead of the build.
    """
    pins = load_pins()
    own_cache = os.environ.get(CACHE_VARIABLE)
    return Surroundings(
        pins=pins.official_only("pulumi-aws") if official_aws else pins,
        cache=Path(own_cache).absolute() if own_cache else platformdirs.user_cache_path("rent-the-block") / "toolchain",
        search_path=os.environ.get("PATH", os.defpath),
        home=Path.home(),
        official_base=os.environ.get(OFFICIAL_VARIABLE) or None,
    )
