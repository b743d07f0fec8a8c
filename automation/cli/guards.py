"""What a command line must not leave open: which session is meant, and what of it."""

from pathlib import Path

import typer

from automation.errors import InvalidRequest


def goes_on_as_it_was(context: typer.Context) -> None:
    """Raise InvalidRequest when a session is named and another one is asked for as well."""
    sources = {each.opts[0]: context.get_parameter_source(str(each.name)) for each in context.command.params}
    given = [flag for flag, source in sources.items() if source and source.name == "COMMANDLINE"]
    given.remove("--session")
    if given:
        raise InvalidRequest(
            happened=f"--session goes on with a session as it was asked for; {', '.join(given)} would ask for another.",
            remedy="Leave out the one or the other.",
        )


def only_one_is_open(home: Path) -> None:
    """Raise InvalidRequest when "the latest" might end a session that nobody meant, and nobody is asked."""
    from automation.session.status import open_sessions

    names = open_sessions(home)
    if len(names) > 1:
        raise InvalidRequest(
            happened=f"{len(names)} sessions are open: {', '.join(names)}.",
            remedy="Say which one ends with --session.",
        )
