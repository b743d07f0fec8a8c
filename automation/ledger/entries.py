"""The lines of a journal: one small shape for each thing that a session must remember.

Strict where we write (each is a checked model), lenient where we read back: fields that a newer version added are
passed over, and so are whole lines of a kind that this version does not know.
"""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from automation.ledger.record import CheckResult, OperationName, PhaseName, Residual
from automation.ledger.request import RentRequest
from automation.target import Mode
from planning.block import Block
from planning.costs import Usage, UsageKind
from planning.ranking import Offer


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    at: datetime
    """AWS's time when it was written."""


class Opened(_Line):
    """The first line of every journal."""

    kind: Literal["opened"] = "opened"
    session: str
    mode: Mode
    account_id: str
    request: RentRequest


class ImagePinned(_Line):
    """The digest of the model's image, as its registry named it before the purchase."""

    kind: Literal["image-pinned"] = "image-pinned"
    digest: str


class PurchaseIntended(_Line):
    """Written and on disk before the purchase call leaves."""

    kind: Literal["purchase-intended"] = "purchase-intended"
    offer: Offer


class PurchaseConfirmed(_Line):
    """The purchase has happened, as AWS's answer or a look-up shows."""

    kind: Literal["purchase-confirmed"] = "purchase-confirmed"
    offering_id: str
    reservation_id: str
    fee_usd: Decimal


class PurchaseDenied(_Line):
    """The purchase has not happened, and it is known that it has not."""

    kind: Literal["purchase-denied"] = "purchase-denied"
    offering_id: str
    why: str


class BlockReleased(_Line):
    """AWS has released the block because its payment failed: it took no money, and the block will never be."""

    kind: Literal["block-released"] = "block-released"
    reservation_id: str


class BlockKnown(_Line):
    """What the session runs on."""

    kind: Literal["block-known"] = "block-known"
    block: Block


class PhaseBegan(_Line):
    """A new phase; the one before ends with it."""

    kind: Literal["phase-began"] = "phase-began"
    phase: PhaseName


class OperationStarted(_Line):
    """A detached child runs."""

    kind: Literal["operation-started"] = "operation-started"
    number: int
    name: OperationName
    pid: int
    process_started: float


class OperationInterrupted(_Line):
    """The child was asked, once, to stop after what it is doing."""

    kind: Literal["operation-interrupted"] = "operation-interrupted"
    number: int


class OperationEnded(_Line):
    """The child is gone. `exit_code` None: it left no word, so it was killed."""

    kind: Literal["operation-ended"] = "operation-ended"
    number: int
    exit_code: int | None


class NodesRaised(_Line):
    """The Auto Scaling group was told to run the block's instances."""

    kind: Literal["nodes-raised"] = "nodes-raised"
    desired: int


class DrainAsked(_Line):
    """The Auto Scaling group was told to shrink to 0."""

    kind: Literal["drain-asked"] = "drain-asked"


class StartupMarked(_Line):
    """A start-up phase ended at `ended`, by AWS's or Kubernetes' own timestamp."""

    kind: Literal["startup-marked"] = "startup-marked"
    phase: str
    ended: datetime


class Accepted(_Line):
    """One run of the acceptance, good or bad."""

    kind: Literal["accepted"] = "accepted"
    checks: tuple[CheckResult, ...]


class EndpointLost(_Line):
    """An accepted endpoint was away from `since` until `back`, as a later look shows; `back` None: it still is."""

    kind: Literal["endpoint-lost"] = "endpoint-lost"
    since: datetime
    back: datetime | None


class UsageStarted(_Line):
    """Something that bills was seen for the first time."""

    kind: Literal["usage-started"] = "usage-started"
    usage: Usage


class UsageEnded(_Line):
    """It bills no more since `ended`."""

    kind: Literal["usage-ended"] = "usage-ended"
    usage_kind: UsageKind
    resource_id: str
    ended: datetime


class Swept(_Line):
    """One sweep and all that it found."""

    kind: Literal["swept"] = "swept"
    residual: tuple[Residual, ...]


class FaultSeen(_Line):
    """Something went wrong."""

    kind: Literal["fault-seen"] = "fault-seen"
    what: str


class EndAsked(_Line):
    """The session ends before its time. `gave_up`: by a rule, because it cannot go on; else somebody asked."""

    kind: Literal["end-asked"] = "end-asked"
    reason: str
    gave_up: bool = False


class Reopened(_Line):
    """An ended session is taken up again, to be destroyed and swept once more."""

    kind: Literal["reopened"] = "reopened"


class Closed(_Line):
    """The last line: how it ended. "ok" only when the sweep found nothing."""

    kind: Literal["closed"] = "closed"
    outcome: str


Entry = Annotated[
    Opened
    | ImagePinned
    | PurchaseIntended
    | PurchaseConfirmed
    | PurchaseDenied
    | BlockReleased
    | BlockKnown
    | PhaseBegan
    | OperationStarted
    | OperationInterrupted
    | OperationEnded
    | NodesRaised
    | DrainAsked
    | StartupMarked
    | Accepted
    | EndpointLost
    | UsageStarted
    | UsageEnded
    | Swept
    | FaultSeen
    | EndAsked
    | Reopened
    | Closed,
    Field(discriminator="kind"),
]
ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)
