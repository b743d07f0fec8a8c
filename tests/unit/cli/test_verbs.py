"""The verbs ask before they cannot go back, say one clear thing when they fail, and end with a documented code."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from automation.cli import app as module
from automation.cli import confirm, doctor
from automation.cli.display import Lines, display_on, panel
from automation.cli.doctor import Finding
from automation.cli.failures import told
from automation.errors import (
    MEANINGS,
    AwsUnreachable,
    CredentialsMissing,
    ExitCode,
    RentblockError,
)
from automation.ledger.entries import BlockKnown, Closed, EndAsked, FaultSeen, Opened, Swept
from automation.ledger.folder import SessionFolder, session_folder
from automation.ledger.journal import Journal, alone
from automation.ledger.record import Record, Residual
from automation.ledger.request import RentRequest
from automation.session.display import Progress
from automation.target import Target
from planning.block import Block
from planning.ranking import Offer, RankedOffer

START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
SESSION = "rtb-20261201-a1b2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RENTBLOCK_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def target(home: Path) -> Target:
    return Target(
        mode="rehearsal",
        account_id="123456789012",
        region="us-west-2",
        boto_session=None,  # type: ignore[arg-type]
        endpoint_url="http://127.0.0.1:1",
        clock=SimpleNamespace(now=lambda: START),  # type: ignore[arg-type]
        home=home,
        engine_environment={},
    )


@pytest.fixture
def rentblock(target: Target) -> Callable[..., Any]:
    app = module.build_app(lambda: target)
    return lambda *arguments: CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


@pytest.fixture
def offer() -> Offer:
    return Offer(
        offering_id="cb-1",
        instance_type="p6-b300.48xlarge",
        instance_count=1,
        region="us-west-2",
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=START,
        end=START + timedelta(hours=24),
        fee_usd=Decimal("3100.03"),
        currency="USD",
    )


@pytest.fixture
def folder(home: Path, offer: Offer) -> SessionFolder:
    """A session that has bought its block."""
    folder = session_folder(home, SESSION)
    folder.create()
    journal = Journal(folder.journal)
    request = RentRequest.model_validate({"endpoint_cidrs": ["192.0.2.1/32"]})
    journal.write(Opened(at=START, session=SESSION, mode="rehearsal", account_id="123456789012", request=request))
    block = Block(
        reservation_id="cr-0123456789abcdef0",
        offering_id="cb-1",
        instance_type=offer.instance_type,
        instance_count=1,
        region=offer.region,
        availability_zone=offer.availability_zone,
        availability_zone_id=offer.availability_zone_id,
        start=offer.start,
        end=offer.end,
        fee_usd=offer.fee_usd,
    )
    journal.write(BlockKnown(at=START, block=block))
    return folder


@pytest.mark.parametrize("verb", ["offers", "rent", "status", "down", "report", "doctor"])
def test_every_verb_explains_itself_with_examples(rentblock: Callable[..., Any], verb: str) -> None:
    result = rentblock(verb, "--help")
    assert result.exit_code == 0
    assert f"rentblock {verb}" in result.output


def test_help_documents_every_exit_code(rentblock: Callable[..., Any]) -> None:
    words = " ".join(rentblock("--help").output.split())
    for code, meaning in MEANINGS.items():
        assert f"{code.value} {meaning}" in words


@pytest.mark.parametrize("kind", [CredentialsMissing, AwsUnreachable])
def test_an_account_out_of_reach_is_one_clear_message_and_a_code(home: Path, kind: type[RentblockError]) -> None:
    def make() -> Target:
        raise kind(happened="It happened.", cost="It costs.", remedy="Do this.")

    app = module.build_app(make)
    result = CliRunner().invoke(app, ["offers"])
    assert result.exit_code == kind.exit_code
    assert "Traceback" not in result.output
    assert result.output.splitlines() == ["It happened.", "It costs.", "Do this."]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), ExitCode.MACHINE, "Free some space"),
        (OSError(errno.EADDRINUSE, "Address already in use"), ExitCode.MACHINE, "what listens there"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "run the same verb again"),
    ],
)
def test_the_machine_in_the_way_is_one_clear_message_and_a_code(
    error: BaseException, code: ExitCode, words: str
) -> None:
    printed = StringIO()
    with pytest.raises(typer.Exit) as caught, told(Console(file=printed, width=200)):
        raise error
    assert caught.value.exit_code == code
    assert words in printed.getvalue()


def test_offers_are_listed_for_people_and_for_programs(
    rentblock: Callable[..., Any], offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = RankedOffer(
        offer=offer, useful_hours=Decimal("23.1"), usd_per_useful_gpu_hour=Decimal("16.775"), refused="too dear"
    )
    monkeypatch.setattr("automation.session.shortlist.search", lambda request, target: (ranked,))
    table = rentblock("offers").output
    assert "cb-1" in table
    assert "can never be cancelled" in table
    [listed] = json.loads(rentblock("offers", "--json").stdout)
    assert (listed["fee_usd"], listed["refused"], listed["start"]) == ("3100.03", "too dear", START.isoformat())


def test_a_wrong_request_names_everything_at_once(rentblock: Callable[..., Any]) -> None:
    result = rentblock("rent", "--count", "99", "--weights", "https://x", "--cidr", "0.0.0.0/0")
    assert result.exit_code == ExitCode.USAGE
    for flag in ("--count", "--weights", "--cidr"):
        assert f"{flag}: " in result.output


def test_an_amount_that_is_none_is_a_wrong_usage(rentblock: Callable[..., Any]) -> None:
    assert rentblock("rent", "--yes-pay", "everything").exit_code == ExitCode.USAGE


def console(answer: str | None) -> Console:
    """A terminal at which somebody types `answer`; None: nobody is there."""
    made = Console(file=StringIO(), force_interactive=answer is not None, width=200)
    made.input = lambda *_, **__: answer or ""  # type: ignore[method-assign]
    return made


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is somebody's keyboard."""
    monkeypatch.setattr(confirm, "somebody_types", lambda: True)


