"""The beginning of a session: find an offer, have it approved, buy it once. Everything here can still be refused."""

import os
import secrets
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from automation.errors import InvalidRequest, Refused, RentblockError, machine_error
from automation.ledger.entries import BlockKnown, Closed, EndAsked, ImagePinned, Opened, PhaseBegan
from automation.ledger.folder import SessionFolder, session_folder, sessions
from automation.ledger.journal import Journal, alone
from automation.ledger.lock import held
from automation.ledger.record import Record
from automation.ledger.request import RentRequest, catalogue_problems, invalid
from automation.market import reservations
from automation.market.purchase import Approval, buy, settle
from automation.pins import image_digest, not_known, require_pins
from automation.refusals import check_account, refuse_stand_ins
from automation.session.display import Display, Quiet
from automation.session.plan import budget_of
from automation.session.shortlist import ON_DEMAND, best_offer, on_demand, require_weights, search
from automation.target import Target
from planning.block import Block
from planning.catalogue import load
from planning.costs import useful_hours
from planning.ranking import Offer

Approve = Callable[[Offer], Approval | None]
"""Asks whoever pays. The answer names the exact fee; None is no."""

# The program wants the reservation's id; before the purchase there is only its form.
_NOT_BOUGHT_YET = "cr-" + "0" * 17

_SUFFIX = string.ascii_lowercase + string.digits


def begin(request: RentRequest, target: Target, approve: Approve, display: Display | None = None) -> SessionFolder:
    """A session with its block, in its folder; `display` is told what could not be verified beforehand.

    Raises InvalidRequest, Refused, PinsMissing, NoOffer, PurchaseFailed or PurchaseUnclear; all but the last have
    spent nothing.
    """
    show = display or Quiet()
    refuse_stand_ins(target, os.environ)
    check_account(target)
    check_request(request)
    with _one_at_a_time(target.home):
        _nothing_left_open(request, target)
        _require_engine(target, show)
        if request.reservation_id:
            block = _bought_elsewhere(request, target, show)
            require_weights(request, target, block.region)
            digest = _require_all(target, request, block, show)
            return _open(request, target, block, digest)
        if request.capacity == "on-demand":
            offer = on_demand(request, target)
            block = replace(offer.bought_as(ON_DEMAND), offering_id=None, fee_usd=Decimal(0))
            digest = _require_all(target, request, block, show)
            _approved(approve, offer)
            return _open(request, target, block, digest)
        offer = best_offer(search(request, target))
        digest = _require_all(target, request, offer.bought_as(_NOT_BOUGHT_YET), show)
        return _buy(request, target, offer, _approved(approve, offer), digest)


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    """Let one process of this machine look for what it has and buy: two that looked at once would both find nothing,
    and both buy. The kernel gives the lock back when its holder dies."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise machine_error(error) from error
    taken = Refused(
        happened="Another rentblock of this machine is about to rent.",
        cost="Nothing was bought by this one.",
        remedy="Wait until it has, or has stopped; then look with `rentblock status` and ask again.",
    )
    with held(home / "buying.lock", lambda signed: taken):
        yield


def check_request(request: RentRequest) -> None:
    """Raise InvalidRequest with all that no market can change: see `catalogue_problems`."""
    bought = request.capacity == "block" and not request.reservation_id
    problems = catalogue_problems(
        request.model,
        request.instance_type,
        request.regions,
        hours_to_buy=request.hours if bought else None,
    )
    if found := dict(problems):
        raise invalid(found)


def approve_exactly(pay_usd: Decimal | None) -> Approve:
    """For programs: approves the fee that was agreed to beforehand, to the cent. Raises Refused for any other."""

    def approve(offer: Offer) -> Approval:
        if pay_usd != offer.fee_usd:
            raise Refused(
                happened=f"The best offer costs US${offer.fee_usd}, and what is agreed to is {pay_usd or 'nothing'}.",
                cost="Nothing was bought.",
                remedy=f"Agree to exactly {offer.fee_usd} (`pay_usd`, `--yes-pay`); a block can never be cancelled.",
            )
        return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd)

    return approve


def _require_engine(target: Target, display: Display) -> None:
    """Raise MachineInTheWay if this machine could not run a real session's engine. A rehearsal brings its own."""
    if target.mode != "aws":
        return
    # Imported here: it loads Pulumi, which the verbs that only look do not need.
    from automation.session.engine import install_plugins
    from automation.session.preflight import require_programs

    require_programs(target)
    display.say(target.clock.now(), "Provider plugins of the engine are looked for; what lacks is downloaded once.")
    install_plugins(target.engine_environment)


def _require_all(target: Target, request: RentRequest, block: Block, display: Display) -> str | None:
    """Raise InvalidRequest or PinsMissing if a stack on `block` could not be made; say what could not be checked.

    Gives the digest of the model's image, None if its registry did not name it."""
    from automation.session.preflight import image_warnings, require_a_stack, require_system_nodes, warnings

    for warning in warnings(target, request):
        display.say(target.clock.now(), warning)
    require_a_stack(target, request, block)
    require_system_nodes(target, block)
    judgements = require_pins(target.in_region(block.region), request.model, request.image_registry_prefix)
    for warning in image_warnings(judgements, block):
        display.say(target.clock.now(), warning)
    if unknown := not_known(judgements):
        display.say(target.clock.now(), unknown)
    return image_digest(judgements)


