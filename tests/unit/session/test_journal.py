"""The journal forgets nothing that it said was written, and the record is what it tells."""

import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from automation.errors import MachineInTheWay, UnknownSession
from automation.ledger import entries as lines
from automation.ledger.entries import ENTRY
from automation.ledger.folder import find, session_folder, write_whole
from automation.ledger.journal import Journal, RunsElsewhere, alone
from automation.ledger.record import CheckResult, Residual
from automation.ledger.request import RentRequest
from planning.block import Block
from planning.costs import Usage
from planning.ranking import Offer

NOW = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
LATER = NOW + timedelta(minutes=10)


@pytest.fixture
def journal(tmp_path: Path, rent_request: RentRequest) -> Journal:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(lines.Opened(at=NOW, session="s", mode="rehearsal", account_id="1", request=rent_request))
    return journal


def test_a_torn_journal_line_loses_only_itself(journal: Journal, tmp_path: Path) -> None:
    journal.write(lines.FaultSeen(at=NOW, what="before"))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind": "fault-seen", "at": "2026-12-01T1')
    assert [fault.what for fault in journal.record().faults] == ["before"]
    journal.write(lines.FaultSeen(at=NOW, what="after"))
    assert [fault.what for fault in journal.record().faults] == ["before", "after"]


def test_every_line_is_on_disk_before_the_next_thing_is_done(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor))
    journal.write(lines.FaultSeen(at=NOW, what="x"))
    assert len(synced) == 1


def test_a_full_disk_is_told_and_costs_no_other_line(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:10]))
    with pytest.raises(MachineInTheWay, match="No space left"):
        journal.write(lines.FaultSeen(at=NOW, what="lost"))
    monkeypatch.setattr(os, "write", write)
    journal.write(lines.FaultSeen(at=NOW, what="kept"))
    assert [fault.what for fault in journal.record().faults] == ["kept"]


def test_what_a_newer_version_wrote_is_passed_over(journal: Journal, tmp_path: Path) -> None:
    newer = [
        {"kind": "something-new", "at": "2026-12-01T11:30:00Z"},
        {"kind": "fault-seen", "at": "2026-12-01T11:30:00Z", "what": "known", "more": 1},
    ]
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in newer)
    assert [fault.what for fault in journal.record().faults] == ["known"]


def test_a_line_about_money_that_cannot_be_read_is_never_passed_over(journal: Journal, tmp_path: Path) -> None:
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"kind": "purchase-confirmed", "at": "2026-12-01T11:30:00Z", "fee_usd": "much"}\n')
    with pytest.raises(MachineInTheWay, match="Line 2"):
        journal.record()


def test_a_journal_without_its_opening_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("")
    with pytest.raises(MachineInTheWay, match="no beginning"):
        Journal(tmp_path / "journal.jsonl").record()


def test_what_is_written_is_what_is_read(journal: Journal, block: Block) -> None:
    offer = Offer(
        offering_id="cb-1",
        instance_type=block.instance_type,
        instance_count=1,
        region=block.region,
        availability_zone=block.availability_zone,
        availability_zone_id=block.availability_zone_id,
        start=block.start,
        end=block.end,
        fee_usd=Decimal("3100.03"),
        currency="USD",
    )
    usage = Usage(kind="nat_gateway", resource_id="nat-1", detail="vpc", quantity=Decimal(1), started=NOW, ended=None)
    left = Residual(kind="eip", resource_id="e-1", region="us-west-2", detail="", usd_per_day=Decimal("0.12"))
    for entry in (
        lines.PurchaseIntended(at=NOW, offer=offer),
        lines.PurchaseConfirmed(at=NOW, offering_id="cb-1", reservation_id="cr-1", fee_usd=offer.fee_usd),
        lines.BlockKnown(at=NOW, block=block),
        lines.UsageStarted(at=NOW, usage=usage),
        lines.UsageEnded(at=LATER, usage_kind="nat_gateway", resource_id="nat-1", ended=LATER),
        lines.Accepted(at=NOW, checks=(CheckResult(check="chat", ok=False, detail="empty"),)),
        lines.Swept(at=NOW, residual=(left,)),
    ):
        assert ENTRY.validate_json(ENTRY.dump_json(entry)) == entry
        journal.write(entry)
    record = journal.record()
    assert record.block == block
    assert record.intent is None
    assert [purchase.fee_usd for purchase in record.purchases] == [Decimal("3100.03")]
    assert [usage.ended for usage in record.usage] == [LATER]
    assert (record.acceptance_failures, record.sweeps, record.residual) == (1, 1, (left,))