REQUEST = RentRequest.model_validate({"endpoint_cidrs": ["192.0.2.1/32"]})


@pytest.mark.parametrize(
    ("typed", "agreed"), [("3100.03", True), ("yes", False), ("y", False), ("", False), ("3100", False)]
)
def test_only_the_typed_fee_is_a_yes(keyboard: None, offer: Offer, typed: str, agreed: bool) -> None:
    approval = confirm.ask_for_the_fee(console(typed), REQUEST)(offer)
    assert (approval is not None) is agreed


def test_the_question_states_the_fee_and_that_nothing_can_be_cancelled(offer: Offer) -> None:
    asked = confirm.sentence(offer, REQUEST)
    assert "US$3,100.03" in asked
    assert "cannot be cancelled" in asked


def test_the_fee_in_a_pipe_is_no_yes(offer: Offer) -> None:
    with pytest.raises(RentblockError, match="Nobody is there to agree"):
        confirm.ask_for_the_fee(console("3100.03"), REQUEST)(offer)
    with pytest.raises(RentblockError, match="was not confirmed"):
        confirm.ask_to_end(console(SESSION), SESSION, yes=False)


def test_without_a_terminal_only_the_exact_amount_agrees(keyboard: None, offer: Offer) -> None:
    with pytest.raises(RentblockError, match=r"--yes-pay 3100\.03"):
        confirm.ask_for_the_fee(console(None), REQUEST)(offer)
    exact = REQUEST.model_copy(update={"pay_usd": Decimal("3100.03")})
    assert confirm.ask_for_the_fee(console(None), exact)(offer) is not None


def test_rent_buys_what_was_agreed_to_and_runs_it(
    rentblock: Callable[..., Any], folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RentRequest] = []
    record = Journal(folder.journal).record()
    monkeypatch.setattr("automation.session.begin.begin", lambda request, *_: seen.append(request) or folder)
    monkeypatch.setattr("automation.session.rent.resume", lambda target, session, display: _closed(record, "ok"))
    result = rentblock("rent", "--cidr", "192.0.2.1/32", "--yes-pay", "$3,100.03", "--max-fee-usd", "3500")
    assert result.exit_code == ExitCode.OK
    assert (seen[0].pay_usd, seen[0].max_fee_usd) == (Decimal("3100.03"), Decimal(3500))
    assert f"{SESSION}: ok" in result.output


def _closed(record: Record, outcome: str, **more: Any) -> Record:
    from dataclasses import replace

    return replace(record, outcome=outcome, **more)


