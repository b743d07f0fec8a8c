"""The purchase of a Capacity Block: the only function of this project that spends money.

AWS's call knows no idempotency token, so a repeated call buys a second block, and no block can be cancelled. Hence: the
intent is on disk before the call, the call is made once and never retried, and AWS is looked at before it, and after an
answer that was lost, by the session's tag, which travels in the call itself.
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_PurchaseCapacityBlock.html
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from automation.aws_errors import error_code
from automation.errors import PurchaseFailed, PurchaseUnclear, Refused, RentblockError
from automation.ledger.entries import BlockKnown, PurchaseConfirmed, PurchaseDenied, PurchaseIntended
from automation.ledger.journal import Journal
from automation.ledger.record import PurchaseIntent, Record
from automation.market.reservations import NEVER, Reservation, by_session, parse
from automation.refusals import check_account, refuse_stand_ins
from automation.target import Target
from components.names import SESSION_TAG
from planning.block import Block
from planning.ranking import Offer

_NOT_BOUGHT = "Nothing was bought."
_LOOKS_AFTER = 6
_BETWEEN_LOOKS = timedelta(seconds=10)
# A reservation is there at once, in state payment-pending, though its payment may take half a day.
_SHOWS_UP_WITHIN = timedelta(hours=1)
# Answered with a server-side status, but before anything is done.
_THROTTLED = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException"})


@dataclass(frozen=True, kw_only=True)
class Approval:
    """What the user confirmed in writing: this offering at this fee, knowing that it cannot be cancelled."""

    offering_id: str
    fee_usd: Decimal


def buy(target: Target, offer: Offer, approval: Approval, journal: Journal, environ: Mapping[str, str]) -> Block:
    """Buy `offer` for the session of `journal`, or find that it has been bought already.

    Raises Refused by a guard, PurchaseFailed when AWS says no, PurchaseUnclear when it is not known what happened: the
    intent then stays in the journal, and the next call looks and does not buy.
    """
    record = journal.record()
    target = target.acting_as("purchase")
    refuse_stand_ins(target, environ)
    check_account(target)
    _check_approval(record, offer, approval)
    if record.purchases:
        raise Refused(happened=f"Session {record.session} has a block already.", remedy="Go on with that session.")
    if record.intent:
        block = settle(target, journal)
        if block is None:
            raise _unclear(record.intent)
        return block
    place = target.in_region(offer.region)
    found = _bought(place, record.session) or _buy_once(place, offer, record.session, journal)
    return _confirm(place, offer, found, journal)


def settle(target: Target, journal: Journal) -> Block | None:
    """Look whether an intended purchase has happened, and write down what is found; never buys.

    None: no intent is open (any more), so nothing has been bought. An intent is given up when AWS shows no
    reservation an hour later; before that this raises PurchaseUnclear.
    """
    record = journal.record()
    if record.intent is None:
        return record.block
    offer = record.intent.offer
    place = target.in_region(offer.region)
    found = _bought(place, record.session)
    if found:
        return _confirm(place, offer, found, journal)
    now = place.clock.now()
    if now - record.intent.intended_at < _SHOWS_UP_WITHIN:
        raise _unclear(record.intent)
    journal.write(PurchaseDenied(at=now, offering_id=offer.offering_id, why="AWS shows no such reservation"))
    return None


def _check_approval(record: Record, offer: Offer, approval: Approval) -> None:
    reasons = []
    cap = record.request.max_fee_usd
    if offer.currency != "USD":
        reasons.append(f"its fee is in {offer.currency}, and caps and approvals are in USD")
    if cap is not None and offer.fee_usd > cap:
        reasons.append(f"its fee of US${offer.fee_usd} is above the cap of US${cap}")
    if (approval.offering_id, approval.fee_usd) != (offer.offering_id, offer.fee_usd):
        reasons.append(
            f"US${approval.fee_usd} for {approval.offering_id} was approved, and it costs US${offer.fee_usd}"
        )
    if reasons:
        raise Refused(
            happened=f"Offering {offer.offering_id} is not bought: {'; '.join(reasons)}.",
            cost=_NOT_BOUGHT,
            remedy="Look at `rentblock offers` and approve the exact fee.",
        )


def _bought(place: Target, session: str) -> Reservation | None:
    """What the session already holds in AWS; one whose payment failed holds nothing."""
    return next((found for found in by_session(place, session) if found.state not in NEVER), None)


def _buy_once(place: Target, offer: Offer, session: str, journal: Journal) -> Reservation:
    now = place.clock.now()
    intent = PurchaseIntent(offer=offer, intended_at=now)
    journal.write(PurchaseIntended(at=now, offer=offer))
    found = None
    try:
        found = _call(place, offer, session)
    except (ClientError, BotoCoreError, HTTPClientError) as error:
        if _surely_not_bought(error):
            journal.write(PurchaseDenied(at=place.clock.now(), offering_id=offer.offering_id, why=str(error)))
            raise PurchaseFailed(
                happened=f"AWS refused the purchase of {offer.offering_id}: {error}",
                cost=_NOT_BOUGHT,
                remedy="Offers last minutes only: look at `rentblock offers` again, then rent.",
            ) from error
        # Else the answer is lost, and the purchase may have happened: AWS is asked, not asked again to sell.
    found = found or _look_after(place, session)
    if found is None:
        raise _unclear(intent)
    return found


def _call(place: Target, offer: Offer, session: str) -> Reservation | None:
    """What AWS says that it has sold: an own look could come too early for it. None: the answer does not say."""
    answer = place.client("ec2", total_max_attempts=1).purchase_capacity_block(
        CapacityBlockOfferingId=offer.offering_id,
        InstancePlatform="Linux/UNIX",
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": [{"Key": SESSION_TAG, "Value": session}]}],
    )
    try:
        sold = parse(answer["CapacityReservation"])
    except KeyError:
        return None
    return None if sold.state in NEVER else sold


def _surely_not_bought(error: Exception) -> bool:
    if not isinstance(error, ClientError):
        return False
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return 400 <= status < 500 or error_code(error) in _THROTTLED


def _look_after(place: Target, session: str) -> Reservation | None:
    """A reservation shows up within seconds of its purchase; an error while looking is only one look less."""
    for look in range(_LOOKS_AFTER):
        if look:
            place.clock.wait(place.clock.now() + _BETWEEN_LOOKS)
        try:
            found = _bought(place, session)
        except RentblockError:
            continue
        if found:
            return found
    return None


def _confirm(place: Target, offer: Offer, found: Reservation, journal: Journal) -> Block:
    now = place.clock.now()
    block = replace(
        offer.bought_as(found.reservation_id),
        availability_zone=found.availability_zone or offer.availability_zone,
        availability_zone_id=found.availability_zone_id or offer.availability_zone_id,
        start=found.start or offer.start,
        end=found.end or offer.end,
    )
    # The confirmation comes last, since it closes the intent: a session that ended between the two lines looks again.
    journal.write(BlockKnown(at=now, block=block))
    journal.write(
        PurchaseConfirmed(
            at=now, offering_id=offer.offering_id, reservation_id=found.reservation_id, fee_usd=offer.fee_usd
        )
    )
    return block


def _unclear(intent: PurchaseIntent) -> PurchaseUnclear:
    return PurchaseUnclear(
        happened=f"It is not known whether {intent.offer.offering_id} in {intent.offer.region} has been bought.",
        cost=f"Perhaps US${intent.offer.fee_usd}, which cannot be cancelled. Nothing more is bought for this session.",
        remedy="Look again in some minutes with `rentblock status`; it never buys. EC2 shows it too.",
    )
