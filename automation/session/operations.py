"""Detached children: `up` and `destroy` run in sessions of their own, with their output in files.

Killed together with their starter they would leave a locked stack and a pending operation; like this they finish, and
whoever looks next finds their last word. Interrupting one asks it, once, to stop after what it is doing: a second
signal would end the engine at once and leave orphans. So killing is for one that hangs.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

from automation.errors import machine_error
from automation.ledger.entries import OperationEnded, OperationInterrupted, OperationStarted
from automation.ledger.folder import SessionFolder, write_whole
from automation.ledger.journal import Journal
from automation.ledger.record import OperationName, OperationRun, Record
from automation.session.observation import OperationSeen

_CHECKOUT = Path(__file__).resolve().parents[2]
# The children of this process, so that it can take their last breath; those of others are taken care of by init.
_ours: dict[int, subprocess.Popen[bytes]] = {}
_LAST_WORD = "result.json"
# Start times of processes are kept in hundredths of a second.
_SAME_START_S = 0.05


@dataclass(frozen=True, kw_only=True)
class LastWord:
    """What a child says when it ends: its exit code and, when that is not 0, a sentence that says why."""

    exit_code: int
    sentence: str

    def write(self, folder: Path) -> None:
        """Leave it where the next look finds it. Raises MachineInTheWay."""
        write_whole(folder / _LAST_WORD, json.dumps({"exit_code": self.exit_code, "sentence": self.sentence}))

    @staticmethod
    def read(folder: Path) -> "LastWord | None":
        """None while the child runs, or when it was killed."""
        try:
            said = json.loads((folder / _LAST_WORD).read_text(encoding="utf-8"))
            return LastWord(exit_code=int(said["exit_code"]), sentence=str(said["sentence"]))
        except (OSError, ValueError, KeyError):
            return None


@dataclass(frozen=True, kw_only=True)
class SeenOperation:
    """A child that was started, by this process or by one that is long gone."""

    run: OperationRun

    def ended(self) -> bool:
        """Whether its process is gone; another one that got the same pid later is not taken for it."""
        try:
            process = psutil.Process(self.run.pid)
            same = abs(since_boot(process) - self.run.process_started) < _SAME_START_S
            if same and process.status() == psutil.STATUS_ZOMBIE:
                if ours := _ours.pop(self.run.pid, None):
                    ours.wait()
                return True
        except psutil.NoSuchProcess:
            return True
        return not same


def since_boot(process: psutil.Process) -> float:
    """When a process began, in seconds since the boot of this machine.

    The kernel keeps it so. Since the epoch it would move with each step of the wall clock (a laptop wakes up, NTP),
    and a running `up` would be taken for one that is gone."""
    return process.create_time() - psutil.boot_time()


def start(
    name: OperationName, folder: SessionFolder, journal: Journal, now: datetime, environment: Mapping[str, str]
) -> None:
    """Start a child and write it down. Raises MachineInTheWay when this machine does not let us."""
    number = len(journal.record().operations) + 1
    place = folder.operation(number, name)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(place / "child.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "automation.session.child", name, str(folder.root), str(number)],
                cwd=_CHECKOUT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise machine_error(error) from error
    _ours[child.pid] = child
    try:
        started = since_boot(psutil.Process(child.pid))
    except psutil.NoSuchProcess:
        started = 0.0
    journal.write(OperationStarted(at=now, number=number, name=name, pid=child.pid, process_started=started))


def poll(record: Record, folder: SessionFolder, journal: Journal, now: datetime) -> OperationSeen | None:
    """How the last child does; its end is written down once."""
    if not record.operations:
        return None
    run = record.operations[-1]
    if run.ended is not None:
        return OperationSeen(number=run.number, name=run.name, running=False, exit_code=run.exit_code)
    if not SeenOperation(run=run).ended():
        return OperationSeen(number=run.number, name=run.name, running=True, exit_code=None)
    word = LastWord.read(folder.operation(run.number, run.name))
    code = word.exit_code if word else None
    journal.write(OperationEnded(at=now, number=run.number, exit_code=code))
    return OperationSeen(number=run.number, name=run.name, running=False, exit_code=code)


def interrupt(record: Record, journal: Journal, now: datetime) -> None:
    """Ask the running child, once, to stop after what it is doing."""
    run = record.operations[-1]
    if run.interrupted is not None:
        return
    # Written first: after a crash here one signal too few is repaired by time, one too many by nothing.
    journal.write(OperationInterrupted(at=now, number=run.number))
    if not SeenOperation(run=run).ended():
        # The child leads its own process group, and the engine is in it. It may end in this very moment.
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGINT)


def kill(record: Record) -> None:
    """End the running child and its engine at once. What it was making is looked for by the next operation and the
    sweep."""
    run = record.operations[-1]
    if not SeenOperation(run=run).ended():
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
