"""Where the paid minutes of a session went: every instant belongs to serving or to exactly one cause of loss.

Pure: the same record gives the same minutes. All boundaries are counted from the start of the paid time and rounded to
hundredths of a minute once, and every figure is a difference of two boundaries; so the printed figures add up to the
paid minutes exactly, however they are grouped.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from planning.block import minutes as constant_minutes
from planning.costs import LOSS_CAUSES, STARTUP_PHASES

from ..ledger.record import Record

SERVED = "served"
PLACES = Decimal("0.01")
_MICROSECOND = timedelta(microseconds=1)
# A cause and the instant until which it lasts, from the end of the piece before.
_Piece = tuple[str, datetime]


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Minutes without a change of cause, counted from the start of the paid time; `cause` is SERVED or a LOSS_CAUSE."""

    cause: str
    start: Decimal
    end: Decimal

    @property
    def minutes(self) -> Decimal:
        return self.end - self.start


@dataclass(frozen=True, kw_only=True)
class Minutes:
    """The paid time of a session, in minutes with two places.

    `stretches` follow each other without a gap from 0 to `paid`; none is empty. `first_token_seconds` runs from the
    start of the paid time until the acceptance was through: the first instant at which an answer could be trusted;
    None when that never came.
    """

    paid: Decimal
    stretches: tuple[Stretch, ...]
    first_token_seconds: Decimal | None

    @property
    def served(self) -> Decimal:
        return self._sum(SERVED)

    @property
    def lost(self) -> Mapping[str, Decimal]:
        """By cause; every one of LOSS_CAUSES is there."""
        return {cause: self._sum(cause) for cause in LOSS_CAUSES}

    @property
    def served_share(self) -> Decimal:
        """Between 0 and 1, four places."""
        return (self.served / self.paid).quantize(Decimal("0.0001")) if self.paid else Decimal(0)

    def _sum(self, cause: str) -> Decimal:
        return sum((stretch.minutes for stretch in self.stretches if stretch.cause == cause), Decimal("0.00"))


def minutes_lost(record: Record) -> Minutes:
    """Count the paid time of a session.

    Before the acceptance is through, an instant belongs to the first start-up phase that is unfinished then, in the
    order of STARTUP_PHASES. From the drain on it belongs to the tail, at the latest from the instant at which EKS takes
    the nodes. In between it is served, except while the endpoint was away or the session was starting anew: that is a
    restart. What is left of a session that still runs is counted as if it went on as it is.
    """
    window = paid_time(record)
    if window is None:
        return Minutes(paid=Decimal("0.00"), stretches=(), first_token_seconds=None)
    start, end = window
    tail = _tail_start(record, start, end)
    ready = _ready(record, start, tail)
    pieces = [
        *_startup(record, ready or tail, accepted=ready is not None),
        *(_serving(record, ready, tail) if ready else ()),
        ("tail", end),
    ]
    return Minutes(
        paid=_minutes(end - start),
        stretches=tuple(_stretches(pieces, start)),
        first_token_seconds=Decimal((ready - start) // _MICROSECOND) / 10**6 if ready else None,
    )


def paid_time(record: Record) -> tuple[datetime, datetime] | None:
    """The block's time; for a session on demand the time from the first node asked for to the end of the drain."""
    if record.paid_block:
        return record.paid_block.start, record.paid_block.end
    began = [span.started for span in record.phases if span.name == "start"]
    drained = [span.ended for span in record.phases if span.name == "drain" and span.ended]
    return (min(began), max(drained)) if began and drained else None


def _tail_start(record: Record, start: datetime, end: datetime) -> datetime:
    ending = [span.started for span in record.phases if span.name in ("drain", "destroy")]
    # Nobody who was asleep at the drain serves any longer than EKS leaves the nodes.
    taken = end - constant_minutes("eks_scale_in_before_end_minutes") if record.paid_block else end
    return max(min([*ending, taken]), start)


def _ready(record: Record, start: datetime, tail: datetime) -> datetime | None:
    """When the first acceptance was through; never after the tail has begun."""
    through = [mark.ended for mark in record.startup if mark.phase == "acceptance"]
    serving = [span.started for span in record.phases if span.name == "serve"]
    ready = min(through or serving, default=None)
    return max(ready, start) if ready and ready <= tail else None


def _startup(record: Record, limit: datetime, *, accepted: bool) -> Iterator[_Piece]:
    """Each start-up phase until its end. A phase without a mark was over when a later one was."""
    marks = {mark.phase: mark.ended for mark in record.startup}
    ends: list[datetime] = []
    later = limit if accepted else None
    for phase in reversed(STARTUP_PHASES):
        later = marks.get(phase) or later
        ends.append(min(later, limit) if later else limit)
    yield from zip(STARTUP_PHASES, reversed(ends), strict=True)


def _serving(record: Record, ready: datetime, tail: datetime) -> Iterator[_Piece]:
    anew = [(span.started, span.ended or tail) for span in record.phases if span.name in ("start", "accept")]
    unseen = [(lost.since, lost.until) for lost in record.interruptions]
    for since, until in sorted(anew + unseen):
        if ready < since < tail:
            yield SERVED, since
            yield "restart", min(until, tail)
    yield SERVED, tail


def _stretches(pieces: Iterable[_Piece], start: datetime) -> Iterator[Stretch]:
    """The pieces in order, each from where the one before it ended; empty ones are left out."""
    reached = Decimal("0.00")
    for cause, until in pieces:
        end = max(_minutes(until - start), reached)
        if end > reached:
            yield Stretch(cause=cause, start=reached, end=end)
        reached = end


def _minutes(length: timedelta) -> Decimal:
    return (Decimal(length // _MICROSECOND) / 60_000_000).quantize(PLACES, rounding=ROUND_HALF_EVEN)
