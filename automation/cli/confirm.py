"""The two questions that stand before what cannot be undone. Only a typed answer counts, and only from a terminal."""

from rich.console import Console
from rich.prompt import Prompt
from rich.text import Text

from automation.cli.terminal import somebody_types
from automation.errors import Refused
from automation.ledger.request import RentRequest
from automation.market.purchase import Approval
from automation.session.begin import Approve, approve_exactly
from planning.ranking import Offer


def ask_for_the_fee(console: Console, request: RentRequest) -> Approve:
    """Ask for the fee, to be typed out; with `pay_usd` in the request nobody is asked."""
    if request.pay_usd is not None:
        return approve_exactly(request.pay_usd)

    def ask(offer: Offer) -> Approval | None:
        console.print(Text(sentence(offer, request)))
        if not _somebody_is_there(console):
            raise Refused(
                happened="Nobody is there to agree to the fee.",
                cost="Nothing was bought.",
                remedy=f"Give --yes-pay {offer.fee_usd} to agree to exactly this.",
            )
        answer = Prompt.ask(f"Type {offer.fee_usd} to agree, anything else to stop", console=console)
        agreed = answer.strip() == str(offer.fee_usd)
        return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd) if agreed else None

    return ask


def sentence(offer: Offer, request: RentRequest) -> str:
    """What is agreed to, in one sentence."""
    what = f"{offer.instance_count} x {offer.instance_type} in {offer.where},"
    when = f"from {offer.start:%Y-%m-%d %H:%M} to {offer.end:%Y-%m-%d %H:%M} UTC"
    if request.capacity == "on-demand":
        return f"On demand: {what} {when} costs about US${offer.fee_usd:,.2f}, billed by the second, beside the rest."
    return f"A block of {what} {when} costs US${offer.fee_usd:,.2f}, paid at once. It cannot be cancelled or changed."


def ask_to_end(console: Console, session: str, *, yes: bool) -> None:
    """Ask before a session is ended. Raises Refused for any answer but its id."""
    if yes:
        return
    console.print(
        Text(f"Session {session} will be drained, destroyed and swept. Nothing of its block's fee comes back.")
    )
    if _somebody_is_there(console) and Prompt.ask(f"Type {session} to end it", console=console).strip() == session:
        return
    raise Refused(
        happened="The end was not confirmed.", cost="Nothing was changed.", remedy="Give --yes, or type the id."
    )


def _somebody_is_there(console: Console) -> bool:
    return console.is_interactive and somebody_types()
