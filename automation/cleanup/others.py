"""Deletes what others made in the session's VPC, while the engine destroys the stack.

EC2 refuses to delete a subnet or a VPC that holds a load balancer or a network interface, and the AWS provider then
retries for up to 20 minutes for each. Controllers in the cluster create such things, and some can be deleted only after
the cluster. So the account is asked again and again beside the engine, and the engine's next retry succeeds.
"""

import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress

from ..errors import RentblockError
from ..target import Target
from .delete import HOLD_A_NETWORK, delete
from .sweep import sweep

# A pass is about 25 calls. The provider's own retries are at most 10 s apart.
_PASS_S = 10.0


@contextmanager
def others_deleted(target: Target, session: str, own: Set[str], *, every_s: float = _PASS_S) -> Iterator[None]:
    """Until the block ends, delete what holds the session's network and is not among `own`, the ids of the stack."""
    done = threading.Event()

    def run() -> None:
        while True:
            # If AWS does not answer, the next pass asks again, and so does the sweep after the destroy.
            with suppress(RentblockError):
                seen = sweep(target, session, session)
                # The stack's own stay in the list: what waits for them still has to wait.
                delete(target, seen, HOLD_A_NETWORK, spare=own)
            if done.wait(every_s):
                return

    thread = threading.Thread(target=run, name="others", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
