"""The Target of a session inside a simulated world: the same shape as the real one, with the world's clock."""

import os
import time
from datetime import datetime
from pathlib import Path

import boto3

from automation.clock import RunningOperation
from automation.target import Target
from rehearsal.control import WorldAddress
from rehearsal.environment import WORLD_FILE

_LOOK_EVERY_S = 0.02


class WorldClock:
    """Virtual time: waiting makes it pass."""

    def __init__(self, address: WorldAddress) -> None:
        self._address = address

    def now(self) -> datetime:
        """The virtual instant, after the time that engine operations and model requests have taken since."""
        return self._instant("GET", "/now")

    def wait(self, until: datetime, operation: RunningOperation | None = None) -> None:
        """Let virtual time pass until `until`.

        While an engine operation runs virtual time stands still; when it has ended the world jumps by what it took.
        So a wait that begins while one runs returns when it has ended, whatever `until` says.
        """
        if operation is None:
            self._instant("POST", "/advance", until=until.isoformat())
            return
        while not operation.ended():
            time.sleep(_LOOK_EVERY_S)
        self.now()

    def _instant(self, method: str, path: str, **body: str) -> datetime:
        answer = self._address.ask("GET" if method == "GET" else "POST", path, **body)
        if not isinstance(answer, dict):
            raise TypeError(f"{path} answered {answer!r}")
        return datetime.fromisoformat(answer["now"])


def inside_a_world() -> bool:
    """Whether this process was started by a rehearsal."""
    return WORLD_FILE in os.environ


def world_target() -> Target:
    """The world that this process was started in.

    Raises:
        WorldUnreachable: it has ended.
    """
    address = WorldAddress.read(Path(os.environ[WORLD_FILE]))
    return Target(
        mode="rehearsal",
        account_id=address.account_id,
        region=address.region,
        boto_session=boto3.Session(region_name=address.region),
        endpoint_url=address.endpoint_url,
        clock=WorldClock(address),
        home=Path(os.environ["RENTBLOCK_HOME"]),
        engine_environment={name: value for name, value in os.environ.items() if name.startswith("PULUMI_")},
        providers=address.providers,
        registry_mirror_url=address.registry_url,
    )
