"""What `rentblock rehearse` does: a world, a command or whole session in it, and the proof of what a session says."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

from rich.console import Console
from rich.text import Text

from automation.accounts.schema import Report
from automation.accounts.summary import print_summary
from automation.errors import ExitCode, InvalidRequest, MachineInTheWay
from rehearsal.delays import UnknownScenario, load_constants, load_scenario
from rehearsal.proof import disagreements
from rehearsal.straight_way import request_of
from rehearsal.supervisor import RunningWorld, running_world
from toolchain import Toolchain, ToolchainError, ensure

_CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How a rehearsal is asked for. `seed` draws each delay of the scenario within its range; `provider` is the AWS
    provider: the build, whose waits are scaled, or the vendor's plugin."""

    scenario: str
    seed: int
    keep: bool
    parallel: int
    provider: Literal["built", "official"] = "built"


def run_command(wish: Wish, command: list[str], console: Console) -> int:
    """Run `command` inside a world and give its exit code.

    Raises:
        InvalidRequest: there is no such scenario or no such command.
    """
    _check_command(command[0])
    with _world(wish, console) as running:
        code = running.run(command, running.checkout(Path.cwd()))
        _keep(wish, running, console)
        return code


def run_session(wish: Wish, out: Path, console: Console) -> int:
    """Run a whole session inside a world, write its report to `out`, and compare it with what the cloud counted.

    Gives 0 only when the session's outcome is ok and the cloud bears the report out.

    Raises:
        InvalidRequest: there is no such scenario.
        OSError: `out` can't be written to.
    """
    # Asked before a minute of work, not after it.
    out.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=out).close()
    with _world(wish, console) as running:
        request = request_of(load_scenario(wish.scenario), parallel=wish.parallel)
        code = running.run(
            [sys.executable, "-m", "rehearsal.straight_way", request.model_dump_json(exclude_none=True)], _CHECKOUT
        )
        proved = code == ExitCode.OK and _prove(running, out, console)
        _keep(wish, running, console)
        return code or (ExitCode.OK if proved else ExitCode.FAILED)


def _prove(running: RunningWorld, out: Path, console: Console) -> bool:
    [session] = (running.folder.rentblock_home / "sessions").iterdir()
    for name in ("report.json", "report.html"):
        shutil.copy(session / name, out / name)
    report = Report.model_validate_json((out / "report.json").read_text(encoding="utf-8"))
    print_summary(report, console)
    (out / "calls.json").write_text(running.aws.call_record(), encoding="utf-8")
    bill, left = running.aws.meter.bill(), running.aws.inventory()
    found = disagreements(report, bill, left)
    for sentence in found:
        console.print(Text(sentence, style="bold red"))
    if not found:
        console.print(
            f"The simulated cloud's own meter agrees: {bill.purchases} purchase, US${bill.block_usd:,} for the block, "
            f"US${bill.outside_usd:,} beside it; asked directly, it is empty."
        )
    console.print(f"Report: {out / 'report.html'} and {out / 'report.json'}", highlight=False)
    return report.outcome == "ok" and not found


@contextmanager
def _world(wish: Wish, console: Console) -> Iterator[RunningWorld]:
    try:
        scenario = load_scenario(wish.scenario)
    except UnknownScenario as error:
        raise InvalidRequest(happened=f"{error}.", remedy="Choose one of these.") from error
    toolchain = _programs(console, official_aws=wish.provider == "official")
    # The world is taken down on the way out, so a signal has to become an exception.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    with ExitStack() as ending:
        with console.status("Starting a simulated world: Kubernetes, AWS, Pulumi providers"):
            running = ending.enter_context(
                running_world(toolchain, scenario, constants=load_constants(), seed=wish.seed)
            )
        yield running


def _programs(console: Console, *, official_aws: bool) -> Toolchain:
    try:
        return ensure(console, official_aws=official_aws)
    except ToolchainError as error:
        raise MachineInTheWay(happened=error.message, remedy=error.remedy) from error


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _check_command(name: str) -> None:
    """Look where a world's child would: the world brings `pulumi`, the rest is this interpreter's or the user's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    if name != "pulumi" and shutil.which(name, path=path) is None:
        raise InvalidRequest(
            happened=f"There is no command {name!r}.", remedy="Check its name, or install it and try again."
        )


def _keep(wish: Wish, running: RunningWorld, console: Console) -> None:
    if not wish.keep:
        return
    console.print(f"The world stays up until Ctrl-C. To enter it elsewhere: source {running.folder.enter_script}")
    try:
        signal.pause()
    except KeyboardInterrupt:
        console.print("Ending the world.")
