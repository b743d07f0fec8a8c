"""The session of `rentblock rehearse`: a day of the scenario's model on one block, bought, served and ended.

It runs as a child of the world, through the same Python entry that a user's own script would take. One thing is other:
a paid block is worth trying for to its end, and a rehearsal is not. A program that does not come up is what it is there
to tell.
"""

import os
import sys
from ipaddress import IPv4Network

import typer
from rich.console import Console

from automation.cli.display import display_on
from automation.cli.failures import told
from automation.errors import ExitCode
from automation.ledger.folder import session_folder
from automation.ledger.record import Record
from automation.ledger.request import RentRequest
from automation.market.purchase import Approval
from automation.session.display import Display
from automation.session.rent import end, run_to_end
from planning.ranking import Offer
from rehearsal.delays import Scenario
from rehearsal.target import world_target

# An address range that is reserved for documentation: nobody's (RFC 5737).
_NOBODY = IPv4Network("203.0.113.7/32")
UP_TRIES = 3
_STAGED = "s3://rehearsal-weights/kimi-k3"


def request_of(scenario: Scenario, *, parallel: int) -> RentRequest:
    """What the rehearsed user asks for."""
    return RentRequest(
        hours=24,
        endpoint_cidrs=(_NOBODY,),
        weights_uri=_STAGED if scenario.weights == "staged" else None,
        caches=scenario.caches,
        parallel=parallel,
    )


def main(request: str) -> int:
    """Run the session of `request`, which is a RentRequest as JSON, to its end. Gives the exit code."""
    console = Console(stderr=True)
    try:
        with told(console), display_on(console) as display:
            _run(RentRequest.model_validate_json(request), display)
    except typer.Exit as ended:
        return ended.exit_code
    return ExitCode.OK


def _run(request: RentRequest, display: Display) -> None:
    target = world_target()
    try:
        record = run_to_end(request, target, approve=_approve, display=display, until=does_not_come_up)
        if record.outcome is None:
            end(
                target,
                session_folder(target.home, record.session),
                display,
                f"the stack did not come up in {UP_TRIES} tries of a rehearsal",
            )
    except KeyboardInterrupt as interrupt:
        # Of a rehearsal nothing goes on, unlike of a session in AWS: its world ends with it.
        raise typer.Exit(ExitCode.INTERRUPTED) from interrupt


def does_not_come_up(record: Record) -> bool:
    """Whether every try so far has failed, and they were enough to call it the program's fault."""
    return record.end_asked is None and len(record.tries("up")) >= UP_TRIES


def _approve(offer: Offer) -> Approval:
    # A rehearsal's money is nobody's.
    return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd)


if __name__ == "__main__":
    code = main(sys.argv[1])
    # Threads of port-forwards and gRPC hold nothing that is worth waiting for.
    sys.stdout.flush()
    os._exit(code)
