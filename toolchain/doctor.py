"""What is where: the list that `python -m toolchain list` prints and that `rentblock doctor` shows."""

from rich.table import Table

from .find import Part, find, missing
from .surroundings import Surroundings, real_surroundings

OFFICIAL_NOTE = (
    "The vendors' own downloads were tested only against a loopback server. If one does not work, the program is built."
)

_WAYS = {"path": "found here", "official": "downloaded", "built": "built", "missing": "missing"}


def describe(world: Surroundings | None = None) -> list[Part]:
    """Every program in the order of pins.toml, missing ones too. Looks only; fetches and builds nothing."""
    world = world or real_surroundings()
    return [part for pin in world.pins.pins for part in find(world, pin) or missing(pin)]


def table(parts: list[Part]) -> Table:
    """The parts as a table for a terminal."""
    rows = Table(box=None, pad_edge=False)
    for heading in ("program", "version", "how", "where"):
        rows.add_column(heading, no_wrap=heading != "where", overflow="fold")
    for part in parts:
        rows.add_row(part.name, part.version, _WAYS[part.way], str(part.path or "-"))
    return rows