def test_what_is_left_is_left_since_a_sweep_found_other_things(journal: Journal) -> None:
    def left(name: str, detail: str = "") -> Residual:
        return Residual(kind="vpc", resource_id=name, region="us-west-2", detail=detail, usd_per_day=Decimal(0))

    found = [(left("a"), left("b")), (left("b"), left("a", "deleting")), (left("b"),), (left("b"),), (left("c"),)]
    minutes = [NOW + timedelta(minutes=number) for number in range(len(found))]
    since = []
    for minute, residual in zip(minutes, found, strict=True):
        journal.write(lines.Swept(at=minute, residual=residual))
        since.append(journal.record().residual_since)
    assert since == [minutes[0], minutes[0], minutes[2], minutes[2], minutes[4]]
    assert journal.record().sweeps == len(found)
    journal.write(lines.Reopened(at=LATER))
    assert journal.record().residual_since is None


def test_a_phase_ends_when_the_next_begins_and_the_last_with_the_session(journal: Journal) -> None:
    journal.write(lines.PhaseBegan(at=NOW, phase="buy"))
    journal.write(lines.PhaseBegan(at=LATER, phase="prepare"))
    assert journal.record().phase == "prepare"
    journal.write(lines.Closed(at=LATER, outcome="ok"))
    record = journal.record()
    assert [(span.name, span.started, span.ended) for span in record.phases] == [
        ("buy", NOW, LATER),
        ("prepare", LATER, LATER),
    ]
    assert record.phase is None


def test_operations_are_folded_by_number(journal: Journal) -> None:
    for number, name in ((1, "up"), (2, "destroy")):
        journal.write(
            lines.OperationStarted(at=NOW, number=number, name=name, pid=number, process_started=1.0)  # type: ignore[arg-type]
        )
    journal.write(lines.OperationInterrupted(at=NOW, number=1))
    journal.write(lines.OperationEnded(at=LATER, number=1, exit_code=None))
    assert not journal.record().prepared
    journal.write(lines.OperationEnded(at=LATER, number=2, exit_code=0))
    first, second = journal.record().operations
    assert (first.interrupted, first.exit_code, second.exit_code) == (NOW, None, 0)
    assert journal.record().destroyed


def test_the_first_reason_to_end_stands_and_a_session_can_be_taken_up_again(journal: Journal) -> None:
    journal.write(lines.EndAsked(at=NOW, reason="first", gave_up=True))
    journal.write(lines.EndAsked(at=LATER, reason="second"))
    journal.write(lines.Swept(at=LATER, residual=()))
    journal.write(lines.Closed(at=LATER, outcome="something is left"))
    journal.write(lines.Reopened(at=LATER))
    record = journal.record()
    assert (record.end_reason, record.gave_up, record.end_asked) == ("first", True, NOW)
    assert (record.outcome, record.sweeps, record.reopened) == (None, 0, LATER)


def test_everything_of_a_session_is_its_owners_only(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "rtb-20261201-a1b2")
    folder.create()
    write_whole(folder.api_key, "secret")
    journal = Journal(folder.journal)
    journal.write(lines.FaultSeen(at=NOW, what="x"))
    for path in (folder.root, folder.work, folder.state):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (folder.passphrase, folder.api_key, folder.journal):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = folder.passphrase.read_text()
    folder.create()
    assert folder.passphrase.read_text() == first


def test_a_session_that_is_not_known_is_named_with_those_that_are(tmp_path: Path, rent_request: RentRequest) -> None:
    with pytest.raises(UnknownSession, match="no session yet"):
        find(tmp_path, None)
    folder = session_folder(tmp_path, "rtb-20261201-a1b2")
    folder.create()
    opened = lines.Opened(at=NOW, session="s", mode="aws", account_id="1", request=rent_request)
    Journal(folder.journal).write(opened)
    assert find(tmp_path, None) == find(tmp_path, "rtb-20261201-a1b2") == folder
    with pytest.raises(UnknownSession, match="rtb-20261201-a1b2"):
        find(tmp_path, "rtb-another")


def test_one_process_runs_a_session_and_its_death_lets_go(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "s")
    folder.create()
    code = (
        "import sys; from pathlib import Path; from automation.ledger.folder import session_folder\n"
        "from automation.ledger.journal import alone\n"
        "with alone(session_folder(Path(sys.argv[1]), 's')): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunsElsewhere) as caught, alone(folder):
            pass
        assert caught.value.pid == holder.pid
    finally:
        holder.kill()
        holder.communicate(timeout=30)
    with alone(folder):
        pass
