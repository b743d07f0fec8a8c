"""A user's own script: rents twice, talks to the model, and leaves the second session by an error of its own.

Prints, as JSON, what it got.
"""

from __future__ import annotations

import json
import subprocess

from automation import rent
from automation.market.purchase import Approval
from planning.ranking import Offer
from rehearsal.delays import load_scenario
from rehearsal.straight_way import request_of
from rehearsal.target import world_target

ERROR = "the script's own error"

told: list[dict[str, object]] = []


def approve(offer: Offer) -> Approval:
    return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd)


def talk(*, fails: bool) -> None:
    request = request_of(load_scenario("default"), parallel=16)
    with rent(request, target=world_target(), approve=approve) as session:
        answer = session.openai().chat.completions.create(
            model=session.served_model, messages=[{"role": "user", "content": "What is the capital of Peru?"}]
        )
        status = subprocess.run(["rentblock", "status", "--json"], capture_output=True, text=True, timeout=120)
        told.append({"session": session.id, "answer": answer.choices[0].message.content, "status": status.stdout})
        if fails:
            raise ValueError(ERROR)


if __name__ == "__main__":
    talk(fails=False)
    try:
        talk(fails=True)
    except ValueError as error:
        told[-1]["error"] = str(error)
    print(json.dumps(told))
