"""Offers and sessions as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from automation.errors import RentblockError

if TYPE_CHECKING:
    from automation.cli.doctor import Finding
    from automation.ledger.folder import SessionFolder
    from automation.session.status import Status
    from planning.ranking import RankedOffer

# In fewer columns than these the cells of a table are broken into pieces that nobody can read.
_OFFERS_COLUMNS = 160
_FINDINGS_COLUMNS = 100
_FAULTS_SHOWN = 3
_MARKS = {True: "ok", False: "LACKS", None: "unverified"}
_TITLE = "Capacity Blocks on offer (a block can never be cancelled)"


def offers_view(ranked: Iterable[RankedOffer], columns: int) -> RenderableType:
    """Best first; those refused come last with their reason. A table, or lines for each offer where it is narrow."""
    return _offers_table(ranked) if columns >= _OFFERS_COLUMNS else _offers_lines(ranked)


def _offers_table(ranked: Iterable[RankedOffer]) -> Table:
    table = Table(title=_TITLE)
    price_heading = "US$ / useful\nGPU-hour"
    for column in ("offering", "instances", "zone", "start (UTC)", "end (UTC)", "fee US$", price_heading):
        table.add_column(column, no_wrap=True)
    table.add_column("", overflow="fold")
    for each in ranked:
        offer, price = each.offer, each.usd_per_useful_gpu_hour
        table.add_row(
            offer.offering_id,
            f"{offer.instance_count} x {offer.instance_type}",
            offer.where.replace(", ", "\n"),
            f"{offer.start:%Y-%m-%d %H:%M}",
            f"{offer.end:%Y-%m-%d %H:%M}",
            f"{offer.fee_usd:,.2f}",
            "-" if price is None else f"{price:,.2f}",
            each.refused or "",
        )
    return table


def _offers_lines(ranked: Iterable[RankedOffer]) -> Group:
    blocks = []
    for each in ranked:
        offer, price = each.offer, each.usd_per_useful_gpu_hour
        lines = [
            f"{offer.instance_count} x {offer.instance_type} in",
            offer.where,
            f"{offer.start:%Y-%m-%d %H:%M} to {offer.end:%Y-%m-%d %H:%M} UTC",
            f"US${offer.fee_usd:,.2f}" + ("" if price is None else f", US${price:,.2f} a useful GPU-hour"),
        ]
        blocks.append(_under(offer.offering_id, *lines, *([f"Refused: {each.refused}"] if each.refused else [])))
    return Group(Text(_TITLE, style="italic"), *blocks)


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
    seen = status.reservation if isinstance(status.reservation, str) else status.reservation.reason
    rows = {
        "session": record.session,
        "mode": record.mode,
        "phase": record.outcome or record.phase or "before the purchase",
        **_attended(status),
        "AWS time": f"{status.now:%Y-%m-%d %H:%M:%S} UTC" if status.now else "not known",
        "reservation": f"{record.block.reservation_id}: {seen}" if record.block else seen,
    }
    if record.block:
        block = record.block
        paid, outside = (
            "not known" if usd is None else f"US${usd:,.2f}" for usd in (block.fee_usd, status.outside_usd)
        )
        rows["block"] = f"{block.instance_count} x {block.instance_type} in {block.availability_zone}"
        fee = "nothing, since its payment failed" if record.released else paid
        rows["fee"] = f"{fee}; billed beside it so far: {outside}"
    if status.plan:
        moments = status.plan.moments
        named = {"start": moments.start, "drain": moments.drain, "end": moments.end}
        rows |= {name: f"{moment:%Y-%m-%d %H:%M} UTC" for name, moment in named.items()}
    known = len(record.faults)
    for number, fault in enumerate(record.faults[-_FAULTS_SHOWN:], start=max(known - _FAULTS_SHOWN, 0) + 1):
        rows[f"fault {number} of {known}"] = f"{fault.at:%m-%d %H:%M:%S} {fault.what}"
    if record.end_asked:
        rows["ended early"] = f"{record.end_asked:%m-%d %H:%M:%S} {record.end_reason}"
    for number, left in enumerate(record.residual, start=1):
        rows[f"left {number}"] = left.told
    return rows


def keep_running(folder: SessionFolder) -> str:
    """Until when a session needs its process, in a sentence; a block that is of no use needs it until it is swept."""
    from automation.ledger.journal import Journal
    from automation.session.plan import plan_of
    from planning.catalogue import load

    try:
        end = plan_of(Journal(folder.journal).record(), load()).moments.end
    except RentblockError:
        return "Keep this process running until it says that nothing is left."
    return f"Keep this process running, on a machine that stays on, until about {end:%Y-%m-%d %H:%M} UTC."


def _attended(status: Status) -> dict[str, str]:
    """Who runs the session, while it is open: what nobody runs goes on and is billed."""
    rows = {}
    if status.record.outcome is None:
        rows["run by"] = (
            f"process {status.attended_by} of this machine"
            if status.attended_by
            else f"nobody on this machine, unless a program is inside its `with rent(...)`; "
            f"`rentblock rent --session {status.record.session}` goes on with it"
        )
    if status.others_open:
        rows["also open"] = ", ".join(status.others_open)
    return rows


def findings_view(findings: Iterable[Finding], columns: int) -> Table:
    """What doctor found. Where it is narrow, part and detail share a cell."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        cells = [finding.part, finding.detail]
        if columns < _FINDINGS_COLUMNS:
            cells = [": ".join(cells)]
        table.add_row(_MARKS[finding.ok], *(Text(cell, overflow="fold") for cell in cells))
    return table


def rows_table(rows: dict[str, str]) -> Table:
    """Names and values beside each other."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    return table


def _under(heading: str, *lines: str) -> Group:
    """Lines below their heading, moved in, so that the eye finds the headings."""
    return Group(Text(heading), *(Padding(Text(line, overflow="fold"), (0, 0, 0, 2), expand=False) for line in lines))


def _rounded(each: RankedOffer) -> str | None:
    price = each.usd_per_useful_gpu_hour
    return None if price is None else str(round(price, 4))
