"""How a session's progress looks: a live panel in a terminal, one line for each change elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from automation.session.display import Display, Progress


class LivePanel:
    """Redrawn after each look."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, progress: Progress) -> None:
        """The state after a look."""
        self._live.update(panel(progress), refresh=True)

    def say(self, now: datetime, sentence: str) -> None:
        """Something that happened, kept above the panel."""
        self._live.console.print(Text(f"{now:%m-%d %H:%M:%S}  {sentence}"))


class Lines:
    """For logs: a line when the phase or what is waited for changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: tuple[str | None, str] | None = None

    def show(self, progress: Progress) -> None:
        """What is waited for after a look, if it differs from the last time. What is begun is said."""
        if progress.until is None:
            return
        state = (progress.phase, progress.waiting_for)
        if state != self._last:
            self._last = state
            meter = fee_meter(progress)
            self.say(progress.now, f"{progress.phase or '-'}: {progress.waiting_for} | {meter}")

    def say(self, now: datetime, sentence: str) -> None:
        """Something that happened."""
        self._console.print(Text(f"{now:%Y-%m-%d %H:%M:%S}Z  {sentence}"), soft_wrap=True)


@contextmanager
def display_on(console: Console) -> Iterator[Display]:
    """The display that fits the console."""
    if not console.is_terminal:
        yield Lines(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LivePanel(live)


def panel(progress: Progress) -> Panel:
    """Phase, AWS's time, what is waited for, the last thing AWS said, and the fee meter."""
    rows = Table.grid(padding=(0, 2))
    until = f" (next look {progress.until:%H:%M:%S} at the latest)" if progress.until else ""
    for name, value in (
        ("phase", progress.phase or "-"),
        ("AWS time", f"{progress.now:%Y-%m-%d %H:%M:%S} UTC"),
        ("waiting for", f"{progress.waiting_for}{until}"),
        ("AWS says", progress.said),
        ("fee meter", fee_meter(progress)),
    ):
        rows.add_row(Text(name, style="dim"), Text(value))
    return Panel(rows, title=_title(progress), expand=False)


def _title(progress: Progress) -> str:
    # Nobody may take the minutes and dollars of a rehearsal for real ones.
    return f"REHEARSAL  {progress.session}" if progress.mode == "rehearsal" else progress.session


def fee_meter(progress: Progress) -> str:
    """What has been paid and what has been billed beside it, in US$."""
    fee, outside = ("?" if usd is None else f"{usd:,.2f}" for usd in (progress.fee_usd, progress.outside_usd))
    return f"US${fee} block + US${outside} beside it"
