"""The clock of a session: AWS's own time, read from the Date header of its answers.

A laptop's clock may be wrong, and every minute of a block is paid: so moments are compared with AWS's time only. A Date
header is whole seconds; between two answers a clock of this machine that only goes forward carries the time on.
"""

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Protocol

import boto3
from botocore.awsrequest import AWSResponse

from automation.errors import AwsUnreachable

# Linux's clock that goes on while the machine sleeps: with the other one a laptop that wakes up after the start of its
# block would wait on as if no time had passed. On macOS CLOCK_MONOTONIC goes on.
_FORWARD: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_STEP = timedelta(seconds=0.5)
# A header is cut to the second and then travels, so an answer that puts AWS less than this behind our belief agrees.
_AGREES = timedelta(seconds=3)


class RunningOperation(Protocol):
    """An operation that runs beside the session's loop."""

    def ended(self) -> bool:
        """Whether the operation is over, well or badly."""
        ...


class Clock(Protocol):
    """Time as AWS sees it, and waiting for it to pass."""

    def now(self) -> datetime:
        """AWS's time, aware, UTC."""
        ...

    def wait(self, until: datetime, operation: RunningOperation | None = None) -> None:
        """Return at `until`, or sooner when the operation has ended."""
        ...


class AwsClock:
    """The real one. Make it before the first client: botocore copies a session's handlers into each new client."""

    def __init__(self, session: boto3.Session) -> None:
        self._offset: timedelta | None = None
        session.events.register("after-call", self._heard, unique_id="rent-the-block-clock")

    def now(self) -> datetime:
        """AWS's time. Raises AwsUnreachable before AWS has answered anything."""
        if self._offset is None:
            raise AwsUnreachable(
                happened="AWS has not answered yet, so its time is not known.",
                remedy="Check the network, then try again.",
            )
        return _monotonic() + self._offset

    def wait(self, until: datetime, operation: RunningOperation | None = None) -> None:
        """Sleep in small steps, so that Ctrl-C and the end of the operation are noticed at once."""
        while (left := until - self.now()) > timedelta(0) and not (operation and operation.ended()):
            time.sleep(min(left, _STEP).total_seconds())

    def _heard(self, http_response: AWSResponse, **_: object) -> None:
        header = http_response.headers.get("date")
        if header is None:
            return
        said = parsedate_to_datetime(header).astimezone(UTC) - _monotonic()
        # A header never runs ahead of AWS's clock, so the largest offset heard is the best one; but a much smaller one
        # means that our own clock ran ahead.
        if self._offset is None or said > self._offset or self._offset - said > _AGREES:
            self._offset = said


def _monotonic() -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=time.clock_gettime(_FORWARD))
