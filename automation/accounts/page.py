"""report.html: one page that needs nothing from outside, no script and no network, and prints well."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .schema import Report
from .waterfall import bars, rows

PHASE_NAMES = {
    "buy": "Buy",
    "prepare": "Prepare",
    "wait": "Wait for the block",
    "start": "Start",
    "accept": "Accept",
    "serve": "Serve",
    "drain": "Drain",
    "destroy": "Destroy",
    "sweep": "Sweep",
}
USAGE_NAMES = {
    "eks_cluster": "EKS control plane",
    "nat_gateway": "NAT gateway",
    "public_ipv4": "Public IPv4 address",
    "ec2_instance": "EC2 instance, on demand",
    "ebs_gp3_gib": "EBS gp3 volume",
}
_UNKNOWN = "—"
CONFIDENCES = {
    "A": "primary document or measurement",
    "B": "third party, with its method",
    "C": "one third-party note",
    "assumed": "no source",
}


def page(report: Report) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(usd=usd, number=number, at=at, day=day, length=length, seconds=seconds)
    return environment.get_template("page.html.j2").render(
        report=report,
        bars=bars(report),
        rows=rows(report),
        lost=report.paid_minutes - report.served_minutes,
        lost_usd=None if report.cost.block_usd is None else sum(row.usd or 0 for row in rows(report)),
        total_usd=total_usd(report),
        phase_names=PHASE_NAMES,
        usage_names=USAGE_NAMES,
        confidences=CONFIDENCES,
    )


def total_usd(report: Report) -> Decimal | None:
    """All that was paid; None when the fee of a block that was bought elsewhere is not known."""
    return None if report.cost.block_usd is None else report.cost.block_usd + report.cost.outside_usd


def usd(value: Decimal | None, places: int = 2) -> str:
    """For example US$3,100.03; a dash for what nobody knows."""
    return _UNKNOWN if value is None else f"US${value:,.{places}f}"


def number(value: Decimal | None, places: int = 2) -> str:
    return _UNKNOWN if value is None else f"{value:,.{places}f}"


def at(instant: datetime | None) -> str:
    """For example 1 Dec 2026, 11:30:00."""
    if instant is None:
        return _UNKNOWN
    utc = instant.astimezone(UTC)
    return f"{utc.day} {utc:%b %Y, %H:%M:%S}"


def day(instant: datetime) -> str:
    """For example 1 Dec 11:30."""
    utc = instant.astimezone(UTC)
    return f"{utc.day} {utc:%b %H:%M}"


def length(started: datetime, ended: datetime | None) -> str:
    """For example 22 h 58 min."""
    return _UNKNOWN if ended is None else _in_words(ended - started)


def seconds(value: Decimal | None) -> str:
    """For example 11 min 45 s."""
    return _UNKNOWN if value is None else _in_words(timedelta(seconds=float(value)))


def _in_words(span: timedelta) -> str:
    total = round(span.total_seconds())
    hours, minutes, left = total // 3600, total // 60 % 60, total % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"
