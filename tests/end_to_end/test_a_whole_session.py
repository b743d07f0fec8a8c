"""What `rentblock rehearse` promises: a whole session goes well, and the simulated cloud says so too."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from automation.accounts.schema import Report
from automation.errors import ExitCode
from tests.end_to_end.conftest import Wish
from tests.end_to_end.observed import MOVED

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Change, Rehearsal, Rehearse

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

CHECKS = {"model_id", "chat", "reasoning", "streaming", "tool_call", "wrong_key", "no_key", "wrong_model"}
PULUMI = "pulumi-kubernetes/"


def test_a_session_goes_well(default: Rehearsal) -> None:
    assert default.report.outcome == "ok"
    assert default.report.faults == ()
    assert "meter agrees" in default.said


def test_a_session_buys_exactly_once(default: Rehearsal) -> None:
    assert len(default.report.purchases) == default.seen.bill.purchases == 1
    assert [call.action for call in default.seen.calls].count("PurchaseCapacityBlock") == 1


def test_nothing_is_left_when_a_session_is_over(default: Rehearsal) -> None:
    assert default.report.residual == ()
    # Nobody can give a block back: it ends by itself, half an hour after the session.
    assert [item.kind for item in default.seen.left] == ["capacity_block"]
    assert all(line.ended is not None for line in default.seen.bill.lines)


def test_a_session_serves_most_of_what_was_paid(default: Rehearsal) -> None:
    assert default.report.served_share >= Decimal("0.94")
    assert {check.check: check.ok for check in default.report.acceptance} == dict.fromkeys(CHECKS, True)


def test_the_minutes_add_up_to_those_that_were_paid(default: Rehearsal) -> None:
    report = default.report
    lost = sum(vars(report.minutes_lost).values(), Decimal(0))
    assert lost + report.served_minutes == report.paid_minutes == 24 * 60


def test_the_cloud_charges_what_the_report_says_to_the_cent(default: Rehearsal) -> None:
    cost, bill = default.report.cost, default.seen.bill
    assert (cost.block_usd, cost.outside_usd) == (bill.block_usd, bill.outside_usd)
    assert cost.outside_usd > 0


def test_the_report_has_its_shape_and_says_that_it_is_of_a_rehearsal(default: Rehearsal) -> None:
    assert Report.model_validate_json(default.report_json).mode == "rehearsal"
    assert "REHEARSAL" in default.page


def test_nothing_but_the_size_of_the_gpu_group_changes_on_paid_time(default: Rehearsal) -> None:
    """The call log from the block's start to the drain, both included."""
    block, [drain] = default.report.block, [phase for phase in default.report.phases if phase.name == "drain"]
    assert block is not None
    changes = [call for call in default.seen.calls if call.changed_something]
    paid = [call for call in changes if block.start <= call.when <= drain.started]
    assert [(call.action, call.parameters["DesiredCapacity"]) for call in paid] == [
        ("SetDesiredCapacity", 1),
        ("SetDesiredCapacity", 0),
    ]
    assert all(str(call.parameters["AutoScalingGroupName"]).startswith("eks-gpu-") for call in paid)
    assert any(call.principal == "pulumi" and call.when < block.start for call in changes)


def test_pulumi_changes_nothing_in_the_cluster_on_paid_time(default: Rehearsal) -> None:
    seen = default.seen
    start = seen.first("reservation", which="bought-1", state="active")
    drain = seen.last("aws", action="SetDesiredCapacity")
    before, paid = seen.audit[: start.audited], seen.audit[start.audited : drain.audited]
    assert by_pulumi(before)
    assert paid
    assert not by_pulumi(paid)


def by_pulumi(changes: tuple[Change, ...]) -> list[Change]:
    return [change for change in changes if change.user_agent.startswith(PULUMI)]


def test_cold_caches_cost_paid_minutes_and_the_session_still_goes_well(default: Rehearsal, cold: Rehearsal) -> None:
    assert cold.report.outcome == "ok"
    # Compiling and tuning takes the better part of an hour: facts of the scenario, in rehearsal/constants.toml.
    assert cold.report.minutes_lost.engine > default.report.minutes_lost.engine + 45
    assert cold.report.served_minutes < default.report.served_minutes - 45
    assert cold.report.cost.block_usd == default.report.cost.block_usd


def test_an_engine_that_dies_while_it_serves_costs_the_minutes_until_it_answers_again(crashed: Rehearsal) -> None:
    report, seen = crashed.report, crashed.seen
    died, ready = seen.first("container_ended", app="vllm").when, seen.last("pod_ready", app="vllm").when
    _, anew = [phase.ended for phase in report.phases if phase.name == "accept"]
    assert anew is not None
    # It counts again once it was accepted again, which a look of some seconds and the acceptance itself come before.
    assert ready < anew < ready + timedelta(minutes=1)
    minute = timedelta(minutes=1)
    assert float(report.minutes_lost.restart) == pytest.approx((anew - died) / minute, abs=0.02)
    [away] = [fault.what for fault in report.faults]
    assert f"away from {died:%H:%M:%S}" in away
    assert report.outcome == "ok"
    lost = sum(vars(report.minutes_lost).values(), Decimal(0))
    assert lost + report.served_minutes == report.paid_minutes


def test_a_rehearsal_that_did_not_go_well_says_what_and_fails(default: Rehearsal, rehearse: Rehearse) -> None:
    """A server that takes any key, and a cloud that charges more for a cluster than planning knows of."""
    [wrong] = rehearse(Wish(name="wrong", flaws=("wrong_key",), prices={"eks_cluster": str(MOVED)}))
    assert wrong.exit_code == ExitCode.FAILED, wrong.said
    assert wrong.report.outcome == "not accepted"
    assert {check.check for check in wrong.report.acceptance if not check.ok} == {"wrong_key"}
    said, counted = wrong.report.cost.outside_usd, wrong.seen.bill.outside_usd
    assert said == default.report.cost.outside_usd < counted
    sentence = f"the cost outside the block came to {said}; the simulated cloud counted {counted}."
    assert sentence in " ".join(wrong.said.split())
    # All the same it leaves nothing behind.
    assert wrong.report.residual == ()
    assert [item.kind for item in wrong.seen.left] == ["capacity_block"]
