"""A detached child: `python -m automation.session.child up|destroy FOLDER NUMBER`.

It outlives its starter, so it takes nothing from it but three words: the folder says everything else. Its last word
stands in `result.json`; without one it was killed. Pulumi's errors are translated here and nowhere else.
"""

import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import psutil
from pulumi import automation as auto

from automation.cleanup.others import others_deleted
from automation.errors import EngineFailed, ExitCode, Refused, RentblockError, machine_error
from automation.ledger.folder import SessionFolder, write_whole
from automation.ledger.journal import Journal
from automation.ledger.lock import held
from automation.ledger.record import Record
from automation.refusals import check_account, refuse_stand_ins
from automation.session import eks_health, half_made
from automation.session.adopt import adopt
from automation.session.engine import (
    PASSPHRASE,
    Lock,
    diagnostics,
    engine_environment,
    install_plugins,
    locks,
    open_stack,
    workspace_files,
)
from automation.session.operations import LastWord
from automation.session.outputs import write_outputs
from automation.session.stack_config import stack_config
from automation.target import Target, target_from_environment
from components.program import session_program

_COST = "What the stack has made so far stays and is billed; the next try goes on from there."
_LOCK_LOOK_S = 1.0
# An engine whose starter was killed finishes the step that it is in; a cluster takes the longest.
_LOCK_LIMIT_S = 45 * 60.0
# Its starter writes a child down as soon as it has its pid.
_LINE_LIMIT_S = 30.0
_LINE_LOOK_S = 0.2
_MOST_CHARACTERS = 500
_KUBERNETES = "kubernetes:"
# So Pulumi's Automation API tells of an engine that was ended by a signal.
_KILLED = re.compile(r"^\s*code: -(\d+)", re.MULTILINE)
_asked_to_stop = threading.Event()


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a child works on."""

    folder: SessionFolder
    logs: Path
    record: Record
    target: Target
    environment: Mapping[str, str]
    stack: auto.Stack


def main(arguments: list[str]) -> int:
    """Run one operation and leave a last word. Gives the exit code."""
    name, root, number = arguments
    os.umask(0o077)
    folder = SessionFolder(root=Path(root))
    logs = folder.operation(int(number), name)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _leave_it_to_the_engine)
    try:
        if not _is_written_down(folder, int(number)):
            # No word: the number may be another child's by now.
            print("Whoever started this operation ended before it was written down. It made nothing.")  # noqa: T201
            return ExitCode.ENGINE
        at_work = EngineFailed(
            happened="Another operation of this session is at work.", cost=_COST, remedy="It is tried again."
        )
        with held(folder.operation_lock, lambda signed: at_work):
            _OPERATIONS[name](_work(folder, logs))
        word = LastWord(exit_code=ExitCode.OK, sentence="")
    except RentblockError as error:
        word = LastWord(exit_code=error.exit_code, sentence=error.happened)
    except auto.CommandError as error:
        word = LastWord(exit_code=ExitCode.ENGINE, sentence=_told(name, logs, error))
    except OSError as error:
        word = LastWord(exit_code=ExitCode.MACHINE, sentence=machine_error(error).happened)
    word.write(logs)
    return word.exit_code


def up(work: Work) -> None:
    """Make everything but the nodes, then keep what the session needs to reach it."""
    if work.target.mode == "aws":
        install_plugins(work.environment)
    _go_on()
    half_made.take_back(work.stack, work.folder)
    eks_health.delete_failed(work.target, work.stack)
    work.stack.up(parallel=work.record.request.parallel, show_secrets=False, suppress_outputs=True, color="never")
    eks_health.require_active(work.target, work.stack)
    write_outputs(work.folder, {name: output.value for name, output in work.stack.outputs().items()})


def destroy(work: Work) -> None:
    """Delete everything that the stack made. In-cluster objects go with their cluster, also when it does not answer."""
    resources = (work.stack.export_stack().deployment or {}).get("resources", [])
    own = frozenset(str(resource["id"]) for resource in resources if resource.get("id"))
    with others_deleted(work.target, work.folder.session, own):
        work.stack.destroy(
            parallel=work.record.request.parallel, show_secrets=False, suppress_outputs=True, color="never"
        )


_OPERATIONS: dict[str, Callable[[Work], None]] = {"up": up, "destroy": destroy}


def _work(folder: SessionFolder, logs: Path) -> Work:
    record = Journal(folder.journal).record()
    if record.block is None:
        raise Refused(happened=f"Session {record.session} has no block.", remedy="Rent one.")
    target = target_from_environment().in_region(record.block.region)
    refuse_stand_ins(target, os.environ)
    check_account(target)
    if not record.belongs_to(target):
        raise Refused(
            happened=f"Session {record.session} belongs to {record.mode} account {record.account_id}, "
            f"not to {target.account_id}.",
            remedy="Use the credentials of that account.",
        )
    write_whole(folder.providers, json.dumps(dict(target.providers)))
    workspace_files(folder, stack_config(record.request, record.block, record.image_digest))
    environment = engine_environment(folder, target.engine_environment)
    os.environ.pop(PASSPHRASE, None)
    _wait_for_the_stack(environment["PULUMI_BACKEND_URL"], folder)
    stack = open_stack(folder, logs, session_program, environment)
    work = Work(folder=folder, logs=logs, record=record, target=target, environment=environment, stack=stack)
    _recover(work)
    return work


def _is_written_down(folder: SessionFolder, number: int) -> bool:
    """What no journal knows of, nobody would destroy: a child whose starter died before it wrote makes nothing."""
    limit = time.monotonic() + _LINE_LIMIT_S
    while (number, os.getpid()) not in {(run.number, run.pid) for run in Journal(folder.journal).record().operations}:
        if time.monotonic() > limit:
            return False
        time.sleep(_LINE_LOOK_S)
    return True


def _go_on() -> None:
    """Raise EngineFailed when the child was asked to stop while there was no engine that could have heard of it."""
    if _asked_to_stop.is_set():
        raise EngineFailed(
            happened="It was asked to stop before the engine began.",
            cost=_COST,
            remedy="The session goes on without it.",
        )


def _wait_for_the_stack(backend_url: str, folder: SessionFolder) -> None:
    """An engine whose starter is gone may still be at work; it ends by itself. Never cancel a living one."""
    limit = time.monotonic() + _LOCK_LIMIT_S
    while held := locks(backend_url, folder.session):
        foreign = [lock for lock in held if lock.hostname != socket.gethostname()]
        if foreign:
            raise EngineFailed(
                happened=f"{foreign[0].hostname} holds the stack since {foreign[0].timestamp} (pid {foreign[0].pid}).",
                cost=_COST,
                remedy="Let it finish, or run this session there.",
            )
        if not any(_lives(lock) for lock in held):
            return
        _go_on()
        if time.monotonic() > limit:
            raise EngineFailed(
                happened=f"Process {held[0].pid} has held the stack since {held[0].timestamp}.",
                cost=_COST,
                remedy="End it if it hangs; the next try goes on.",
            )
        time.sleep(_LOCK_LOOK_S)


def _lives(lock: Lock) -> bool:
    """Whether the engine that took the lock still runs. After a restart of the machine its pid may be anybody's."""
    try:
        return psutil.Process(lock.pid).name().startswith("pulumi")
    except psutil.Error:
        return False


