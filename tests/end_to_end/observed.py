"""`rentblock`, watched from inside: `python -m tests.end_to_end.observed SEEN MOVES rehearse ...`.

It is the command itself. Before its world ends it writes to SEEN, as JSON, what the world has seen: `Seen` in
conftest.py reads it. MOVES is a JSON object: in "delays" and "prices" the factors by which constants of the simulator
are multiplied in this run, in "flaws" what is wrong with its model server.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from rehearsal import command
from rehearsal.delays import Constants, Prices, load_constants
from rehearsal.environment import shed_aws_settings

if TYPE_CHECKING:
    from rehearsal.supervisor import RunningWorld

OUTSIDE_PRICES = ("eks_cluster", "nat_gateway", "public_ipv4", "ebs_gp3", "ec2.m7i.large")
"""What bills beside the block's fee: for each of them the cloud makes its bill out once more with the price moved."""

MOVED = Decimal("1.2")


class Moves(TypedDict):
    delays: dict[str, str]
    prices: dict[str, str]
    flaws: list[str]


class Watch:
    """Notes, at each entry of the story, how many changes the audit log of the cluster holds by then.

    The audit log lives in real time and the story in virtual time: here the two meet.
    """

    def __init__(self, running: RunningWorld) -> None:
        self._running = running
        self._moments: list[dict[str, object]] = []
        note = running.world.note

        def noted(kind: str, **facts: str | int) -> None:
            moment = {"when": running.world.now, "kind": kind, "facts": facts, "audited": len(self._audited())}
            self._moments.append(moment)
            note(kind, **facts)

        vars(running.world)["note"] = noted

    def write(self, file: Path, prices: Prices) -> None:
        running = self._running
        journals = sorted(running.folder.rentblock_home.glob("sessions/*/journal.jsonl"))
        content = {
            "world_id": running.cluster.world_id,
            "folder": running.folder.root,
            "story": running.world.story_lines(),
            "moments": self._moments,
            "audit": [audited(json.loads(line)) for line in self._audited()],
            "calls": [asdict(call) for call in running.aws.calls],
            "bill": asdict(running.aws.meter.bill()),
            "moved_bills": {name: self._outside_usd(prices.scaled(name, MOVED)) for name in OUTSIDE_PRICES},
            "left": [asdict(item) for item in running.aws.inventory()],
            "journals": [journal.read_text(encoding="utf-8") for journal in journals],
        }
        file.write_text(json.dumps(content, default=str), encoding="utf-8")

    def _audited(self) -> list[bytes]:
        return self._running.cluster.audit_log.read_bytes().splitlines()

    def _outside_usd(self, prices: Prices) -> Decimal:
        meter = self._running.aws.meter
        own = vars(meter)["_prices"]
        vars(meter)["_prices"] = prices
        try:
            return meter.bill().outside_usd
        finally:
            vars(meter)["_prices"] = own


def audited(event: dict[str, Any]) -> dict[str, object]:
    about = event.get("objectRef", {})
    return {"verb": event["verb"], "resource": about.get("resource", ""), "user_agent": event.get("userAgent", "")}


def moved(moves: Moves) -> Constants:
    constants = load_constants()
    for name, factor in moves["delays"].items():
        constants = replace(constants, delays=constants.delays.scaled(name, Decimal(factor)))
    for name, factor in moves["prices"].items():
        constants = replace(constants, prices=constants.prices.scaled(name, Decimal(factor)))
    return constants


def end_with_parent() -> None:
    """Tests that are given up leave no rehearsal behind: as it does to a terminal that closes, it ends with them."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGHUP)

    threading.Thread(target=watch, daemon=True).start()


def main(seen: Path, moves: Moves) -> None:
    end_with_parent()
    constants = moved(moves)
    # As the command does it, which loads the simulated AWS only afterwards.
    shed_aws_settings(os.environ)
    from rehearsal import rehearse
    from rehearsal.model_server import Flaw
    from rehearsal.supervisor import running_world

    @contextlib.contextmanager
    def watched_world(*arguments: object, **options: object) -> Iterator[RunningWorld]:
        flaws = frozenset(Flaw(name) for name in moves["flaws"])
        with running_world(*arguments, **options, flaws=flaws) as running:  # type: ignore[arg-type]
            watch = Watch(running)
            yield running
            watch.write(seen, constants.prices)

    vars(rehearse).update(running_world=watched_world, load_constants=lambda: constants)
    command.main()


if __name__ == "__main__":
    seen, moves, *sys.argv[1:] = sys.argv[1:]
    main(Path(seen), json.loads(moves))
