"""The Python entry: `with rent(request) as session`, and `run_to_end(request)` for a session that nobody watches.

    from automation import rent

    with rent(request) as session:
        client = session.openai()
        client.chat.completions.create(model=session.served_model, messages=[...])

Leaving the block drains, destroys, sweeps and reports, also on an exception.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import openai

from automation.errors import AcceptanceFailed, ClusterFailed, LeftBehind, RentblockError, UnknownSession
from automation.ledger.entries import Closed, EndAsked, Reopened
from automation.ledger.folder import SessionFolder, find
from automation.ledger.journal import Journal, RunsElsewhere, alone, attendant
from automation.ledger.record import Record
from automation.ledger.request import RentRequest
from automation.market.purchase import settle
from automation.refusals import check_account, refuse_stand_ins
from automation.serving.client import connect
from automation.serving.cluster import Cluster
from automation.session.begin import Approve, approve_exactly, begin
from automation.session.display import Display, Quiet
from automation.session.loop import run
from automation.session.outputs import Outputs, api_key, read_outputs
from automation.session.plan import plan_of
from automation.target import Target, target_from_environment
from planning.catalogue import load

_LET_GO_S = 20.0
_LET_GO_LOOK_S = 0.2
_CONNECT_PAUSE = timedelta(seconds=15)
_LEFT = "the program that rented it is done"


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session that serves. Until `drain` requests are answered; leave the `with` block before it: nobody looks at the
    session inside the block, and what is billed beside the block goes on until it is left."""

    folder: SessionFolder
    drain: datetime
    base_url: str
    api_key: str
    served_model: str

    @property
    def id(self) -> str:
        """The session's id: also its stack's and its cluster's name."""
        return self.folder.session

    def openai(self) -> openai.OpenAI:
        """A client for the served model, through a port-forward that lasts as long as the `with` block."""
        return openai.OpenAI(base_url=self.base_url, api_key=self.api_key)


@contextmanager
def rent(
    request: RentRequest,
    target: Target | None = None,
    *,
    approve: Approve | None = None,
    display: Display | None = None,
) -> Iterator[Session]:
    """Rent, prepare, start and prove a session; give it; end it and prove that nothing is left.

    `target` None is the real account, and inside a rehearsal the simulated one. Without `approve`, the fee must be
    exactly the request's `pay_usd`. Raises what `begin` raises, AcceptanceFailed when it never served, LeftBehind when
    the sweep found something at the end.
    """
    where = target or target_from_environment()
    show = display or Quiet()
    folder = begin(request, where, approve or approve_exactly(request.pay_usd), show)
    try:
        record = run(where, folder, show, until=_serves_or_never_will)
        if not _serves(record):
            raise _never_served(record)
        with ExitStack() as connection:
            yield _connected(where, folder, record, show, connection)
    finally:
        last = end(where, folder, show, _LEFT)
    _require_empty(last)


def run_to_end(
    request: RentRequest,
    target: Target | None = None,
    *,
    approve: Approve | None = None,
    display: Display | None = None,
    until: Callable[[Record], bool] | None = None,
) -> Record:
    """Rent a session and run it until its block is over and it is swept, or until `until` says so after a look.

    Raises what `begin` and `run` raise."""
    where = target or target_from_environment()
    show = display or Quiet()
    folder = begin(request, where, approve or approve_exactly(request.pay_usd), show)
    return run(where, folder, show, until=until)


def resume(target: Target, session: str | None, display: Display) -> Record:
    """Go on with a session, from wherever it was left. Raises as `run`, and UnknownSession."""
    folder = find(target.home, session)
    _may_change(target, folder)
    if _bought(target, folder):
        return run(target, folder, display)
    return Journal(folder.journal).record()


def end(target: Target, folder: SessionFolder, display: Display, reason: str) -> Record:
    """End a session now: drain, destroy, sweep, report. One that has ended without coming out empty
    is destroyed and swept once more.

    Another process of this machine that runs the session is interrupted and its work taken over; if it does not let go
    (a program that ends the session itself), RunsElsewhere says so."""
    _may_change(target, folder)
    journal = Journal(folder.journal)
    record = journal.record()
    now = target.clock.now()
    if record.outcome is None:
        journal.write(EndAsked(at=now, reason=reason))
    elif _is_not_empty(record):
        journal.write(Reopened(at=now))
    if _bought(target, folder):
        return _take_over(target, folder, display)
    return journal.record()


def _is_not_empty(record: Record) -> bool:
    return bool(record.residual) or (bool(record.operations) and not (record.destroyed and record.sweeps))


