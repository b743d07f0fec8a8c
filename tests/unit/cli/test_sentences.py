"""Every error is told in sentences: with a capital, or a name as it is written, in front, and a full stop behind."""

import ast
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import typer
from botocore.exceptions import ClientError, NoRegionError
from rich.console import Console

from automation.aws_errors import translated
from automation.cli.failures import told
from automation.errors import AwsUnreachable, InvalidRequest, RentblockError, machine_error
from automation.ledger.request import RentRequest
from automation.session.plan import budget_of
from planning.catalogue import load

PROJECT = Path(__file__).resolve().parents[3]
PARTS = ("happened", "cost", "remedy")
# A capital, a flag, a figure, a path, something quoted, or a name that is no plain word.
BEGINS = re.compile(r"[A-Z0-9/`-]|[a-z]+[^a-z ,.:;]")


def printed(error: BaseException) -> list[str]:
    """The lines that a verb says when it ends with this error."""
    console = Console(file=StringIO(), width=200)
    with pytest.raises(typer.Exit), told(console):
        raise error
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue().splitlines()


def reached() -> Iterator[RentblockError]:
    """Errors whose words come from elsewhere: a catalogue, AWS, botocore, the operating system, a user."""
    answer = {"Error": {"Code": "UnauthorizedOperation", "Message": "you are not authorized"}}
    yield translated(ClientError(answer, "DescribeInstances"), "looking")  # type: ignore[arg-type]
    yield translated(NoRegionError(), "looking")
    yield machine_error(OSError(28, "No space left on device", "/tmp/x"))
    yield InvalidRequest(happened="unknown model 'gpt-2'; known: kimi-k3.", remedy="choose one of those")
    yield AwsUnreachable(happened="no answer from sts.us-west-2.amazonaws.com", remedy="Check `rentblock doctor`")


@pytest.mark.parametrize("error", list(reached()), ids=lambda error: type(error).__name__)
def test_words_that_come_from_elsewhere_are_told_as_sentences(error: RentblockError) -> None:
    lines = printed(error)
    assert len(lines) == 3
    for line in lines:
        assert BEGINS.match(line), line
        assert line.endswith("."), line


def test_a_model_that_nobody_knows_is_told_in_a_sentence() -> None:
    request = RentRequest.model_validate({"endpoint_cidrs": ["192.0.2.1/32"]}).model_copy(update={"model": "x"})
    with pytest.raises(InvalidRequest) as caught:
        budget_of(request, load())
    assert printed(caught.value)[0].startswith("Unknown model 'x'; known: kimi-k3")


@pytest.mark.parametrize("word", ["kimi-k3", "--cidr", "/home/x", "cr-0123"])
def test_a_name_in_front_is_written_as_it_is(word: str) -> None:
    assert printed(InvalidRequest(happened=f"{word} is odd.", remedy="Look."))[0] == f"{word} is odd."


def texts() -> Iterator[tuple[str, str]]:
    """Where each text of an error stands in the source, and its words; what is filled in later is `{}`."""
    for package in ("automation", "rehearsal"):
        for file in sorted((PROJECT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                for value in _values(node):
                    words = _words(value)
                    if words is not None:
                        yield f"{file.relative_to(PROJECT)}:{value.lineno}", words


def _values(node: ast.AST) -> list[ast.expr]:
    """What a call gives an error to say, or what is first put into a variable of that name."""
    if isinstance(node, ast.Call) and "happened" in {keyword.arg for keyword in node.keywords}:
        return [keyword.value for keyword in node.keywords if keyword.arg in PARTS]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in PARTS:
        return [node.value]
    return []


def _words(value: ast.expr) -> str | None:
    if isinstance(value, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in value.values)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def test_every_text_of_an_error_is_written_as_a_sentence() -> None:
    found = list(texts())
    assert len(found) > 100
    wrong = [
        f"{where}: {words}"
        for where, words in found
        if not (words.startswith("{}") or BEGINS.match(words)) or not words.endswith((".", "{}"))
    ]
    assert wrong == []
