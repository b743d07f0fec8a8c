"""The waterfall of the block's minutes, as figures to draw: a day beside a start of minutes needs two scales."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from .schema import MinutesLost, Report

NAMES = {
    "launch": "EC2 launch",
    "join": "Node joins",
    "device_plugin": "GPUs allocatable",
    "image": "Image pull",
    "weights": "Weights",
    "engine": "Engine start",
    "acceptance": "Acceptance",
    "restart": "Restarts",
    "tail": "Tail: drain to end",
}
_PER_MILLE = Decimal("0.1")


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A piece of the whole block, in per mille of its width. `kind`: start, served, restart or tail."""

    kind: str
    name: str
    minutes: Decimal
    x: Decimal
    width: Decimal


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cause: its bar begins where the cause before it ended, in per mille of all lost minutes."""

    kind: str
    name: str
    minutes: Decimal
    usd: Decimal | None
    x: Decimal
    width: Decimal


def bars(report: Report) -> tuple[Bar, ...]:
    """The whole block in four pieces, in their order in time."""
    lost = report.minutes_lost
    start = sum((minutes for cause, minutes in _causes(lost) if cause not in ("restart", "tail")), Decimal(0))
    pieces = {"start": start, "served": report.served_minutes, "restart": lost.restart, "tail": lost.tail}
    names = {"start": "Start-up", "served": "Served", "restart": "Restarts", "tail": "Tail"}
    placed: list[Bar] = []
    reached = Decimal(0)
    for kind, minutes in pieces.items():
        x, width = _place(reached, minutes, report.paid_minutes)
        placed.append(Bar(kind=kind, name=names[kind], minutes=minutes, x=x, width=width))
        reached += minutes
    return tuple(bar for bar in placed if bar.minutes)


def rows(report: Report) -> tuple[Row, ...]:
    """Every cause of loss, the causes without minutes too; `usd` is its part of the block's fee."""
    total = report.paid_minutes - report.served_minutes
    fee = report.cost.block_usd
    placed: list[Row] = []
    reached = Decimal(0)
    for cause, minutes in _causes(report.minutes_lost):
        x, width = _place(reached, minutes, total)
        kind = cause if cause in ("restart", "tail") else "start"
        usd = None if fee is None else fee * minutes / report.paid_minutes if report.paid_minutes else Decimal(0)
        placed.append(Row(kind=kind, name=NAMES[cause], minutes=minutes, usd=usd, x=x, width=width))
        reached += minutes
    return tuple(placed)


def _causes(lost: MinutesLost) -> Iterator[tuple[str, Decimal]]:
    return ((cause, getattr(lost, cause)) for cause in NAMES)


def _place(reached: Decimal, minutes: Decimal, whole: Decimal) -> tuple[Decimal, Decimal]:
    if not whole:
        return Decimal(0), Decimal(0)
    return (reached / whole * 1000).quantize(_PER_MILLE), (minutes / whole * 1000).quantize(_PER_MILLE)
