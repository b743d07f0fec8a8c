"""The entry point of `rentblock`: the verbs of a session, and `rehearse`. The only place that knows both worlds.

Both worlds are imported where a verb works in one of them: they bring boto3 along, and the help has no use for it.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from automation.cli.app import build_app
from automation.cli.failures import EXIT_CODES, told
from automation.errors import ExitCode, InvalidRequest
from rehearsal.environment import shed_aws_settings

if TYPE_CHECKING:
    from automation.target import Target

Provider = Literal["built", "official"]

_GONE = "The simulated world is gone, and nothing was billed."


def target() -> "Target":
    """Where a verb works: the world that this process was started in, else the user's AWS account."""
    from automation.target import aws_target
    from rehearsal.target import inside_a_world, world_target

    if inside_a_world():
        return world_target()
    return aws_target()


def refuse_stand_ins_here() -> None:
    """Raise Refused when a real session would meet a stand-in; AWS is not asked before, since one need not answer."""
    from automation.refusals import refuse_stand_ins
    from automation.target import unasked_aws_target
    from rehearsal.target import inside_a_world

    if not inside_a_world():
        refuse_stand_ins(unasked_aws_target(), os.environ)


def main() -> None:
    """`rentblock`."""
    app = build_app(target, refuse_stand_ins_here)
    settings = {"allow_extra_args": True, "ignore_unknown_options": False}
    app.command(epilog=EXIT_CODES, context_settings=settings)(rehearse)
    app()


def rehearse(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- CMD ...]", help="Run this inside the world instead of a whole session."),
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="default, cold-cache, engine-crash, failed-addon, or leftover-interface.")
    ] = "default",
    seed: Annotated[int, typer.Option(help="Draws each delay within its range; the same seed, the same story.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the world up until Ctrl-C.")] = False,
    out: Annotated[Path, typer.Option(help="Where report.json and report.html go.")] = Path("out"),
    parallel: Annotated[int, typer.Option(help="How many things the engine makes at once.", min=1, max=256)] = 16,
    provider: Annotated[
        Provider,
        typer.Option(
            help="AWS provider: built from source (seconds), or the vendor's official plugin (as slow as AWS)."
        ),
    ] = "built",
) -> None:
    """Rehearse a session, free and without an AWS account: real engine and Kubernetes, simulated AWS and time.

    Examples:
    $ rentblock rehearse
    $ rentblock rehearse --scenario cold-cache --seed 7
    $ rentblock rehearse --provider official
    $ rentblock rehearse -- pulumi up --yes --stack dev
    $ rentblock rehearse --keep -- rentblock offers
    """
    from rehearsal.target import inside_a_world

    console = Console(stderr=True)
    with told(console, _GONE):
        if inside_a_world():
            raise InvalidRequest(happened="This is a rehearsal already.", remedy="Leave it first.")
        console.print("A rehearsal: AWS, its prices and its time are simulated. Nothing is bought, nothing is billed.")
        shed_aws_settings(os.environ)
        # Loading a simulated AWS takes seconds; the verbs of a real session do not need it.
        from rehearsal.rehearse import Wish, run_command, run_session

        wish = Wish(scenario=scenario, seed=seed, keep=keep, parallel=parallel, provider=provider)
        code = run_command(wish, command, console) if command else run_session(wish, out, console)
    if code == ExitCode.INTERRUPTED:
        console.print(f"Interrupted. {_GONE}")
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
