"""What the session says of itself, compared with what the simulated cloud counted and still holds.

The cloud's meter and inventory import nothing of the product; a disagreement is a fault of one of the two.
"""

from collections.abc import Sequence
from decimal import Decimal

from automation.accounts.schema import Report
from rehearsal.aws.inventory import Existing
from rehearsal.aws.meter import Bill


def disagreements(report: Report, bill: Bill, left: Sequence[Existing]) -> tuple[str, ...]:
    """One sentence for each thing in which report and cloud differ; none when the cloud bears the report out."""
    found = [
        _compare("purchases", len(report.purchases), bill.purchases),
        _compare("the block's fee", report.cost.block_usd, bill.block_usd),
        _compare("the cost outside the block", report.cost.outside_usd, bill.outside_usd),
        *(f"The cloud still holds {item.kind} {item.resource_id} in {item.region}." for item in left if _is_left(item)),
        *(f"The cloud still bills {line.kind} {line.resource_id}." for line in bill.lines if line.ended is None),
    ]
    return tuple(sentence for sentence in found if sentence)


def _is_left(item: Existing) -> bool:
    # A block can't be given back: it ends by itself.
    return item.kind != "capacity_block"


def _compare(what: str, said: Decimal | int | None, counted: Decimal | int) -> str | None:
    if said == counted:
        return None
    return f"The report says that {what} came to {said}; the simulated cloud counted {counted}."
