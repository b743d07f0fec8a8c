"""The per-user cache: one folder for each pin and key, put in place by one rename, and one lock for each.

A folder under its final name is always whole: work is done in a hidden folder beside it (`staging`), checked, and then
renamed. A process that dies half way leaves only a hidden folder, which the next holder of the lock removes. Go's own
build cache remembers what was compiled, so that the next run goes on where the last one stopped.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import ToolchainError
from .pins import Pin
from .progress import Reporter

RECEIPT = "installed.json"
_POLL_SECONDS = 0.2
# Longer than all five builds on a slow machine: a lock that old is held by something that hangs.
_WAIT_LIMIT_SECONDS = 3 * 3600.0


def folder_of(cache: Path, pin: Pin) -> Path:
    """Where the programs of a pin are, or will be. A vendor's program does not share a folder with a build."""
    only = "" if "build" in pin.ways else "-official"
    return cache / f"{pin.name}-{pin.key()}{only}"


def way_of(folder: Path, pin: Pin) -> str | None:
    """How the programs in a cache folder were had ("official" or "built"); None when it is absent or damaged."""
    try:
        receipt = json.loads((folder / RECEIPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not all(is_program(folder / program.name) for program in pin.programs):
        return None
    way = receipt.get("way")
    return way if isinstance(way, str) else None


def is_program(path: Path) -> bool:
    """A file that may be executed and is not empty."""
    return path.is_file() and os.access(path, os.X_OK) and path.stat().st_size > 0


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder` to work in; removed at the end, whatever happened. Hold the lock."""
    prefix = f".{folder.name}-"
    for stale in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    # A new name each time: were the last run killed, a compiler it left behind could still write into the old folder.
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def commit(finished: Path, folder: Path, pin: Pin, way: str) -> None:
    """Put a finished folder in place under its final name. Hold the lock."""
    receipt = {"name": pin.name, "version": pin.version, "way": way}
    (finished / RECEIPT).write_text(json.dumps(receipt) + "\n", encoding="utf-8")
    for program in pin.programs:
        _sync(finished / program.name)
    # A damaged folder (somebody deleted a program) would make the rename fail.
    shutil.rmtree(folder, ignore_errors=True)
    finished.rename(folder)


def _sync(path: Path) -> None:
    """Bytes first, name later: after a power cut a name in the cache must not stand for an empty file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def lock(folder: Path, pin: Pin, reporter: Reporter) -> Iterator[None]:
    """One process at a time gets a pin; the others say that they wait. The kernel frees the lock of a dead process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.with_name(f"{folder.name}.lock")
    with path.open("a+", encoding="utf-8") as file:
        if not _try_lock(file.fileno()):
            _wait(file.fileno(), path, pin, reporter)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(descriptor: int, path: Path, pin: Pin, reporter: Reporter) -> None:
    holder = path.read_text(encoding="utf-8").strip()
    text = f"waiting for process {holder or 'of another caller'}, which is getting {pin.name} {pin.version}"
    started = time.monotonic()
    with reporter.task(text) as task:
        while not _try_lock(descriptor):
            if time.monotonic() - started > _WAIT_LIMIT_SECONDS:
                raise ToolchainError(
                    f"Process {holder} has held {path} for three hours.",
                    "End it if it hangs, then run this again.",
                )
            task.tick()
            time.sleep(_POLL_SECONDS)
