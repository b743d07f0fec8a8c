"""What is already on the machine is used, if it is what was pinned."""

import pytest

from toolchain.doctor import describe
from toolchain.errors import ExitCode, ToolchainError
from toolchain.find import Part, toolchain_of
from toolchain.pins import load_pins


def test_a_program_on_path_in_the_right_version_is_used(world) -> None:
    world.says(world.bin / "beta", "beta Version: 4.5.9")
    beta = world.obtain()["beta"]
    assert beta == Part(name="beta", version="4.5.9", way="path", path=world.bin / "beta")
    assert world.builds() == ["example.com/alpha/cmd/one", "example.com/alpha/cmd/two"]


@pytest.mark.parametrize("says", ["beta Version: 4.6.0", "no version here", ""])
def test_a_program_on_path_in_another_version_is_not_used(world, says: str) -> None:
    world.says(world.bin / "beta", says)
    assert world.obtain()["beta"].way == "built"


def test_a_broken_program_on_path_is_not_used(world) -> None:
    world.program(world.bin / "beta", "#!/nonexistent/interpreter\n")
    assert world.obtain()["beta"].way == "built"


def test_looking_leaves_no_trace_in_the_users_pulumi_home(world, monkeypatch: pytest.MonkeyPatch) -> None:
    home = world.folder / "pulumi-home"
    home.mkdir()
    monkeypatch.setenv("PULUMI_HOME", str(home))
    world.program(world.bin / "beta", "#!/bin/sh\necho log > \"$PULUMI_HOME/log\"\necho 'beta Version: 4.5.6'\n")
    assert world.obtain()["beta"].way == "path"
    assert list(home.iterdir()) == []


def test_programs_of_one_release_are_never_mixed(world) -> None:
    world.says(world.bin / "alpha-one", "alpha v1.2.3")
    parts = world.obtain()
    assert [parts[name].way for name in ("alpha-one", "alpha-two")] == ["built", "built"]


def test_looking_builds_nothing_and_tells_what_is_missing(world) -> None:
    world.says(world.bin / "beta", "beta Version: 4.5.6")
    assert [(part.name, part.way) for part in describe(world.surroundings())] == [
        ("alpha-one", "missing"),
        ("alpha-two", "missing"),
        ("beta", "path"),
    ]
    assert world.builds() == []
    assert not world.cache.exists()


def test_a_missing_program_is_named_with_the_remedy() -> None:
    names = [program.name for pin in load_pins().pins for program in pin.programs]
    parts = {name: Part(name=name, version="1.0.0", way="path", path=None) for name in names}
    with pytest.raises(ToolchainError, match=r"kube-scheduler.*python -m toolchain ensure") as caught:
        toolchain_of(parts)
    assert caught.value.exit_code == ExitCode.LACKING
