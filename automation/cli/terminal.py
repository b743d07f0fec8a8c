"""The terminal that a verb speaks to, which may go away: a session whose block is paid must not end with it."""

import errno
import io
import os
import signal
import sys
from contextlib import suppress
from typing import IO, TextIO, cast

from rich.console import Console


class _StandardError(io.TextIOBase):
    """Standard error as it is at each moment. What can't be written any more is not written: the reader of a pipe has
    ended, a connection has dropped, a disk is full. The journal has all of it."""

    def write(self, text: str) -> int:
        try:
            return _now().write(text)
        except OSError as error:
            _let_go(error)
            return len(text)

    def flush(self) -> None:
        try:
            _now().flush()
        except OSError as error:
            _let_go(error)

    def isatty(self) -> bool:
        return _now().isatty()

    def fileno(self) -> int:
        return _now().fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return _now().encoding


def _now() -> TextIO:
    # While rich shows something live, it stands in for standard error and writes to what it has replaced.
    return cast("TextIO", getattr(sys.stderr, "rich_proxied_file", sys.stderr))


def _let_go(error: OSError) -> None:
    """Write to nobody from now on, when nobody will ever read it: what is buffered would spoil the exit code.
    A disk may have room again."""
    if error.errno not in (errno.EPIPE, errno.EIO):
        return
    with suppress(OSError):
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, _now().fileno())
        os.close(nobody)


def console() -> Console:
    """A console on standard error that never ends the verb that uses it."""
    # A process that was begun with standard error closed has none; rich then writes to nobody.
    return Console(stderr=True) if sys.stderr is None else Console(file=cast("IO[str]", _StandardError()))


def outlive() -> None:
    """Go on when the terminal is closed or its connection drops. Children that mind set a handler of their own."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def somebody_types() -> bool:
    """Whether answers come from a keyboard: one that stands in a pipe is nobody's."""
    return sys.stdin is not None and sys.stdin.isatty()
