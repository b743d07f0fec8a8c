"""Whole rehearsals, each of which is run once and serves all tests that ask for it, in whichever worker they run."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from automation.accounts.schema import Report
from rehearsal.aws.calls import Call
from rehearsal.aws.inventory import Existing
from rehearsal.aws.meter import Bill

ROOT = Path(__file__).parents[2]

# Well above what a rehearsal takes on a busy machine with two cores.
REHEARSAL_LIMIT_S = 900
_DEADLINE_S = 240
_AT_ONCE = 2


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A rehearsal, by a name of its own.

    `arguments` are those of `rentblock rehearse`; `delays` and `prices` of the simulator are multiplied by these
    factors; `flaws` are wrong with its model server; `environment` is what the user has besides; `loaded`: something
    else keeps a processor busy meanwhile.
    """

    name: str
    arguments: tuple[str, ...] = ()
    delays: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = ROOT
    loaded: bool = False

    @property
    def moves(self) -> str:
        return json.dumps({"delays": self.delays, "prices": self.prices, "flaws": self.flaws})


@dataclass(frozen=True, kw_only=True)
class Moment:
    """An entry of the world's story, and how many changes the cluster's audit log held then."""

    when: datetime
    kind: str
    facts: Mapping[str, str | int]
    audited: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """A line of the cluster's audit log: a request that changed something."""

    verb: str
    resource: str
    user_agent: str


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a world had seen when its command had ended. `left` is what the cloud still holds, asked directly;
    `moved_bills` are its bills beside the fee with one price each 20 % higher."""

    world_id: str
    folder: Path
    story: tuple[str, ...]
    moments: tuple[Moment, ...]
    audit: tuple[Change, ...]
    calls: tuple[Call, ...]
    bill: Bill
    moved_bills: Mapping[str, Decimal]
    left: tuple[Existing, ...]
    journals: tuple[str, ...]

    def first(self, kind: str, **facts: str | int) -> Moment:
        """The first moment of a kind with these facts."""
        return next(moment for moment in self.moments if moment.kind == kind and facts.items() <= moment.facts.items())

    def last(self, kind: str, **facts: str | int) -> Moment:
        """The last one."""
        found = [moment for moment in self.moments if moment.kind == kind and facts.items() <= moment.facts.items()]
        return found[-1]


@dataclass(frozen=True)
class Rehearsal:
    """A rehearsal that has ended: its exit code, what it said to the user (standard error), what its command printed
    (standard output), and what it left in its folder."""

    exit_code: int
    said: str
    printed: str
    folder: Path

    @cached_property
    def seen(self) -> Seen:
        return TypeAdapter(Seen).validate_json((self.folder / "seen.json").read_bytes())

    @cached_property
    def report_json(self) -> str:
        return (self.folder / "out" / "report.json").read_text(encoding="utf-8")

    @cached_property
    def report(self) -> Report:
        # As decimals: the figures have to add up exactly.
        return Report.model_validate(json.loads(self.report_json, parse_float=Decimal))

    @cached_property
    def page(self) -> str:
        return (self.folder / "out" / "report.html").read_text(encoding="utf-8")


Rehearse = Callable[..., list[Rehearsal]]


@pytest.fixture(scope="session")
def rehearse(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Rehearse:
    """Gives the rehearsals that are wished for, run by whoever wishes first and shared by all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "rehearsals"
    shared.mkdir(exist_ok=True)

    def all_of(*wishes: Wish) -> list[Rehearsal]:
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            return list(pool.map(lambda wish: _once(wish, shared / wish.name), wishes))

    return all_of


@pytest.fixture(scope="session")
def default(rehearse: Rehearse) -> Rehearsal:
    """The default scenario."""
    [rehearsal] = rehearse(Wish(name="default"))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


@pytest.fixture(scope="session")
def cold(rehearse: Rehearse) -> Rehearsal:
    """Cold kernel caches, and the delays of another seed."""
    [rehearsal] = rehearse(Wish(name="cold", arguments=("--scenario", "cold-cache", "--seed", "2")))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


@pytest.fixture(scope="session")
def crashed(rehearse: Rehearse) -> Rehearsal:
    """The engine dies once while it serves."""
    [rehearsal] = rehearse(Wish(name="crashed", arguments=("--scenario", "engine-crash")))
    assert rehearsal.exit_code == 0, rehearsal.said
    return rehearsal


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Whether something came true before a deadline."""

    def wait(condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _DEADLINE_S
        while not (true := condition()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return true

    return wait


def _once(wish: Wish, folder: Path) -> Rehearsal:
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = folder / "ended.json"
        if not ended.exists():
            ended.write_text(json.dumps(_run(wish, folder)))
    code, said, printed = json.loads(ended.read_text())
    return Rehearsal(code, said, printed, folder)


def _run(wish: Wish, folder: Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "tests.end_to_end.observed", str(folder / "seen.json"), wish.moves]
    command += ["rehearse", "--out", str(folder / "out"), *wish.arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **wish.environment}
    with _busy_processor() if wish.loaded else ExitStack():
        try:
            ran = subprocess.run(
                command, cwd=wish.cwd, env=environment, capture_output=True, text=True, timeout=REHEARSAL_LIMIT_S
            )
        except subprocess.TimeoutExpired as late:
            # An answer like any other: nobody shall wait as long for it again.
            return -1, f"It had not ended after {REHEARSAL_LIMIT_S} s: {late.stderr!r}", ""
    return ran.returncode, ran.stderr, ran.stdout


@contextmanager
def _busy_processor() -> Iterator[None]:
    # Should nobody be left to end the program, it ends by itself.
    code = f"import time\nend = time.monotonic() + {REHEARSAL_LIMIT_S}\nwhile time.monotonic() < end: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as busy:
        try:
            yield
        finally:
            busy.kill()
