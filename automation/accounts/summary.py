"""The report in a terminal, for the end of a session."""

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .page import number, seconds, total_usd, usd
from .schema import Report, ResidualPart
from .waterfall import rows

_LONGEST_BAR = 30
# Of a terminal's columns: the frame, the names, minutes and dollars.
_BESIDE_THE_BAR = 48
_STYLES = {"start": "blue", "restart": "red", "tail": "bright_black"}


def print_summary(report: Report, console: Console) -> None:
    """Print what a person wants to know first, in some 25 lines, at any width from 60 on."""
    good = report.outcome == "ok"
    title = f"REHEARSAL  {report.session}" if report.mode == "rehearsal" else report.session
    parts: list[RenderableType] = [_headline(report), _lost(report, console.width), _checks(report), _left(report)]
    if report.mode == "rehearsal":
        parts.append(Text("A rehearsal: every minute and dollar here is a model value.", style="yellow"))
    console.print(Panel(Group(*parts), title=title, border_style="green" if good else "red", box=box.ROUNDED))


def _headline(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    outside = f"{usd(report.cost.block_usd)} block + {usd(report.cost.outside_usd)} outside"
    served = f"{number(report.served_minutes)} of {number(report.paid_minutes)} paid minutes"
    table.add_row("Outcome", Text(report.outcome, style="bold green" if report.outcome == "ok" else "bold red"))
    table.add_row("Served", f"{number(report.served_share * 100)} %  ({served})")
    table.add_row("First token", f"{seconds(report.first_token_seconds)} after the block's start")
    table.add_row("Paid", f"{usd(total_usd(report))}  ({outside})")
    table.add_row("A served hour", usd(report.cost.per_served_hour_usd))
    if report.cost.hosted_break_even_tokens_per_s is not None:
        table.add_row("Break-even", f"{number(report.cost.hosted_break_even_tokens_per_s, 0)} output tokens/s")
    return table


def _lost(report: Report, columns: int) -> Table:
    longest = max(1, min(_LONGEST_BAR, columns - _BESIDE_THE_BAR))
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="bright_black")
    table.add_column("Lost to")
    table.add_column("", width=longest)
    table.add_column("min", justify="right", no_wrap=True)
    table.add_column("of the fee", justify="right", no_wrap=True)
    for row in rows(report):
        if row.minutes:
            before, bar = int(row.x * longest / 1000), max(1, round(row.width * longest / 1000))
            drawn = Text(" " * min(before, longest - 1) + "█" * bar, style=_STYLES[row.kind], no_wrap=True)
            table.add_row(row.name, drawn, number(row.minutes), usd(row.usd))
    return table


def _checks(report: Report) -> Text:
    if not report.acceptance:
        return Text("Acceptance     never ran", style="red")
    failed = [check for check in report.acceptance if not check.ok]
    passed = len(report.acceptance) - len(failed)
    lines = [f"{passed} of {len(report.acceptance)} checks passed"]
    lines += [f"{check.check}: {check.detail}" for check in failed]
    return Text("Acceptance     " + "\n               ".join(lines), style="bold red" if failed else "green")


def _left(report: Report) -> Text:
    if report.residual:
        lines = [f"{left.kind} {left.resource_id or '?'} {left.detail} ({_a_day(left)})" for left in report.residual]
        return Text("Left behind    " + "\n               ".join(lines), style="bold red")
    if report.outcome == "running":
        return Text("Left behind    not looked for yet")
    return Text("Left behind    nothing: every service was asked", style="green")


def _a_day(left: ResidualPart) -> str:
    return f"{usd(left.usd_per_day)} a day" if left.resource_id else "cost not known"
