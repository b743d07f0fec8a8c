"""The shape of report.json; docs/report.md describes every field.

Strict where we write: a report that lacks a field or has a figure of another kind is never written. Lenient where we
read back: a newer version's fields are passed over. Figures are JSON numbers with the digits of the Decimal behind
them, so read them as decimals (`json.loads(text, parse_float=Decimal)`) where they have to add up.
"""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

Number = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class BlockPart(_Part):
    """The reservation that the session ran on."""

    reservation_id: str = Field(description="cr-…")
    offering_id: str | None = Field(description="cb-…; null when the reservation was bought elsewhere")
    instance_type: str = Field(description="EC2's name of it")
    instance_count: int = Field(description="instances in the reservation")
    availability_zone: str = Field(description="by name, as this account sees it")
    start: datetime = Field(description="the first paid second")
    end: datetime = Field(description="the last paid second")
    fee_usd: Number | None = Field(description="US$, the whole fee, all instances; null when nobody said what it cost")


class PurchasePart(_Part):
    """A purchase that the session made."""

    offering_id: str = Field(description="cb-…")
    reservation_id: str = Field(description="cr-…")
    fee_usd: Number = Field(description="US$, paid up front")
    bought_at: datetime = Field(description="AWS's time")


class PhasePart(_Part):
    """A phase of the session."""

    name: str = Field(description="buy, prepare, wait, start, accept, serve, drain, destroy or sweep")
    started: datetime = Field(description="AWS's time")
    ended: datetime | None = Field(description="null while it lasts")
    paid: bool = Field(description="whether a part of it lies in the block's paid time")


class MinutesLost(_Part):
    """Paid minutes that served nobody, by cause."""

    launch: Number = Field(description="until EC2 ran the instances")
    join: Number = Field(description="until their nodes were Ready")
    device_plugin: Number = Field(description="until their GPUs were allocatable")
    image: Number = Field(description="until the engine's container ran")
    weights: Number = Field(description="until the weights were in the GPUs")
    engine: Number = Field(description="until the pod was Ready")
    acceptance: Number = Field(description="until every acceptance check was true")
    restart: Number = Field(description="from when an endpoint that served went away until it was accepted again")
    tail: Number = Field(description="from the drain to the end of the block")


class CheckPart(_Part):
    """An acceptance check, as its last run found it."""

    check: str = Field(description="model_id, chat, reasoning, streaming, tool_call, wrong_key, no_key or wrong_model")
    ok: bool = Field(description="whether the endpoint did what was promised")
    detail: str = Field(description="what was seen, in a sentence")


class CostPart(_Part):
    """US$; what nobody can tell is null."""

    block_usd: Number | None = Field(
        description="the block's fee; null when it was extended, or bought elsewhere and nobody said what it cost"
    )
    outside_usd: Number = Field(description="what billed outside the fee, rounded to cents once")
    per_served_hour_usd: Number | None = Field(description="(block_usd + outside_usd) / served hours")
    hosted_break_even_tokens_per_s: Number | None = Field(
        description="output tokens a second at which a served hour costs what the hosted API asks for them"
    )


class ResidualPart(_Part):
    """Something that was still there at the last sweep; without an id: what could not be looked at."""

    kind: str = Field(description="for example nat_gateway")
    resource_id: str = Field(description="AWS's id or name; empty: could not be looked at")
    region: str = Field(description="where it is")
    detail: str = Field(description="its state, or why it could not be looked at")
    usd_per_day: Number = Field(description="US$, by list price")
    kept: bool = Field(description="true: it may hold data of yours, so only you may delete it")


class FaultPart(_Part):
    """Something that went wrong, repaired or not."""

    at: datetime = Field(description="AWS's time")
    what: str = Field(description="a sentence")


class ConstantPart(_Part):
    """A figure of the catalogue that this report rests on."""

    name: str = Field(description="its name in planning/catalogue/, which has its unit and date too")
    value: Number = Field(description="the figure")
    source: str = Field(description="where it was read")
    confidence: str = Field(description="A primary document, B third party with its method, C one note, or assumed")


class BillLine(_Part):
    """One thing that billed outside the block's fee. On the page only."""

    kind: str
    resource_id: str
    detail: str
    started: datetime
    ended: datetime
    usd: Decimal


class Report(_Part):
    """A session's accounts. `bill` is for the page and not part of report.json."""

    session: str = Field(description="its id: the name of its stack and of its cluster")
    route: str = Field(description="how the model is served: eks")
    mode: Literal["aws", "rehearsal"] = Field(description="in a rehearsal every minute and dollar is a model value")
    outcome: str = Field(description="ok, else what is wrong in a few words; running while it is not over")
    block: BlockPart | None = Field(description="null for a session on demand, and when the payment failed")
    purchases: tuple[PurchasePart, ...] = Field(description="exactly one, unless the block was bought before")
    phases: tuple[PhasePart, ...]
    first_token_seconds: Number | None = Field(
        description="from the start of the block until the acceptance was through; null when it never was"
    )
    served_minutes: Number = Field(description="from the acceptance to the drain, without `minutes_lost.restart`")
    paid_minutes: Number = Field(description="of the block, whatever its number of instances")
    served_share: Number = Field(description="served_minutes / paid_minutes, four places")
    minutes_lost: MinutesLost = Field(description="with served_minutes they add up to paid_minutes exactly")
    acceptance: tuple[CheckPart, ...]
    cost: CostPart
    residual: tuple[ResidualPart, ...] = Field(description="empty: proved that nothing is left")
    faults: tuple[FaultPart, ...]
    constants_used: tuple[ConstantPart, ...]
    versions: dict[str, str] = Field(description="by name, of what the session was run with")
    bill: tuple[BillLine, ...] = Field(default=(), exclude=True)
