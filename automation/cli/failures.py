"""From exceptions to one clear message and an exit code: the only place where a verb ends badly."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from automation.errors import MEANINGS, ExitCode, RentblockError, machine_error

EXIT_CODES = "\n".join(("Exit codes:", *(f"{code.value:>3}  {MEANINGS[code]}" for code in ExitCode)))
"""For the end of every help text; its line breaks stay as they are."""


_AT_STAKE = "What runs in AWS goes on and is billed; run the same verb again to go on."


@contextmanager
def told(console: Console, at_stake: str = _AT_STAKE) -> Iterator[None]:
    """Print what went wrong, what it costs and what to do; end the verb with the code of the error.

    `at_stake` is what an interruption or a machine in the way means for what the verb does.
    """
    try:
        yield
    except RentblockError as error:
        _print(console, error)
        raise typer.Exit(error.exit_code) from error
    except OSError as error:
        _print(console, machine_error(error, at_stake))
        raise typer.Exit(ExitCode.MACHINE) from error
    except KeyboardInterrupt as error:
        console.print(f"Interrupted. {at_stake}")
        raise typer.Exit(ExitCode.INTERRUPTED) from error


def _print(console: Console, error: RentblockError) -> None:
    # In a log each of the three is one line; a path in them stays in one piece.
    in_one_line = not console.is_terminal
    console.print(Text(_sentence(error.happened), style="bold red"), soft_wrap=in_one_line)
    console.print(Text(_sentence(error.cost)), soft_wrap=in_one_line)
    console.print(Text(_sentence(error.remedy)), soft_wrap=in_one_line)


def _sentence(text: str) -> str:
    """With a capital and a full stop: some texts begin or end with the words of a library, of AWS or of the engine."""
    if not text:
        return text
    first = text.partition(" ")[0]
    # Only a plain word: names (kimi-k3), flags and paths are written as they are.
    begun = text[:1].upper() + text[1:] if first.isalpha() else text
    return begun if begun.endswith((".", "!", "?")) else f"{begun}."
