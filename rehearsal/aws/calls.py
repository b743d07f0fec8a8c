"""Every call that reached the simulated AWS, in its order: who asked for what, and what was the answer's status."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from moto.core.common_types import TYPE_RESPONSE
from moto.core.responses import ActionResult, BaseResponse

from rehearsal.aws.operations import Request, Undo, read, refuse
from rehearsal.delays import Refusal
from rehearsal.world import World

Principal = Literal["pulumi", "session", "other"]
"""Whose User-Agent it was: Pulumi's AWS provider, our session ("rentblock" in it), or anyone else."""

# The verbs by which AWS names what changes nothing.
_READS = re.compile(r"^(Describe|Get|List|Head|Search|Lookup|Query|Scan|Select|BatchGet|Simulate|AssumeRole|Decode)")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call. `parameters` are as boto3 names them; `mutating` says that the action can change something.

    A mutating call with a `status` of 400 or more was refused; a dry run is never mutating. `by` is the part of the
    product that called: provider, runner, purchase or sweep.
    """

    when: datetime
    principal: Principal
    service: str
    action: str
    region: str
    mutating: bool
    parameters: Mapping[str, object]
    status: int
    by: str = "other"

    @property
    def changed_something(self) -> bool:
        """Whether the cloud is another one after this call."""
        return self.mutating and self.status < 400


class CallLog:
    """The calls of one world."""

    def __init__(self, world: World, not_implemented: Refusal) -> None:
        self._world = world
        self._not_implemented = not_implemented
        self._calls: list[Call] = []
        self.answering = False
        """Whether a call is being answered at this moment: what happens now is that call's doing."""
        self.on_change: list[Callable[[Call], None]] = []
        """Told of each call that changed something, after it, with the world's lock held."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls so far."""
        with self._world.lock:
            return tuple(self._calls)

    def summary(self) -> str:
        """All actions as JSON: `action` (service:Action), `by` (provider, runner, purchase, sweep, other), `count`."""
        counts = Counter((f"{call.service}:{call.action}", call.by) for call in self.calls)
        rows = [{"action": action, "by": by, "count": count} for (action, by), count in sorted(counts.items())]
        return json.dumps(rows, indent=1) + "\n"

    def record(self) -> Undo:
        """Record every action that moto answers from now on; returns how to stop that."""
        original = BaseResponse.call_action

        def recorded(response: BaseResponse) -> TYPE_RESPONSE:
            request = read(response)
            self.answering = True
            try:
                answer = original(response)
            except NotImplementedError:
                # moto would answer an HTML page, which clients report as a broken parser.
                error = refuse(self._not_implemented, service=request.service, action=request.action)
                answer = response.serialized(ActionResult(error))
            finally:
                self.answering = False
            self._add(request, str(response.headers.get("User-Agent", "")), int(answer[0]))
            return answer

        BaseResponse.call_action = recorded  # type: ignore[method-assign, assignment]

        def undo() -> None:
            BaseResponse.call_action = original  # type: ignore[method-assign]

        return undo

    def _add(self, request: Request, user_agent: str, status: int) -> None:
        call = Call(
            when=self._world.now,
            principal=principal_of(user_agent),
            by=_part(user_agent),
            service=request.service,
            action=request.action,
            region=request.region,
            mutating=not _READS.match(request.action) and not request.flag("DryRun"),
            parameters=request.parameters,
            status=status,
        )
        self._calls.append(call)
        if call.changed_something:
            self._world.note("aws", service=call.service, action=call.action)
            for tell in self.on_change:
                tell(call)


def _part(user_agent: str) -> str:
    if principal_of(user_agent) == "pulumi":
        return "provider"
    named = re.search(r"rentblock/(\w+)", user_agent)
    return named[1] if named else "other"


def principal_of(user_agent: str) -> Principal:
    """Who sent a request. pulumi-aws has upstream's name in its User-Agent, or its own."""
    lowered = user_agent.lower()
    if "terraform-provider-aws" in lowered or "pulumi" in lowered:
        return "pulumi"
    return "session" if "rentblock" in lowered else "other"
