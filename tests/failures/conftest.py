"""The real command as a process of its own, in which nothing of this machine's user is left, and no network."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from automation.ledger.entries import BlockKnown, Opened
from automation.ledger.folder import SessionFolder, session_folder
from automation.ledger.journal import Journal
from automation.ledger.request import RentRequest
from planning.block import Block

PROJECT = Path(__file__).resolve().parents[2]
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
COLUMNS = 80
# A verb that has not answered by then hangs.
HANGS_S = 120


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a verb said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What it said on stderr, as if the terminal were endlessly wide."""
        return re.sub(r"\s+", " ", self.err).strip()

    def is_one_clear_block(self, *, after_lines: int = 0) -> bool:
        """What happened, what it costs, what to do: a line of sentences each, on stderr alone. No traceback."""
        lines = self.err.splitlines()[after_lines:]
        return not self.out and len(lines) == 3 and all(re.match(r"\S.*[.`]$", line) for line in lines)


@dataclass(frozen=True, kw_only=True)
class Shell:
    """A clean shell: `environment` is all that a verb sees."""

    environment: dict[str, str]
    home: Path

    def __call__(
        self,
        *arguments: str,
        before: Sequence[str] = (),
        program: Sequence[str] = ("-m", "rehearsal.command"),
        without: Sequence[str] = (),
        **more: str,
    ) -> Answer:
        """Run `rentblock` with these arguments and `more` variables, `before` in front as in `nice rentblock`."""
        ended = subprocess.run(
            [*before, sys.executable, *program, *arguments],
            cwd=PROJECT,
            env={name: value for name, value in (self.environment | more).items() if name not in without},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
        )
        return Answer(code=ended.returncode, out=ended.stdout, err=ended.stderr)

    @property
    def written(self) -> list[str]:
        """Every file below the home."""
        return sorted(str(file.relative_to(self.home)) for file in self.home.rglob("*") if file.is_file())


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of loopback that refuses connections, and that nobody else can get meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def rentblock(tmp_path: Path, closed_port: int) -> Shell:
    """Credentials that are no one's, and a proxy that does not answer between the command and the real AWS."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        "HOME": str(home),
        "RENTBLOCK_HOME": str(home / "rentblock"),
        "PATH": "/usr/bin:/bin",
        "COLUMNS": str(COLUMNS),
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nobody",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HTTPS_PROXY": f"http://127.0.0.1:{closed_port}",
    }
    return Shell(environment=environment, home=home)


@pytest.fixture
def session(rentblock: Shell) -> SessionFolder:
    """A session of a real account whose block is bought and whose stack is not made yet."""
    folder = session_folder(Path(rentblock.environment["RENTBLOCK_HOME"]), "rtb-20261201-a1b2")
    folder.create()
    request = RentRequest.model_validate({"endpoint_cidrs": ["192.0.2.1/32"]})
    block = Block(
        reservation_id="cr-0123456789abcdef0",
        offering_id=None,
        instance_type=request.instance_type,
        instance_count=1,
        region="us-west-2",
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=START,
        end=START + timedelta(hours=24),
        fee_usd=Decimal("3100.03"),
    )
    journal = Journal(folder.journal)
    opened = START - timedelta(hours=6)
    journal.write(
        Opened(at=opened, session=folder.session, mode="aws", account_id="123456789012", request=request),
    )
    journal.write(BlockKnown(at=opened, block=block))
    return folder
