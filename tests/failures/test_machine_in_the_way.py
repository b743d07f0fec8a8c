"""A full disk, a folder that can't be made, a port in use: one sentence, its code, and nothing left behind."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from automation.errors import ExitCode
from automation.ledger.folder import SessionFolder
from rehearsal.delays import load_constants, load_scenario
from rehearsal.supervisor import running_world
from toolchain import ToolchainError, locate
from toolchain.surroundings import CACHE_VARIABLE, real_surroundings

# A file system of a few pages in a mount namespace of its own: the kernel takes it away with the command.
ON_A_SMALL_DISK = ("unshare", "--map-root-user", "--mount", "sh", "-c")
MOUNT = 'mount -t tmpfs -o size=$0 small "$1" && cp -R "$2/." "$1" && shift 2 && exec "$@"'


@pytest.fixture
def small_disk(tmp_path: Path) -> Callable[[Path, str, Path], list[str]]:
    """What to put before a command so that `place` is a disk of `size` that holds what is in `contents`."""

    def before(place: Path, size: str, contents: Path) -> list[str]:
        return [*ON_A_SMALL_DISK, MOUNT, size, str(place), str(contents)]

    place, nothing = tmp_path / "small", tmp_path / "nothing"
    place.mkdir()
    nothing.mkdir()
    tried = subprocess.run([*before(place, "16k", nothing), "true"], capture_output=True, check=False, timeout=60)
    if tried.returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk (Linux with user namespaces is needed)")
    return before


@pytest.fixture
def toolchain() -> dict[str, str]:
    """Where the programs of a rehearsal are: the clean shell's home has none."""
    try:
        locate()
    except ToolchainError as error:
        pytest.skip(str(error))
    return {CACHE_VARIABLE: str(real_surroundings().cache)}


def test_a_full_disk_is_said_so_and_leaves_the_old_report(
    rentblock: Any, session: SessionFolder, small_disk: Callable[[Path, str, Path], list[str]], tmp_path: Path
) -> None:
    home = tmp_path / "small"
    before = small_disk(home, "16k", Path(rentblock.environment["RENTBLOCK_HOME"]))
    answer = rentblock("report", before=before, RENTBLOCK_HOME=str(home))
    assert answer.code == ExitCode.MACHINE, answer
    assert answer.is_one_clear_block(), answer.err
    assert "No space left on device" in answer.words
    assert "Free some space, then run the same verb again." in answer.words


def test_a_folder_that_may_not_be_written_is_named(rentblock: Any, session: SessionFolder) -> None:
    # Also root can write no file where a folder stands.
    (session.root / "report.json").mkdir()
    answer = rentblock("report")
    assert answer.code == ExitCode.MACHINE, answer
    assert answer.is_one_clear_block(), answer.err
    assert "Is a directory" in answer.words
    assert f"{session.root}/report.json" in answer.words


@pytest.mark.engine
def test_nothing_is_bought_for_a_session_that_can_not_be_written_down(rentblock: Any, tmp_path: Path) -> None:
    try:
        programs = locate()
    except ToolchainError as error:
        pytest.skip(str(error))
    (tmp_path / "file").touch()
    with running_world(programs, load_scenario("default"), constants=load_constants(), seed=1) as running:
        inside = replace(rentblock, environment=dict(running.environment))
        best = json.loads(inside("offers", "--json").out)[0]
        pay = ["--cidr", "192.0.2.1/32", "--yes-pay", best["fee_usd"]]
        answer = inside("rent", *pay, RENTBLOCK_HOME=str(tmp_path / "file" / "rentblock"))
        calls = {call.action for call in running.aws.calls}
    assert answer.code == ExitCode.MACHINE, answer
    assert answer.is_one_clear_block(), answer.err
    assert "Not a directory" in answer.words
    assert "DescribeCapacityBlockOfferings" in calls
    assert "PurchaseCapacityBlock" not in calls


@pytest.mark.engine
def test_a_rehearsal_on_a_full_disk_says_so(
    rentblock: Any, small_disk: Callable[[Path, str, Path], list[str]], tmp_path: Path, toolchain: dict[str, str]
) -> None:
    place = tmp_path / "small"
    before = small_disk(place, "256k", tmp_path / "nothing")
    answer = rentblock("rehearse", "--", "true", before=before, TMPDIR=str(place), **toolchain)
    assert answer.code == ExitCode.MACHINE, answer
    assert answer.is_one_clear_block(after_lines=2), answer.err
    assert re.search(r"The disk that holds \S+ is full|No space left on device", answer.words)
    assert "Free some space" in answer.words


@pytest.mark.engine
def test_a_rehearsal_whose_port_is_in_use_says_so(rentblock: Any, closed_port: int, toolchain: dict[str, str]) -> None:
    # A world takes free ports; another program that is quicker is all that can go wrong.
    quicker = (
        "from rehearsal import command, kubernetes\n"
        "free = kubernetes._free_ports\n"
        f"kubernetes._free_ports = lambda count: [{closed_port}, *free(count - 1)]\n"
        "command.main()"
    )
    answer = rentblock("rehearse", "--", "true", program=["-c", quicker], **toolchain)
    assert answer.code == ExitCode.MACHINE, answer
    assert answer.is_one_clear_block(after_lines=2), answer.err
    assert "A port that kube-apiserver wanted on 127.0.0.1 is in use. It costs nothing. Try again." in answer.words
