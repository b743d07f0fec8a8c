"""`python -m toolchain ensure|list [--json]`, for people and scripts: progress on stderr, the result on stdout."""

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console

from .children import Terminated
from .doctor import OFFICIAL_NOTE, describe, table
from .errors import ExitCode, ToolchainError
from .find import Part
from .obtain import obtain
from .progress import Reporter
from .surroundings import CACHE_VARIABLE, Surroundings, real_surroundings

_EPILOG = f"""\
examples:
  python -m toolchain ensure           find, download or build all programs (up to 15 minutes the first time)
  python -m toolchain ensure --json    the same, with the paths as JSON on standard output
  python -m toolchain list             what is where; fetches and builds nothing

exit codes:
  0  all programs are there
  1  a program could not be had; the message says why and what to do
  2  wrong usage
  3  list: at least one program is missing
  4  something has to be built, and Go is missing or too old
  5  the disk is full
  130, 143  interrupted (SIGINT, SIGTERM); run it again: it goes on where it stopped

Programs are kept in a per-user cache; {CACHE_VARIABLE} names another folder for it.
{OFFICIAL_NOTE}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    errors = Console(stderr=True)
    try:
        world = real_surroundings()
        ensuring = options.command == "ensure"
        parts = list(obtain(world, Reporter(errors)).values()) if ensuring else describe(world)
        _print(parts, world, as_json=options.json)
        lacking = any(part.path is None for part in parts)
        return ExitCode.LACKING if lacking else ExitCode.OK
    except ToolchainError as error:
        errors.print(f"{error.message} {error.remedy}", markup=False, highlight=False, soft_wrap=True)
        return error.exit_code
    except (KeyboardInterrupt, Terminated) as error:
        errors.print("Interrupted. What was compiled is kept: run it again and it goes on where it stopped.")
        return error.code if isinstance(error, Terminated) and isinstance(error.code, int) else ExitCode.INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m toolchain",
        description="The programs that a rehearsal runs: Pulumi's engine, its Kubernetes provider, a control plane.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="ensure|list")
    for name, help_text in (("ensure", "find, download or build what lacks"), ("list", "say what is where")):
        command = commands.add_parser(
            name, help=help_text, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.add_argument("--json", action="store_true", help="print JSON on standard output")
    return parser


def _print(parts: list[Part], world: Surroundings, *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": part.name, "version": part.version, "way": part.way, "path": str(part.path) if part.path else None}
            for part in parts
        ]
        sys.stdout.write(json.dumps({"cache": str(world.cache), "parts": rows}, indent=2) + "\n")
        return
    # In a pipe or a log a path must stay in one piece; rich would take 80 columns there.
    output = Console(width=None if sys.stdout.isatty() else 400)
    output.print(table(parts))
    output.print(f"\ncache: {world.cache}\n{OFFICIAL_NOTE}", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
