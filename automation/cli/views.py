"""Offers and sessions as people and programs read them."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from automation.cli.doctor import Finding
from automation.session.status import Status
from planning.ranking import RankedOffer


def offers_table(ranked: Iterable[RankedOffer]) -> Table:
    """Best first; those refused come last with their reason."""
    table = Table(title="Capacity Blocks on offer (a block can never be cancelled)")
    for column in ("offering", "instances", "zone", "start (UTC)", "end (UTC)", "fee US$", "US$ / useful GPU-hour", ""):
        table.add_column(column, overflow="fold")
    for each in ranked:
        offer, price = each.offer, each.usd_per_useful_gpu_hour
        table.add_row(
            offer.offering_id,
            f"{offer.instance_count} x {offer.instance_type}",
            f"{offer.availability_zone} ({offer.availability_zone_id})",
            f"{offer.start:%Y-%m-%d %H:%M}",
            f"{offer.end:%Y-%m-%d %H:%M}",
            f"{offer.fee_usd:,.2f}",
            "-" if price is None else f"{price:,.2f}",
            each.refused or "",
        )
    return table


def offers_json(ranked: Iterable[RankedOffer]) -> list[dict[str, object]]:
    """The same for programs; money as text, so that no cent is lost."""
    return [
        {
            "offering_id": each.offer.offering_id,
            "instance_type": each.offer.instance_type,
            "instance_count": each.offer.instance_count,
            "region": each.offer.region,
            "availability_zone": each.offer.availability_zone,
            "availability_zone_id": each.offer.availability_zone_id,
            "start": each.offer.start.isoformat(),
            "end": each.offer.end.isoformat(),
            "fee_usd": str(each.offer.fee_usd),
            "currency": each.offer.currency,
            "useful_hours": str(round(each.useful_hours, 3)),
            "usd_per_useful_gpu_hour": _rounded(each),
            "refused": each.refused,
        }
        for each in ranked
    ]


def status_rows(status: Status) -> dict[str, str]:
    """What there is to say about a session, by name."""
    record = status.record
    rows = {
        "session": record.session,
        "mode": record.mode,
        "phase": record.outcome or record.phase or "before the purchase",
        "AWS time": f"{status.now:%Y-%m-%d %H:%M:%S} UTC" if status.now else "not known",
        "reservation": f"{record.block.reservation_id}: {status.seen}" if record.block else status.seen,
    }
    if record.block:
        block = record.block
        outside = "not known" if status.outside_usd is None else f"US${status.outside_usd:,.2f}"
        rows["block"] = f"{block.instance_count} x {block.instance_type} in {block.availability_zone}"
        rows["fee"] = f"US${block.fee_usd:,.2f}; billed beside it so far: {outside}"
    if status.plan:
        moments = status.plan.moments
        named = {"start": moments.start, "drain": moments.drain, "end": moments.end}
        rows |= {name: f"{moment:%Y-%m-%d %H:%M} UTC" for name, moment in named.items()}
    for number, fault in enumerate(record.faults[-3:], start=1):
        rows[f"fault {number}"] = f"{fault.at:%H:%M:%S} {fault.what}"
    for left in record.residual:
        rows[f"left: {left.resource_id}"] = f"{left.kind} in {left.region}, US${left.usd_per_day} a day"
    return rows


def findings_table(findings: Iterable[Finding]) -> Table:
    """What doctor found."""
    table = Table(box=None, show_header=False, pad_edge=False)
    marks = {True: "ok", False: "LACKS", None: "unverified"}
    for finding in findings:
        table.add_row(marks[finding.ok], Text(finding.part), Text(finding.detail, overflow="fold"))
    return table


def rows_table(rows: dict[str, str]) -> Table:
    """Names and values beside each other."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    return table


def _rounded(each: RankedOffer) -> str | None:
    price = each.usd_per_useful_gpu_hour
    return None if price is None else str(round(price, 4))
