"""Everything that can end a session or a command badly: one tree, one exit code for each kind.

Each error says what happened, what it costs, and what to do now; the command prints these three and no traceback.
Errors of libraries are translated in one place each: botocore in `aws_errors.py`, Pulumi in `session/child.py`.
"""

import errno
from enum import IntEnum
from typing import ClassVar

NOTHING = "It costs nothing."


class ExitCode(IntEnum):
    """Exit codes of every verb of `rentblock`; `rentblock --help` prints them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NO_OFFER = 4
    AWS_UNREACHABLE = 5
    CREDENTIALS = 6
    AWS_SAYS_NO = 7
    PURCHASE = 8
    ENGINE = 9
    CLUSTER = 10
    ACCEPTANCE = 11
    LEFT_BEHIND = 12
    MACHINE = 13
    UNKNOWN_SESSION = 14
    LACKING = 15
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed in a way that has no code of its own",
    ExitCode.USAGE: "the command line or the request is wrong; nothing was changed",
    ExitCode.REFUSED: "a guard refused; nothing was changed",
    ExitCode.NO_OFFER: "AWS offers no such block within the caps",
    ExitCode.AWS_UNREACHABLE: "AWS did not answer",
    ExitCode.CREDENTIALS: "no usable AWS credentials",
    ExitCode.AWS_SAYS_NO: "AWS answered with an error",
    ExitCode.PURCHASE: "a purchase failed, or it is not known whether it happened",
    ExitCode.ENGINE: "the Pulumi engine failed",
    ExitCode.CLUSTER: "the Kubernetes cluster did not do what was asked",
    ExitCode.ACCEPTANCE: "the endpoint is up but did not pass its acceptance",
    ExitCode.LEFT_BEHIND: "the session has ended and something that costs money is left",
    ExitCode.MACHINE: "this machine is in the way: full disk, port in use, file not writable",
    ExitCode.UNKNOWN_SESSION: "there is no such session on this machine",
    ExitCode.LACKING: "something that a session needs is missing; see doctor",
    ExitCode.INTERRUPTED: "interrupted; run the same verb again to go on",
}


class RentblockError(Exception):
    """Base of the tree: what `happened`, what it `cost`s, the `remedy`; each is one sentence."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, *, happened: str, cost: str = NOTHING, remedy: str) -> None:
        super().__init__(f"{happened} {cost} {remedy}")
        self.happened = happened
        self.cost = cost
        self.remedy = remedy


class Refused(RentblockError):
    """A guard said no before anything was changed."""

    exit_code = ExitCode.REFUSED


class InvalidRequest(RentblockError):
    """What was asked for cannot be right."""

    exit_code = ExitCode.USAGE


class PinsMissing(RentblockError):
    """AWS does not have a version that the program pins: a stack that could not be made is not paid for."""

    exit_code = ExitCode.LACKING


class NoOffer(RentblockError):
    """AWS sells no such block, or none within the caps."""

    exit_code = ExitCode.NO_OFFER


class AwsUnreachable(RentblockError):
    """No answer from AWS: network, name resolution, proxy, time-out."""

    exit_code = ExitCode.AWS_UNREACHABLE


class CredentialsMissing(RentblockError):
    """There are no credentials, or AWS does not accept them."""

    exit_code = ExitCode.CREDENTIALS


class AwsSaysNo(RentblockError):
    """AWS answered a call with an error. `code` is AWS's own error code, for example `UnauthorizedOperation`."""

    exit_code = ExitCode.AWS_SAYS_NO

    def __init__(self, *, happened: str, code: str, cost: str = NOTHING, remedy: str) -> None:
        super().__init__(happened=happened, cost=cost, remedy=remedy)
        self.code = code


class PurchaseFailed(RentblockError):
    """AWS took no money: the purchase was refused, or its payment failed."""

    exit_code = ExitCode.PURCHASE


class PurchaseUnclear(RentblockError):
    """Money may have been spent and AWS does not show the reservation yet. Nothing is bought while this stands."""

    exit_code = ExitCode.PURCHASE


class EngineFailed(RentblockError):
    """A `pulumi` operation ended badly; `happened` carries the engine's own diagnostics."""

    exit_code = ExitCode.ENGINE


class ClusterFailed(RentblockError):
    """The Kubernetes API did not answer, or lacks what the stack should have put there."""

    exit_code = ExitCode.CLUSTER


class AcceptanceFailed(RentblockError):
    """The endpoint answers, but at least one acceptance check is false."""

    exit_code = ExitCode.ACCEPTANCE


class LeftBehind(RentblockError):
    """The sweep found something of this session that still exists."""

    exit_code = ExitCode.LEFT_BEHIND


class MachineInTheWay(RentblockError):
    """Full disk, port in use, a file that may not be written: this machine, not AWS."""

    exit_code = ExitCode.MACHINE


class UnknownSession(RentblockError):
    """No session of that name in `$RENTBLOCK_HOME`."""

    exit_code = ExitCode.UNKNOWN_SESSION


_MACHINE_REMEDIES = {
    errno.ENOSPC: "Free some space, then run the same verb again.",
    errno.EDQUOT: "Free some of your quota, then run the same verb again.",
    errno.EADDRINUSE: "End what listens there, then run the same verb again.",
    errno.EACCES: "Make it writable for you, or point RENTBLOCK_HOME elsewhere.",
    errno.EROFS: "Point RENTBLOCK_HOME to a place that can be written.",
}


_GOES_ON = "What runs in AWS goes on and is billed; the journal holds all that was written before."


def machine_error(error: OSError, cost: str = _GOES_ON) -> MachineInTheWay:
    """One clear sentence for what the operating system refused."""
    # Of a renaming both names are told; people know the one that was to be.
    refused = error.filename2 or error.filename
    where = f" ({refused})" if refused else ""
    remedy = _MACHINE_REMEDIES.get(error.errno or 0, "Repair that, then run the same verb again.")
    return MachineInTheWay(
        happened=f"This machine refused: {error.strerror or error}{where}.",
        cost=cost,
        remedy=remedy,
    )
