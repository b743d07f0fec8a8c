"""The journal: one JSON line after the other, on disk before the next thing is done.

A line that a crash tore is the only one that is lost: it was never reported as written, so nothing that needed it was
done. A later line starts on a line of its own.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from pydantic import ValidationError

from automation.errors import MachineInTheWay, Refused, machine_error
from automation.ledger.entries import ENTRY, Entry
from automation.ledger.fold import fold
from automation.ledger.folder import SessionFolder
from automation.ledger.lock import held
from automation.ledger.record import Record

_UNKNOWN_KIND = "union_tag_invalid"


class Journal:
    """The journal of one session. Several processes may append; each line is one write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, entry: Entry) -> None:
        """Append one entry and wait until it is on disk. Raises MachineInTheWay when it is not."""
        line = ENTRY.dump_json(entry) + b"\n"
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                # The byte before ours tells whether a crash left half a line: ours then starts a new one.
                size = os.fstat(descriptor).st_size
                torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                _write_all(descriptor, b"\n" + line if torn else line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise machine_error(error) from error

    def entries(self) -> tuple[Entry, ...]:
        """All whole lines of a kind that this version knows, oldest first."""
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise machine_error(error) from error
        read = (self._read(number, line) for number, line in enumerate(content.split(b"\n"), start=1) if line)
        return tuple(entry for entry in read if entry is not None)

    def record(self) -> Record:
        """What the session knows of itself now."""
        return fold(self.entries())

    def _read(self, number: int, line: bytes) -> Entry | None:
        try:
            content = json.loads(line)
        except ValueError:
            return None
        try:
            return ENTRY.validate_python(content) if isinstance(content, dict) else None
        except ValidationError as error:
            if all(problem["type"] == _UNKNOWN_KIND for problem in error.errors()):
                return None
            # A line that may speak of money is never passed over in silence.
            raise MachineInTheWay(
                happened=f"Line {number} of {self._path} cannot be read: {error.errors()[0]['msg']}.",
                cost="What the session holds in AWS goes on and is billed.",
                remedy="Put the line right, or use the version of rentblock that wrote it.",
            ) from error


def _write_all(descriptor: int, content: bytes) -> None:
    written = os.write(descriptor, content)
    if written != len(content):
        # A full disk takes half a line; the next try would be told by the torn end.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class RunsElsewhere(Refused):
    """Process `pid` of this machine holds the session's loop lock, so it is alive."""

    def __init__(self, session: str, pid: int) -> None:
        super().__init__(
            happened=f"Process {pid} of this machine runs {session}.",
            remedy="Look with `rentblock status`; end that process if it hangs.",
        )
        self.pid = pid


def attendant(folder: SessionFolder) -> int | None:
    """The process of this machine that runs the session's loop, if one does."""
    try:
        pid = int(folder.lock.read_text(encoding="utf-8").strip() or 0)
        # Between locking and signing, and over a network file system, a lock file bears the pid of somebody else.
        held = any(Path(opened.path) == folder.lock.resolve() for opened in psutil.Process(pid).open_files())
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if held else None


@contextmanager
def alone(folder: SessionFolder) -> Iterator[None]:
    """Hold the session's loop lock; the kernel gives it back when this process dies.

    Raises RunsElsewhere when another process of this machine runs the session."""
    with held(folder.lock, lambda signed: RunsElsewhere(folder.session, int(signed.strip() or 0))) as file:
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
