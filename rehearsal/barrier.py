"""Real Kubernetes as a barrier: virtual time stands still while it works, for a while that has a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Barrier:
    """How long a step of the real control plane may take. One takes well under a second on an idle machine."""

    limit_s: float = 30.0

    def passed(self, condition: Callable[[], bool]) -> bool:
        """Whether `condition` came true within the limit, in real time."""
        deadline = time.monotonic() + self.limit_s
        while not (holds := condition()) and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)
        return holds