def _recover(work: Work) -> None:
    """After an engine that was killed: its lock is taken away, and what it was making is adopted where AWS has it."""
    if locks(work.environment["PULUMI_BACKEND_URL"], work.folder.session):
        work.stack.cancel()
    exported = work.stack.export_stack()
    if not (exported.deployment or {}).get("pending_operations"):
        return
    deployment = adopt(work.target, work.folder.session, exported.deployment or {})
    half_made.remember(work.folder, deployment["pending_operations"])
    work.stack.import_stack(auto.Deployment(version=exported.version, deployment=deployment))
    # The cluster may be half made or gone, and then nobody answers for what is in it.
    in_cluster = [
        resource["urn"] for resource in deployment.get("resources", []) if resource["type"].startswith(_KUBERNETES)
    ]
    work.stack.refresh(
        clear_pending_creates=True,
        exclude=in_cluster or None,
        parallel=work.record.request.parallel,
        show_secrets=False,
        color="never",
    )


def _told(name: str, logs: Path, error: auto.CommandError) -> str:
    """The engine's own words on what went wrong, and where all of them are."""
    if killed := _KILLED.search(str(error)):
        return f"The engine was ended by signal {killed[1]}. The next try goes on from there. (All of it: {logs})"
    said = diagnostics(logs / f"{name}.events") or " ".join(str(error).split())[-_MOST_CHARACTERS:]
    return f"{said} (all of it: {logs})"


def _leave_it_to_the_engine(number: int, frame: FrameType | None) -> None:
    # The whole process group is signalled: the engine stops in good order, and we wait for it. Ignoring the signal
    # instead would be inherited by the engine.
    del number, frame
    _asked_to_stop.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
