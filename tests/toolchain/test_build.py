"""Building: once for each user, resumable, one at a time, and never a traceback."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from toolchain import cache
from toolchain.errors import ExitCode, ToolchainError

ROOT = Path(__file__).parents[2]
ALPHA = ["example.com/alpha/cmd/one", "example.com/alpha/cmd/two"]
ALL = [*ALPHA, "example.com/beta"]

# The command line itself, in a process of its own, with the world of a test.
COMMAND = """
import sys
from pathlib import Path
import toolchain.__main__ as command
from toolchain.pins import load_pins
from toolchain.surroundings import Surroundings
folder = Path(sys.argv[1])
command.real_surroundings = lambda: Surroundings(
    pins=load_pins(folder / "clone" / "pins.toml"), cache=folder / "cache", search_path=str(folder / "bin"),
    home=folder / "home")
sys.exit(command.main(["ensure"]))
"""


def start(world) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(world.folder)],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_until(true, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_programs_are_built_and_run(world) -> None:
    parts = world.obtain()
    assert {name: part.way for name, part in parts.items()} == dict.fromkeys(
        ["alpha-one", "alpha-two", "beta"], "built"
    )
    answer = subprocess.run(
        [parts["alpha-two"].path, "--version"], capture_output=True, text=True, check=True, timeout=10
    )
    assert answer.stdout == "alpha v1.2.3\n"
    assert world.leftovers() == []


def test_a_second_run_builds_nothing(world) -> None:
    first = world.obtain()
    assert world.obtain() == first
    assert world.builds() == ALL


def test_a_second_clone_builds_nothing(world, second_clone: Path) -> None:
    first = world.obtain()
    assert world.obtain(clone=second_clone) == first
    assert world.builds() == ALL


def test_a_damaged_cache_is_repaired(world) -> None:
    parts = world.obtain()
    parts["alpha-one"].path.unlink()
    parts["beta"].path.write_bytes(b"")
    assert world.obtain() == parts
    assert world.builds() == ALL + ALL


def test_a_folder_without_its_receipt_is_not_taken_for_a_whole_one(world) -> None:
    [alpha, _] = world.surroundings().pins.pins
    folder = cache.folder_of(world.cache, alpha)
    for program in alpha.programs:
        world.says(folder / program.name, "half a file")
    assert world.obtain()["alpha-one"].way == "built"
    assert world.builds() == ALL


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_build_with_its_children_and_it_can_be_resumed(world, number: int, code: int) -> None:
    pids = world.folder / "pids"
    world.go(during=f'sleep 60 & echo "$$ $!" > {pids}.new; mv {pids}.new {pids}; wait')
    caller = start(world)
    wait_until(pids.exists)
    caller.send_signal(number)
    _, errors = caller.communicate(timeout=20)
    assert caller.returncode == code
    assert "Interrupted" in errors
    assert "Traceback" not in errors
    wait_until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))
    assert world.leftovers() == []
    world.go()
    assert world.obtain()["beta"].way == "built"


def test_a_killed_build_leaves_nothing_that_is_taken_for_whole(world) -> None:
    pid = world.folder / "pid"
    world.go(
        during=f'echo half > "$target"; chmod +x "$target"; echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60'
    )
    caller = start(world)
    wait_until(pid.exists)
    caller.kill()
    caller.communicate(timeout=20)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert len(world.leftovers()) == 1
    world.go()
    assert world.obtain()["alpha-one"].path.read_text() != "half\n"
    assert world.leftovers() == []


def test_parallel_callers_build_once_and_the_second_says_that_it_waits(world) -> None:
    gate = world.folder / "gate"
    world.go(during=f"while [ ! -e {gate} ]; do sleep 0.05; done")
    first = start(world)
    wait_until(lambda: world.builds() == ALPHA[:1])
    second: list[object] = []
    thread = threading.Thread(target=lambda: second.append(world.obtain()))
    thread.start()
    wait_until(lambda: f"waiting for process {first.pid}, which is getting alpha 1.2.3" in world.printed())
    gate.touch()
    thread.join(timeout=20)
    assert first.wait(timeout=20) == 0
    first.communicate(timeout=20)
    assert len(second) == 1
    assert world.builds() == ALL


def test_a_missing_go_is_one_sentence(world) -> None:
    (world.bin / "go").unlink()
    with pytest.raises(ToolchainError, match=r"no go command on PATH\. Install Go 1\.26\.6 or later") as caught:
        world.obtain()
    assert caught.value.exit_code == ExitCode.NO_GO


@pytest.mark.parametrize("version", ["go1.26.5", "go1.25.9", "go1.9"])
def test_a_go_that_is_too_old_is_one_sentence(world, version: str) -> None:
    world.go(version=version)
    with pytest.raises(ToolchainError, match=r"too old\. Install Go 1\.26\.6 or later") as caught:
        world.obtain()
    assert caught.value.exit_code == ExitCode.NO_GO
    assert world.builds() == []


@pytest.mark.parametrize("version", ["go1.26.6", "go1.27", "go1.30.1", "devel go1.27-abcdef"])
def test_a_go_that_is_new_enough_builds(world, version: str) -> None:
    world.go(version=version)
    assert world.obtain()["beta"].way == "built"


def test_no_go_is_needed_when_nothing_has_to_be_built(world) -> None:
    parts = world.obtain()
    (world.bin / "go").unlink()
    assert world.obtain() == parts


def test_a_full_disk_seen_by_go_is_one_sentence(world) -> None:
    world.go(during='echo "write /x: no space left on device" >&2; exit 1')
    with pytest.raises(ToolchainError, match=r"The disk is full while building alpha 1\.2\.3\.") as caught:
        world.obtain()
    assert caught.value.exit_code == ExitCode.DISK_FULL
    assert world.leftovers() == []


def test_a_full_disk_seen_by_us_is_one_sentence(world, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(ToolchainError, match="The disk is full") as caught:
        world.obtain()
    assert caught.value.exit_code == ExitCode.DISK_FULL


def test_a_cache_that_cannot_be_written_is_one_sentence(world) -> None:
    world.cache.write_text("a file, not a folder")
    with pytest.raises(ToolchainError, match="RENTBLOCK_TOOLCHAIN_CACHE"):
        world.obtain()


def test_a_failed_build_says_gos_last_word_and_keeps_the_log(world) -> None:
    world.go(during='echo "one.go:1: undefined: x" >&2; echo >&2; exit 1')
    with pytest.raises(ToolchainError, match=r"could not build alpha 1\.2\.3: one\.go:1: undefined: x"):
        world.obtain()
    assert "go: compiling" in (world.cache / "logs" / "alpha.log").read_text()
    world.go()
    assert world.obtain()["alpha-one"].way == "built"


def test_a_program_that_says_another_version_is_refused(world) -> None:
    world.go(alpha_says="9.9.9")
    with pytest.raises(ToolchainError, match=r"says it is version 9\.9\.9 and not 1\.2\.3"):
        world.obtain()
    assert world.leftovers() == []


def test_the_users_own_signal_handlers_stay(world) -> None:
    before = signal.getsignal(signal.SIGTERM)
    world.obtain()
    assert signal.getsignal(signal.SIGTERM) is before
