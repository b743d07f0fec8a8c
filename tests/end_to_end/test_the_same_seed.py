"""A rehearsal is its seed: the same one tells the same story, on a fast machine or a busy one, however parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.conftest import Wish

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Rehearsal, Rehearse, Seen

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

# Two rehearsals run at a time, so the ones that are not `loaded` disturb each other too.
AGAIN = [
    Wish(name=f"parallel-{many}{'-loaded' if loaded else ''}", arguments=("--parallel", many), loaded=loaded)
    for loaded in (False, True)
    for many in ("2", "64")
]


def test_the_same_seed_tells_the_same_story(default: Rehearsal, rehearse: Rehearse) -> None:
    """Five runs: with parallel 16, 2 and 64, and the last two once more on a machine that is busy."""
    for again in rehearse(*AGAIN):
        assert again.exit_code == 0, again.said
        assert again.seen.story == default.seen.story
        assert charges(again.seen) == charges(default.seen)
        assert account(again) == account(default)


def test_another_seed_tells_another_story(default: Rehearsal, cold: Rehearsal) -> None:
    # The scenarios differ in how long the engine starts. Until the model's pod is there, only the seed differs.
    assert until_the_pod(default.seen) != until_the_pod(cold.seen)


def charges(seen: Seen) -> list[tuple[object, ...]]:
    """The cloud's bill, without ids."""
    return sorted((line.kind, line.quantity, line.started, line.ended, line.usd) for line in seen.bill.lines)


def account(rehearsal: Rehearsal) -> dict[str, object]:
    """All that the report says, without the session's id, which is drawn anew each time."""
    return rehearsal.report.model_dump(exclude={"session"})


def until_the_pod(seen: Seen) -> list[tuple[object, ...]]:
    moments = seen.moments[: seen.moments.index(seen.first("pod_scheduled"))]
    return [(moment.when, moment.kind) for moment in moments if moment.kind != "aws"]
