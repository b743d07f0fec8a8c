"""The product around the Pulumi program: find a block, buy it, run a session on it, prove that nothing is left.

errors.py       every error and its exit code      aws_errors.py   botocore's errors become ours
target.py       where a session runs               clock.py        AWS's own time
refusals.py     stand-ins and the wrong account    market/         offers, reservations, the one purchase
ledger/         what a session has written down    session/        the reconciler
serving/        start-up, endpoint, acceptance
cleanup/        the sweep                          accounts/       minutes, money, the report
cli/            the verbs of `rentblock`           pins.py         whether AWS and registries have what it pins
registry.py     what an image registry answers
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from automation.ledger.request import RentRequest as RentRequest
    from automation.session.rent import rent as rent

# The front door. Its names are loaded when they are asked for, so that a process that needs one small module of this
# package does not load boto3 and all the rest.
_FRONT_DOOR = {"rent": "automation.session.rent", "RentRequest": "automation.ledger.request"}


def __getattr__(name: str) -> object:
    if name not in _FRONT_DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_FRONT_DOOR[name]), name)
