"""What a user sees while programs are fetched or built.

On a terminal one line that changes; elsewhere (a log, CI) a line at the start, one a minute and one at the end.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status

_LOG_EVERY_SECONDS = 60.0


def spell(seconds: float) -> str:
    """`187` as `3 min 7 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Task:
    """One piece of work that takes its time. Call `tick` often; it writes only when something is due."""

    def __init__(
        self, text: str, usual: float | None, console: Console, status: Status | None, clock: Callable[[], float]
    ) -> None:
        self._text = text
        self._usual = f" of usually about {spell(usual)}" if usual else ""
        self._console = console
        self._status = status
        self._clock = clock
        self.started = clock()
        self._next_line = self.started + _LOG_EVERY_SECONDS

    def tick(self, detail: str = "") -> None:
        """Show the time spent so far, and `detail`: the last thing that the work said."""
        now = self._clock()
        line = f"{self._text}: {spell(now - self.started)}{self._usual}"
        if self._status is not None:
            self._status.update(escape(f"{line}  {detail}"[: max(20, self._console.width - 4)]))
        elif now >= self._next_line:
            self._next_line += _LOG_EVERY_SECONDS
            self._console.print(f"{line}.", markup=False, highlight=False, soft_wrap=True)


class Reporter:
    """Writes to one console; `quiet` consoles of rich keep it silent."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console or Console(stderr=True)
        self._clock = clock

    def say(self, text: str) -> None:
        """One line that stays."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def task(self, text: str, usual: float | None = None, done: str = "") -> Iterator[Task]:
        """Show `text` while the block runs and `done` with the time it took once it has ended well."""
        if self.console.is_terminal:
            with self.console.status(escape(text)) as status:
                task = Task(text, usual, self.console, status, self._clock)
                yield task
        else:
            self.say(f"{text} (usually about {spell(usual)})" if usual else text)
            task = Task(text, usual, self.console, None, self._clock)
            yield task
        if done:
            self.say(f"{done} in {spell(self._clock() - task.started)}")
