"""One process of this machine at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from automation.errors import RentblockError, machine_error


@contextmanager
def held(path: Path, taken: Callable[[str], RentblockError]) -> Iterator[TextIO]:
    """Hold a lock file, which is open for its holder to sign; the kernel gives it back when this process dies.

    Raises what `taken` makes of the file's text when another process holds it, and MachineInTheWay."""
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")
    except OSError as error:
        raise machine_error(error) from error
    with file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise taken(file.read()) from error
        yield file