def _take_over(target: Target, folder: SessionFolder, display: Display) -> Record:
    deadline = time.monotonic() + _LET_GO_S
    asked: set[int] = set()
    while True:
        try:
            return run(target, folder, display)
        except RunsElsewhere as elsewhere:
            if time.monotonic() > deadline:
                raise
            if elsewhere.pid not in asked and attendant(folder) == elsewhere.pid:
                # An interrupted loop leaves everything as it is and ends. One that a script began in the background
                # minds no Ctrl-C; ended by the other signal it leaves everything as it is, too.
                asked.add(elsewhere.pid)
                os.kill(elsewhere.pid, signal.SIGTERM if _ignores_interrupts(elsewhere.pid) else signal.SIGINT)
            time.sleep(_LET_GO_LOOK_S)


def _ignores_interrupts(pid: int) -> bool:
    """Whether Linux says so of a process; elsewhere nobody does."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False
    ignored = next((line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")), "0")
    return bool(int(ignored, 16) >> (signal.SIGINT - 1) & 1)


def _may_change(target: Target, folder: SessionFolder) -> None:
    refuse_stand_ins(target, os.environ)
    check_account(target)
    record = Journal(folder.journal).record()
    if not record.belongs_to(target):
        raise UnknownSession(
            happened=f"Session {record.session} belongs to {record.mode} account {record.account_id}, not to this one.",
            remedy="Use the credentials that it was made with.",
        )


def _bought(target: Target, folder: SessionFolder) -> bool:
    """Whether there is a block to work with; a session without one is closed.

    Raises PurchaseUnclear, and RunsElsewhere while another process is buying it."""
    journal = Journal(folder.journal)
    if settle(target, journal):
        return True
    with alone(folder):
        if settle(target, journal):
            return True
        if journal.record().outcome is None:
            journal.write(Closed(at=target.clock.now(), outcome="nothing bought"))
    return False


def _serves(record: Record) -> bool:
    return record.phase == "serve" and record.accepted


def _serves_or_never_will(record: Record) -> bool:
    return _serves(record) or record.end_asked is not None or (record.phase == "drain")


def _never_served(record: Record) -> RentblockError:
    faults = "; ".join(fault.what for fault in record.faults[-3:]) or "no fault was seen"
    return AcceptanceFailed(
        happened=f"Session {record.session} never served: {faults}.",
        cost=f"{_fee_in_words(record)} What is billed beside it ends now.",
        remedy=f"Read its report: `rentblock report --session {record.session}`.",
    )


def _fee_in_words(record: Record) -> str:
    if record.paid_block is None:
        return "No block was paid."
    fee = record.paid_block.fee_usd
    return "The block's fee is spent." if fee is None else f"The block's US${fee} are spent."


def _connected(target: Target, folder: SessionFolder, record: Record, show: Display, connection: ExitStack) -> Session:
    """The session as its user reaches it, for as long as `connection` is open.

    A sign-in that is slow, a pod that is not ready for a moment must not end a paid day: it is tried until the drain.
    Raises ClusterFailed then."""
    outputs = _outputs(folder)
    drain = plan_of(record, load()).moments.drain
    while True:
        try:
            with ExitStack() as opened:
                cluster = opened.enter_context(Cluster(folder.kubeconfig))
                base_url = opened.enter_context(connect(folder.kubeconfig, outputs.namespace, outputs.service))
                key = api_key(folder, cluster, outputs.namespace)
                connection.enter_context(opened.pop_all())
        except ClusterFailed as error:
            now = target.clock.now()
            if now >= drain:
                raise
            show.say(now, f"The endpoint could not be reached, and is tried again: {error.happened}")
            target.clock.wait(min(now + _CONNECT_PAUSE, drain))
        else:
            return Session(
                folder=folder, drain=drain, base_url=base_url, api_key=key, served_model=outputs.served_model
            )


def _outputs(folder: SessionFolder) -> Outputs:
    outputs = read_outputs(folder)
    if outputs is None:
        raise UnknownSession(happened=f"{folder.session} has no stack yet.", remedy="Wait until it serves.")
    return outputs


def _require_empty(record: Record) -> None:
    if record.residual:
        names = "; ".join(left.told for left in record.residual)
        per_day = sum(left.usd_per_day for left in record.residual)
        raise LeftBehind(
            happened=f"Session {record.session} has left something behind: {names}.",
            cost=f"US${per_day} a day until it is gone.",
            remedy=f"Delete it, then look again with `rentblock down --session {record.session}`.",
        )
