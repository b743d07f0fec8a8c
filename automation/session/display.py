"""What the loop shows while it works: one value after each look, and a sentence for each thing that happens."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from automation.ledger.record import PhaseName
from automation.target import Mode


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One look, for people. `now` is AWS's time; `waiting_for` runs until `until` at the latest; `said` is the last
    thing that AWS said; `fee_usd` is paid and `outside_usd` is billed so far beside it (None: it is not known)."""

    session: str
    mode: Mode
    phase: PhaseName | None
    now: datetime
    waiting_for: str
    until: datetime | None
    said: str
    fee_usd: Decimal | None
    outside_usd: Decimal | None


class Display(Protocol):
    """Where progress goes."""

    def show(self, progress: Progress) -> None:
        """The state after a look."""
        ...

    def say(self, now: datetime, sentence: str) -> None:
        """Something that happened."""
        ...


class Quiet:
    """For programs: shows nothing; the journal tells all of it."""

    def show(self, progress: Progress) -> None:
        """Nothing."""

    def say(self, now: datetime, sentence: str) -> None:
        """Nothing."""
