"""A session's report: built from its record, written as report.json and report.html."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from planning.catalogue import Catalogue, UnknownName
from planning.costs import Usage, hosted_break_even_tokens_per_s, outside_usd, usage_usd

from ..errors import machine_error
from ..ledger.folder import write_whole
from ..ledger.record import PhaseSpan, Record
from .minutes import Minutes, minutes_lost, paid_time
from .page import page
from .schema import (
    BillLine,
    BlockPart,
    CheckPart,
    ConstantPart,
    CostPart,
    FaultPart,
    MinutesLost,
    PhasePart,
    PurchasePart,
    Report,
    ResidualPart,
)

P = TypeVar("P", bound=BaseModel)

_CENT = Decimal("0.01")
_RULES = ("drain_before_end_minutes", "eks_scale_in_before_end_minutes", "ec2_termination_before_end_minutes")
_START = ("launch_s", "join_s", "device_plugin_s", "image_pull_bytes_per_s", "acceptance_s")
_WEIGHTS: Mapping[str, tuple[str, ...]] = {
    "staged": ("weights_stream_bytes_per_s",),
    "hub": ("weights_hub_bytes_per_s", "weights_local_bytes_per_s"),
}
_PRICES: Mapping[str, tuple[str, ...]] = {
    "eks_cluster": ("eks_cluster_usd_per_hour",),
    "nat_gateway": ("nat_gateway_usd_per_started_hour",),
    "public_ipv4": ("public_ipv4_usd_per_hour",),
    "ebs_gp3_gib": ("ebs_gp3_usd_per_gib_month", "ebs_month_hours"),
}


def build(record: Record, catalogue: Catalogue, versions: Mapping[str, str]) -> Report:
    """The report of a session that is over, or of one that still runs as it stands.

    A usage whose price the catalogue does not know is left out of the bill, and said among the faults: at the end of a
    session a report with a gap is worth more than none.
    """
    minutes = minutes_lost(record)
    priced, unpriced = _by_price(record.usage, catalogue)
    until = _last_instant(record)
    unknown = tuple(
        FaultPart(at=until, what=f"No price is known for {usage.resource_id} ({usage.detail}): it is not in the bill.")
        for usage in unpriced
    )
    return Report(
        session=record.session,
        route="eks",
        mode=record.mode,
        outcome=record.outcome or "running",
        block=BlockPart.model_validate(record.paid_block, from_attributes=True) if record.paid_block else None,
        purchases=_parts(PurchasePart, record.purchases),
        phases=tuple(_phase(span, record) for span in record.phases),
        first_token_seconds=minutes.first_token_seconds,
        served_minutes=minutes.served,
        paid_minutes=minutes.paid,
        served_share=minutes.served_share,
        minutes_lost=MinutesLost.model_validate(minutes.lost),
        acceptance=_parts(CheckPart, record.acceptance),
        cost=_cost(record, minutes, catalogue, outside_usd(priced, catalogue, until=until)),
        residual=_parts(ResidualPart, record.residual),
        faults=(*_parts(FaultPart, record.faults), *unknown),
        constants_used=tuple(_constants(record, priced, catalogue)),
        versions=dict(versions),
        bill=tuple(_bill_line(usage, catalogue, until) for usage in priced),
    )


def write(report: Report, folder: Path) -> None:
    """Write report.json and report.html into `folder`, each whole or not at all. Raises MachineInTheWay."""
    contents = {"report.json": report.model_dump_json(indent=2) + "\n", "report.html": page(report)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise machine_error(error) from error
    for name, text in contents.items():
        write_whole(folder / name, text, mode=0o666)


def _cost(record: Record, minutes: Minutes, catalogue: Catalogue, outside: Decimal) -> CostPart:
    fees = [purchase.fee_usd for purchase in record.purchases]
    block = record.paid_block
    block_usd = block.fee_usd if block and (block.fee_usd is None or not fees) else sum(fees, Decimal(0))
    total = None if block_usd is None else block_usd + outside
    hosted = catalogue.model(record.request.model).hosted_output_usd_per_million_tokens
    break_even = None
    if hosted and total is not None and minutes.paid:
        break_even = hosted_break_even_tokens_per_s(
            usd_per_hour=total / minutes.paid * 60,
            served_share=minutes.served / minutes.paid,
            hosted_usd_per_million_tokens=hosted.value,
        )
    return CostPart(
        block_usd=block_usd,
        outside_usd=outside,
        per_served_hour_usd=(total / minutes.served * 60).quantize(_CENT)
        if total is not None and minutes.served
        else None,
        hosted_break_even_tokens_per_s=break_even.quantize(Decimal("0.1")) if break_even is not None else None,
    )


def _phase(span: PhaseSpan, record: Record) -> PhasePart:
    window = paid_time(record)
    ended = span.ended or span.started
    paid = window is not None and span.started < window[1] and ended > window[0]
    return PhasePart(name=span.name, started=span.started, ended=span.ended, paid=paid)


def _bill_line(usage: Usage, catalogue: Catalogue, until: datetime) -> BillLine:
    detail = f"{usage.quantity} GiB" if usage.kind == "ebs_gp3_gib" else usage.detail
    return BillLine(
        kind=usage.kind,
        resource_id=usage.resource_id,
        detail=detail,
        started=usage.started,
        ended=usage.ended or until,
        usd=usage_usd(usage, catalogue, until=until),
    )


def _by_price(usages: Iterable[Usage], catalogue: Catalogue) -> tuple[list[Usage], list[Usage]]:
    priced: list[Usage] = []
    unpriced: list[Usage] = []
    for usage in usages:
        try:
            usage_usd(usage, catalogue, until=usage.started)
            priced.append(usage)
        except UnknownName:
            unpriced.append(usage)
    return priced, unpriced


def _last_instant(record: Record) -> datetime:
    """The last instant that the record knows: what bills without an end is counted until then."""
    spans = [at for span in record.phases for at in (span.started, span.ended) if at]
    usages = [at for usage in record.usage for at in (usage.started, usage.ended) if at]
    return max([record.opened, *spans, *usages, *([record.swept_at] if record.swept_at else [])])


def _constants(record: Record, usages: Iterable[Usage], catalogue: Catalogue) -> Iterator[ConstantPart]:
    """What money, moments and start-up budget of this session rest on; each once."""
    model = record.request.model
    weights = _WEIGHTS[record.request.weights]
    names = [name for usage in usages for name in _price_names(usage)]
    names += [f"{model}.hosted_output_usd_per_million_tokens", *_RULES, *_START, *weights]
    names += [f"{model}.engine_start_{record.request.caches}_s"]
    for name in dict.fromkeys(names):
        constant = catalogue.constants.get(name)
        if constant:
            yield ConstantPart.model_validate(constant, from_attributes=True)


def _parts(part: type[P], values: Iterable[object]) -> tuple[P, ...]:
    return tuple(part.model_validate(value, from_attributes=True) for value in values)


def _price_names(usage: Usage) -> tuple[str, ...]:
    if usage.kind == "ec2_instance":
        return (f"{usage.detail}.on_demand_usd_per_hour",)
    return _PRICES[usage.kind]