def _approved(approve: Approve, offer: Offer) -> Approval:
    approval = approve(offer)
    if approval is None:
        raise Refused(happened="The fee was not approved.", cost="Nothing was bought.", remedy="Ask again any time.")
    return approval


def _nothing_left_open(request: RentRequest, target: Target) -> None:
    """Raise Refused when a session of this machine has what is asked for, PurchaseUnclear when it may have bought it.

    An intended purchase is looked after first. And a fee that is agreed to beforehand is agreed to once: a program that
    is started again after a crash has the same wish."""
    for folder in sessions(target.home):
        journal = Journal(folder.journal)
        record = journal.record()
        if not record.belongs_to(target):
            continue
        block = record.block
        if record.outcome is None and block and block.reservation_id == request.reservation_id:
            raise Refused(
                happened=f"Session {record.session} runs on {block.reservation_id}, and is not over.",
                cost="Nothing was bought.",
                remedy=f"Go on with it: `rentblock rent --session {record.session}`.",
            )
        paid = record.purchases or record.request.capacity == "on-demand"
        if request.pay_usd is not None and record.outcome is None and paid and _same(record, request):
            raise Refused(
                happened=f"Session {record.session} pays for such a request already, and is not over.",
                cost="Nothing more was bought.",
                remedy=f"Go on: `rentblock rent --session {record.session}`; for one more, agree when asked.",
            )
        if record.intent and settle(target, journal):
            raise Refused(
                happened=f"Session {record.session} has bought {record.intent.offer.offering_id}, and nobody runs it.",
                cost="Nothing more was bought.",
                remedy=f"Go on with it: `rentblock rent --session {record.session}`.",
            )


def _same(record: Record, request: RentRequest) -> bool:
    """Whether a request wants what a session has: caps, regions and the like do not make it another wish."""
    wanted, has = (
        (wish.model, wish.instance_type, wish.instance_count, wish.hours, wish.capacity)
        for wish in (request, record.request)
    )
    return wanted == has


def _buy(request: RentRequest, target: Target, offer: Offer, approval: Approval, digest: str | None) -> SessionFolder:
    folder, journal = _new(request, target, offer.start, digest)
    journal.write(PhaseBegan(at=target.clock.now(), phase="buy"))
    try:
        # Whoever would close the session as one without a block has to wait until it is known.
        with alone(folder):
            buy(target, offer, approval, journal, os.environ)
    except RentblockError as error:
        record = journal.record()
        # An open intent may have been paid for, whatever stopped the look after it: a full disk, a lost answer.
        if record.intent is None and record.block is None:
            now = target.clock.now()
            journal.write(EndAsked(at=now, reason=error.happened, gave_up=True))
            journal.write(Closed(at=now, outcome="nothing bought"))
        raise
    return folder


def _open(request: RentRequest, target: Target, block: Block, digest: str | None) -> SessionFolder:
    folder, journal = _new(request, target, block.start, digest)
    journal.write(BlockKnown(at=target.clock.now(), block=block))
    return folder


def _new(request: RentRequest, target: Target, start: datetime, digest: str | None) -> tuple[SessionFolder, Journal]:
    suffix = "".join(secrets.choice(_SUFFIX) for _ in range(4))
    folder = session_folder(target.home, f"rtb-{start:%Y%m%d}-{suffix}")
    folder.create()
    journal = Journal(folder.journal)
    journal.write(
        Opened(
            at=target.clock.now(),
            session=folder.session,
            mode=target.mode,
            account_id=target.account_id,
            request=request,
        )
    )
    if digest:
        journal.write(ImagePinned(at=target.clock.now(), digest=digest))
    return folder, journal


def _bought_elsewhere(request: RentRequest, target: Target, display: Display) -> Block:
    reservation_id = request.reservation_id or ""
    for region in request.regions or (target.region,):
        found = reservations.by_id(target.in_region(region), reservation_id)
        if found and found.start and found.end:
            if problems := dict(_mismatches(found, found.start, found.end, request)):
                raise invalid(problems)
            if found.session:
                # Whoever bought it may have lost its folder with its machine: this is the way to use it all the same.
                said = f"Session {found.session} bought {reservation_id}: if it still runs, both want its instances."
                display.say(target.clock.now(), said)
            return Block(
                reservation_id=reservation_id,
                offering_id=None,
                instance_type=found.instance_type,
                instance_count=found.instance_count or request.instance_count,
                region=region,
                availability_zone=found.availability_zone,
                availability_zone_id=found.availability_zone_id,
                start=found.start,
                end=found.end,
                fee_usd=request.reservation_fee_usd,
            )
    where = ", ".join(request.regions or (target.region,))
    raise InvalidRequest(
        happened=f"AWS shows no block {reservation_id} with a start and an end in {where}.",
        remedy="Name its region with --region.",
    )


def _mismatches(
    found: reservations.Reservation, start: datetime, end: datetime, request: RentRequest
) -> Iterator[tuple[str, str]]:
    """Why a block that was bought before does not do for a request, each with the field that says otherwise."""
    if found.state in reservations.NEVER | reservations.OVER:
        yield "reservation_id", f"{found.reservation_id} is {found.state}"
    elif not useful_hours(start, end, budget_of(request, load())):
        yield "reservation_id", f"{found.reservation_id} ends before its model could serve"
    if found.instance_type != request.instance_type:
        yield "instance_type", f"{found.reservation_id} holds {found.instance_type}, not {request.instance_type}"
    if found.instance_count not in (0, request.instance_count):
        yield "instance_count", f"{found.reservation_id} holds {found.instance_count}, not {request.instance_count}"
