"""moto on virtual time.

moto stamps resources with `utcnow()` from `moto.core.utils` and, in a few places, with `datetime.now()`. Each module
binds these names when it is imported, so they are replaced here before any of moto's backends is loaded. This module is
therefore the first that `rehearsal.aws` imports; a moto module that was loaded earlier gets the new name as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from importlib import import_module

import moto.core.utils

_REAL_UTCNOW = moto.core.utils.utcnow

# The clock of the one world that moto serves in this process; None between worlds.
_clock: Callable[[], datetime] | None = None


def use(clock: Callable[[], datetime] | None) -> None:
    """Stamp with `clock` (aware instants) from now on; None goes back to real time."""
    global _clock
    _clock = clock


def utcnow() -> datetime:
    """Virtual now, naive and in UTC, as moto keeps its instants."""
    return naive(_clock()) if _clock is not None else _REAL_UTCNOW()


def naive(instant: datetime) -> datetime:
    """An aware instant as moto keeps it."""
    return instant.astimezone(UTC).replace(tzinfo=None)


class _VirtualDatetime(datetime):
    """Stands in for `datetime` in modules that call `datetime.now()`."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """Virtual now."""
        return utcnow() if tz is None else utcnow().replace(tzinfo=UTC).astimezone(tz)


def _replace_in_moto() -> None:
    moto.core.utils.utcnow = utcnow
    for name, module in list(sys.modules.items()):
        if name.startswith("moto.") and vars(module).get("utcnow") is _REAL_UTCNOW:
            vars(module)["utcnow"] = utcnow
    # Auto Scaling stamps its groups with datetime.now(); the other modules that do so serve nothing here.
    vars(import_module("moto.autoscaling.models"))["datetime"] = _VirtualDatetime


_replace_in_moto()