LEFT = Residual(kind="nat_gateway", resource_id="nat-1", region="us-west-2", detail="", usd_per_day=Decimal("1.08"))


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"outcome": "ok"}, ExitCode.OK),
        ({"outcome": "something is left", "residual": (LEFT,)}, ExitCode.LEFT_BEHIND),
        ({"outcome": "not accepted"}, ExitCode.ACCEPTANCE),
        ({"outcome": "not accepted", "end_asked": START}, ExitCode.OK),
        ({"outcome": "not accepted", "end_asked": START, "gave_up": True}, ExitCode.ACCEPTANCE),
    ],
)
def test_the_code_says_how_the_session_ended(
    rentblock: Callable[..., Any],
    folder: SessionFolder,
    monkeypatch: pytest.MonkeyPatch,
    more: dict[str, Any],
    code: ExitCode,
) -> None:
    record = _closed(Journal(folder.journal).record(), **more)
    monkeypatch.setattr("automation.session.rent.resume", lambda target, session, display: record)
    assert rentblock("rent", "--session", SESSION).exit_code == code


def test_down_asks_and_a_script_has_to_say_yes(
    rentblock: Callable[..., Any], folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    record = _closed(Journal(folder.journal).record(), "ok")
    monkeypatch.setattr("automation.session.rent.end", lambda _, folder, *__: ended.append(folder.session) or record)
    assert rentblock("down").exit_code == ExitCode.REFUSED
    assert ended == []
    assert rentblock("down", "--yes").exit_code == ExitCode.OK
    assert ended == [SESSION]


def test_a_yes_without_a_name_ends_no_session_when_several_are_open(
    rentblock: Callable[..., Any], folder: SessionFolder, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("automation.session.rent.end", lambda *_: pytest.fail("it was ended"))
    other = session_folder(home, "rtb-20261202-z9y8")
    other.create()
    other.journal.write_bytes(folder.journal.read_bytes())
    refused = rentblock("down", "--yes")
    assert refused.exit_code == ExitCode.USAGE
    assert f"2 sessions are open: {SESSION}, rtb-20261202-z9y8." in refused.output


def test_status_works_before_the_start_and_after_the_end_and_without_aws(
    rentblock: Callable[..., Any], folder: SessionFolder, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from automation.session import status

    seen: Any = SimpleNamespace(state="scheduled")
    monkeypatch.setattr(status, "by_id", lambda target, reservation_id: seen)
    monkeypatch.setattr(Target, "in_region", lambda self, region: self)
    shown = rentblock("status").output
    assert "cr-0123456789abcdef0: scheduled" in shown
    assert "2026-12-02 10:" in shown
    assert json.loads(rentblock("status", "--json").stdout)["reservation_state"] == "scheduled"
    seen = None
    journal = Journal(folder.journal)
    journal.write(EndAsked(at=START, reason="over"))
    journal.write(Swept(at=START, residual=(LEFT,)))
    journal.write(Closed(at=START, outcome="something is left"))
    shown = rentblock("status").output
    for words in ("does not show it", "something is left", "nat_gateway nat-1 in us-west-2, US$1.08 a day"):
        assert words in shown
    assert json.loads(rentblock("status", "--json").stdout)["outcome"] == "something is left"

    def unreachable() -> Target:
        raise AwsUnreachable(happened="No network.", remedy="")

    result = CliRunner().invoke(module.build_app(unreachable), ["status", "--json"])
    assert json.loads(result.stdout)["reservation_note"] == "AWS was not asked"


def test_status_says_who_runs_a_session_and_which_others_are_open(
    rentblock: Callable[..., Any], folder: SessionFolder, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("automation.session.status._reservation", lambda journal, target: "active")
    names = ("rtb-20261202-over", "rtb-20261203-open", "rtb-20261204-torn")
    for other in (session_folder(home, name) for name in names):
        other.create()
        other.journal.write_bytes(folder.journal.read_bytes())
    Journal(session_folder(home, names[0]).journal).write(Closed(at=START, outcome="ok"))
    session_folder(home, names[2]).journal.write_text("{}\n")
    shown = rentblock("status", "--session", SESSION).output
    assert "nobody on this machine, unless" in shown
    assert f"`rentblock rent --session {SESSION}` goes on with it" in " ".join(shown.split())
    assert "also open rtb-20261203-open, rtb-20261204-torn" in " ".join(shown.split())
    with alone(folder):
        assert f"process {os.getpid()} of this machine" in rentblock("status", "--session", SESSION).output
        told = json.loads(rentblock("status", "--session", SESSION, "--json").stdout)
    assert (told["attended_by"], told["others_open"]) == (os.getpid(), list(names[1:]))
    assert "nobody" not in rentblock("status", "--session", names[0]).output


def test_status_shows_the_last_faults_and_how_many_there_were(
    rentblock: Callable[..., Any], folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("automation.session.status._reservation", lambda journal, target: "active")
    for number in range(1, 6):
        Journal(folder.journal).write(FaultSeen(at=START, what=f"Fault {number}."))
    shown = rentblock("status").output
    assert "fault 3 of 5" in shown
    assert "fault 5 of 5" in shown
    assert "Fault 2." not in shown


def test_a_session_that_is_not_known_has_a_code_of_its_own(rentblock: Callable[..., Any]) -> None:
    for verb in ("status", "report"):
        assert rentblock(verb, "--session", "rtb-none").exit_code == ExitCode.UNKNOWN_SESSION


def test_report_writes_anew_and_says_where(
    rentblock: Callable[..., Any], folder: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(folder: SessionFolder, record: Record) -> None:
        (folder.root / "report.json").write_text('{"session": "x"}')

    monkeypatch.setattr("automation.session.report.write_report", write)
    assert str(folder.root / "report.html") in rentblock("report").output
    assert json.loads(rentblock("report", "--json").stdout) == {"session": "x"}


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        (
            [
                Finding(part="aws command", ok=True, detail="/bin/aws", rehearsal_needs_it=False),
                Finding(part="pin", ok=None, detail="?", rehearsal_needs_it=False),
            ],
            ExitCode.OK,
        ),
        (
            [Finding(part="aws command", ok=False, detail="not on PATH", rehearsal_needs_it=False)],
            ExitCode.LACKING,
        ),
    ],
)
def test_doctor_lists_everything_and_only_a_lack_is_a_fault(
    rentblock: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, findings: list[Finding], code: ExitCode
) -> None:
    monkeypatch.setattr("automation.cli.doctor.examine", lambda make_target, environ: iter(findings))
    result = rentblock("doctor")
    assert result.exit_code == code
    assert all(finding.part in result.output for finding in findings)
    assert ("Only real AWS needs this: aws command." in result.output) is (code == ExitCode.LACKING)


def test_doctor_never_stops_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Target:
        raise CredentialsMissing(happened="No credentials.", remedy="Sign in.")

    monkeypatch.setattr("toolchain.describe", list)
    found = {finding.part: finding for finding in doctor.examine(nobody, {"PATH": ""})}
    assert found["aws command"].ok is False
    assert found["AWS account"].ok is False
    assert found["python package boto3"].ok is True
    assert any(part.startswith("pin ") and finding.ok is None for part, finding in found.items())


PROGRESS = Progress(
    session=SESSION,
    mode="aws",
    phase="serve",
    now=START,
    waiting_for="the drain",
    until=START + timedelta(minutes=30),
    said="reservation active",
    fee_usd=Decimal("3100.03"),
    outside_usd=Decimal("1.5"),
)


def _shown(progress: Progress) -> str:
    printed = StringIO()
    Console(file=printed, width=120).print(panel(progress))
    return printed.getvalue()


def test_progress_shows_phase_time_wait_word_and_meter() -> None:
    shown = _shown(PROGRESS)
    for words in ("serve", "11:30:00 UTC", "the drain", "reservation active", "US$3,100.03 block + US$1.50 beside it"):
        assert words in shown


def test_the_panel_of_a_rehearsal_says_so() -> None:
    assert "REHEARSAL" in _shown(replace(PROGRESS, mode="rehearsal"))
    assert "REHEARSAL" not in _shown(PROGRESS)


def test_a_log_gets_one_line_for_each_change() -> None:
    printed = StringIO()
    with display_on(Console(file=printed, width=200)) as display:
        assert isinstance(display, Lines)
        for _ in range(3):
            display.show(PROGRESS)
    assert len(printed.getvalue().splitlines()) == 1


FOR_A_SESSION = {"boto3", "kr8s", "openai", "pulumi", "moto", "toolchain"}


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["--help"], FOR_A_SESSION),
        (["rent", "--help"], FOR_A_SESSION),
        (["rent", "--hours", "abc"], FOR_A_SESSION),
        (["offers"], FOR_A_SESSION - {"boto3"}),
        (["status"], {"openai", "pulumi", "moto", "toolchain"}),
        (["report"], FOR_A_SESSION - {"boto3"}),
    ],
)
def test_a_verb_loads_only_what_it_works_with(tmp_path: Path, arguments: list[str], spared: set[str]) -> None:
    code = (
        "import sys, rehearsal.command as command\ntry:\n    command.main()\nexcept SystemExit:\n"
        f"    sys.exit(', '.join({spared!r} & set(sys.modules)) or 0)"
    )
    environment = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), "RENTBLOCK_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment | {"AWS_PROFILE": "nobody", "AWS_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
