"""`python -m toolchain` for people and scripts."""

import json

import pytest

from toolchain import __main__ as command


@pytest.fixture
def at_home(world, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, "real_surroundings", world.surroundings)
    return world


def test_list_says_what_is_missing_and_exits_with_3(at_home, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list", "--json"]) == 3
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert parts[0] == {"name": "alpha-one", "version": "1.2.3", "way": "missing", "path": None}


def test_ensure_prints_paths_on_stdout_and_progress_on_stderr(at_home, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["ensure", "--json"]) == 0
    printed = capsys.readouterr()
    assert [part["way"] for part in json.loads(printed.out)["parts"]] == ["built"] * 3
    assert "built alpha 1.2.3 in" in printed.err


def test_list_for_people_says_how_each_program_was_had(at_home, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["ensure"])
    assert command.main(["list"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"alpha-two 1.2.3 built {at_home.cache}/" in printed
    assert "tested only against a loopback server" in printed


@pytest.mark.parametrize(
    ("version", "during", "code"),
    [("go1.20", "", 4), ("go1.26.8", "echo 'no space left on device' >&2; exit 1", 5), ("go1.26.8", "exit 1", 1)],
)
def test_each_kind_of_failure_has_its_exit_code_and_no_traceback(
    at_home, capsys: pytest.CaptureFixture[str], version: str, during: str, code: int
) -> None:
    at_home.go(version=version, during=during)
    assert command.main(["ensure"]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err


@pytest.mark.parametrize("arguments", [["--help"], ["ensure", "--help"], ["list", "--help"]])
def test_help_shows_examples_and_exit_codes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert "python -m toolchain ensure --json" in printed
    assert "exit codes:" in printed


@pytest.mark.parametrize("arguments", [[], ["install"], ["list", "--xml"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2
    capsys.readouterr()
