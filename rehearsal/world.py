"""Virtual time: one queue of events, one lock, one story of what happened."""

from __future__ import annotations

import heapq
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rehearsal.delays import Delays

Action = Callable[[], None]
Fact = str | int

DEFAULT_START = datetime(2027, 1, 4, 16, 0, tzinfo=UTC)
"""A Monday afternoon: the next block of a whole day starts 19.5 hours later."""


@dataclass(frozen=True, kw_only=True)
class StoryEntry:
    """One thing that happened. Facts hold no random ids and no real time, so that equal seeds tell equal stories."""

    when: datetime
    kind: str
    facts: Mapping[str, Fact]

    def line(self) -> str:
        """The entry as one line of text, with its facts in the order of their names."""
        return " ".join([self.when.isoformat(), self.kind, *(f"{key}={self.facts[key]}" for key in sorted(self.facts))])


@dataclass(frozen=True, order=True)
class _Event:
    when: datetime
    sequence: int
    name: str = field(compare=False)
    action: Action = field(compare=False)


class World:
    """Virtual time and everything that is due in it.

    Events run one at a time, in the order of their instant and, within an instant, in the order in which they were
    scheduled. `lock` is held while an event runs; whoever else touches the world's state (a request to the simulated
    AWS) holds it as well, so that nobody sees half an event.
    """

    def __init__(self, start: datetime, seed: int, delays: Delays) -> None:
        """`start` is an aware instant; `seed` fixes every draw from `delays`."""
        if start.tzinfo is None:
            raise ValueError("the world's start needs a time zone")
        self.lock = threading.RLock()
        self.seed = seed
        self.delays = delays
        self._now = start.astimezone(UTC)
        self._events: list[_Event] = []
        self._scheduled = 0
        self._draws: Counter[str] = Counter()
        self._story: list[StoryEntry] = []
        self._running: str | None = None

    @property
    def now(self) -> datetime:
        """The virtual instant, aware, in UTC."""
        return self._now

    @property
    def story(self) -> tuple[StoryEntry, ...]:
        """All entries in the order in which they were noted."""
        with self.lock:
            return tuple(self._story)

    def story_lines(self) -> tuple[str, ...]:
        """The story as text, sorted inside each instant: what an engine does in parallel has no order of its own."""
        return tuple(sorted(entry.line() for entry in self.story))

    def at(self, when: datetime, name: str, action: Action) -> None:
        """Run `action` at `when`; an instant that has passed means now, at the next advance."""
        with self.lock:
            self._scheduled += 1
            heapq.heappush(self._events, _Event(max(when, self._now), self._scheduled, name, action))

    def after(self, delay: timedelta, name: str, action: Action) -> None:
        """Run `action` once `delay` has passed."""
        with self.lock:
            self.at(self._now + delay, name, action)

    def next_event(self) -> datetime | None:
        """When the next event is due, if any is scheduled."""
        with self.lock:
            return self._events[0].when if self._events else None

    def advance(self, until: datetime) -> None:
        """Run all events due up to and including `until`, each at its own instant, and end at `until`.

        An `until` in the past runs what is due now. Raises RuntimeError when an event tries to advance the world.
        """
        while self._run_next(until):
            pass
        with self.lock:
            self._now = max(self._now, until)

    def jump(self, duration: timedelta) -> None:
        """Advance by `duration`."""
        self.advance(self._now + duration)

    def note(self, kind: str, **facts: Fact) -> None:
        """Add to the story that `kind` happened now."""
        with self.lock:
            self._story.append(StoryEntry(when=self._now, kind=kind, facts=dict(facts)))

    def draw(self, name: str, *, of: str = "") -> timedelta:
        """A length for the delay `name`, in whole seconds (all that a Date header can show).

        The n-th draw of a name depends on the seed, the name and n alone, never on other draws. Where several ask at
        once, and chance says who is first, `of` tells them apart: each has draws of its own.
        Raises UnknownDelay.
        """
        delay = self.delays.delay(name)
        with self.lock:
            self._draws[name + of] += 1
            chance = random.Random(f"{self.seed}/{name + of}/{self._draws[name + of]}")
        return timedelta(seconds=chance.randint(delay.low_s, delay.high_s))

    def _run_next(self, until: datetime) -> bool:
        with self.lock:
            if self._running is not None:
                raise RuntimeError(f"the event {self._running!r} may schedule, but not advance, the world")
            if not self._events or self._events[0].when > max(until, self._now):
                return False
            event = heapq.heappop(self._events)
            self._now = event.when
            self._running = event.name
            try:
                event.action()
            finally:
                self._running = None
            return True
