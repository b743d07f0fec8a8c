"""The plan of a session: its block, every moment and the start-up budget."""

from dataclasses import dataclass

from automation.errors import InvalidRequest
from automation.ledger.record import Record
from automation.ledger.request import RentRequest
from planning.block import Block, Moments, moments
from planning.budget import StartupBudget, startup_budget
from planning.catalogue import Catalogue, InstanceType, UnknownName


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a session on a block means in minutes. Computed anew at each look, so that a longer block is noticed."""

    block: Block
    instance: InstanceType
    moments: Moments
    budget: StartupBudget


def budget_of(request: RentRequest, catalogue: Catalogue) -> StartupBudget:
    """How long the requested model takes to start on the requested machine. Raises InvalidRequest for unknown names."""
    try:
        return startup_budget(
            catalogue.model(request.model),
            catalogue.instance_type(request.instance_type),
            weights=request.weights,
            caches=request.caches,
        )
    except UnknownName as unknown:
        raise InvalidRequest(happened=f"{unknown}.", remedy="Choose one of those.") from unknown


def plan_of(record: Record, catalogue: Catalogue) -> Plan:
    """The plan of a session that has its block. Raises InvalidRequest when it has none, or the block is too short."""
    block = record.block
    if block is None:
        raise InvalidRequest(happened=f"Session {record.session} has no block.", remedy="Rent one.")
    budget = budget_of(record.request, catalogue)
    try:
        instants = moments(block.start, block.end, budget)
    except ValueError as error:
        raise InvalidRequest(happened=f"The block is of no use: {error}.", remedy="Rent a longer one.") from error
    return Plan(
        block=block,
        instance=catalogue.instance_type(record.request.instance_type),
        moments=instants,
        budget=budget,
    )
