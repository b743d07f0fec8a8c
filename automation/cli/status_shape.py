"""The shape of `rentblock status --json`; docs/status.md describes every field.

Figures and times are those of report.json: JSON numbers with the digits of a Decimal behind them, ISO 8601 in UTC.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from automation.accounts.schema import BlockPart, FaultPart, Number, ResidualPart
from automation.ledger.record import OperationName, PhaseName
from automation.session.observation import Unknown
from automation.session.status import Status
from planning.block import Moments

P = TypeVar("P", bound=BaseModel)


class OperationPart(BaseModel):
    """The engine's operation that has not ended."""

    model_config = ConfigDict(frozen=True)

    number: int = Field(description="counts the session's operations from 1")
    name: OperationName = Field(description="up or destroy")
    started: datetime = Field(description="AWS's time")
    interrupted: datetime | None = Field(description="when it was asked to stop; null when it was not")


class StatusNow(BaseModel):
    """How a session stands."""

    model_config = ConfigDict(frozen=True)

    session: str = Field(description="its id: the name of its stack and of its cluster")
    mode: Literal["aws", "rehearsal"] = Field(description="in a rehearsal every minute and dollar is a model value")
    phase: PhaseName | None = Field(
        description="buy, prepare, wait, start, accept, serve, drain, destroy or sweep; null between two and when over"
    )
    outcome: str | None = Field(description="ok, else what is wrong in a few words; null while it is not over")
    now: datetime | None = Field(description="AWS's time; null when AWS did not answer")
    reservation_state: str | None = Field(description="AWS's own word, for example active; null when there is none")
    reservation_note: str | None = Field(description="why there is no state; null when there is one")
    block: BlockPart | None = Field(description="as in report.json; null before the purchase as well")
    moments: Moments | None = Field(description="null while nothing is planned, and for a block that is of no use")
    outside_usd: Number | None = Field(description="billed outside the fee so far; null when it is not known")
    accepted: bool = Field(description="whether the last acceptance ran and every check was true")
    faults: tuple[FaultPart, ...] = Field(description="all, as in report.json")
    residual: tuple[ResidualPart, ...] = Field(description="as in report.json: what the last sweep found")
    operation: OperationPart | None = Field(description="the engine's operation that has not ended")
    attended_by: int | None = Field(
        description="the process of this machine that runs it; null when none does, and nothing is begun then"
    )
    others_open: tuple[str, ...] = Field(description="the other sessions of this machine that have not ended")


def status_now(status: Status) -> StatusNow:
    """What a program wants to know of a session."""
    record, reservation = status.record, status.reservation
    running = [run for run in record.operations if run.ended is None]
    return StatusNow(
        session=record.session,
        mode=record.mode,
        phase=record.phase,
        outcome=record.outcome,
        now=status.now,
        reservation_state=None if isinstance(reservation, Unknown) else reservation,
        reservation_note=reservation.reason if isinstance(reservation, Unknown) else None,
        block=BlockPart.model_validate(record.paid_block, from_attributes=True) if record.paid_block else None,
        moments=status.plan.moments if status.plan else None,
        outside_usd=status.outside_usd,
        accepted=record.accepted,
        faults=_parts(FaultPart, record.faults),
        residual=_parts(ResidualPart, record.residual),
        operation=OperationPart.model_validate(running[-1], from_attributes=True) if running else None,
        attended_by=status.attended_by,
        others_open=status.others_open,
    )


def _parts(kind: type[P], values: Iterable[object]) -> tuple[P, ...]:
    return tuple(kind.model_validate(value, from_attributes=True) for value in values)
