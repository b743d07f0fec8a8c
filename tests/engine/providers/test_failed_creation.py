"""EKS accepts a creation and fails it: what the real provider makes of that, and how the session repairs it."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from pulumi import automation

from automation.clock import AwsClock
from automation.errors import EngineFailed
from automation.session.eks_health import delete_failed, require_active
from automation.target import Target
from rehearsal.aws.server import ACCOUNT_ID
from tests.engine.providers.test_cluster_stack import REGION, program

pytestmark = [
    pytest.mark.engine,
    # Pulumi's SDK leaves the event loop of a program open when its operation has failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def target(place: Any) -> Target:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
    return Target(
        mode="rehearsal",
        account_id=ACCOUNT_ID,
        region=REGION,
        boto_session=session,
        endpoint_url=place.aws.url,
        clock=AwsClock(session),
        home=place.folder,
        engine_environment={},
    )


def addon_status(place: Any) -> str:
    return str(place.client("eks").describe_addon(clusterName="k1", addonName="coredns")["addon"]["status"])


def test_the_provider_takes_a_failed_addon_for_a_success_at_the_next_up(place: Any, target: Target) -> None:
    """So an exit code of 0 does not suffice: `require_active` refuses what EKS does not call ACTIVE."""
    place.aws.creations.fail("addon/coredns", 1)
    stack = place.stack(program)
    with pytest.raises(automation.CommandError, match="CREATE_FAILED"):
        stack.up()
    stack.up()
    assert addon_status(place) == "CREATE_FAILED"
    with pytest.raises(EngineFailed) as failure:
        require_active(target, stack)
    assert "add-on coredns is CREATE_FAILED: InternalFailure" in failure.value.happened


@pytest.mark.parametrize("name", ["addon/coredns", "nodegroup/system"])
def test_a_creation_that_failed_once_is_deleted_and_made_again(place: Any, target: Target, name: str) -> None:
    place.aws.creations.fail(name, 1)
    stack = place.stack(program)
    with pytest.raises(automation.CommandError, match="CREATE_FAILED"):
        stack.up()
    [deleted] = delete_failed(target, stack)
    assert f"{deleted.kind}/{next(reversed(deleted.which.values()))}" == name
    stack.up()
    require_active(target, stack)
    assert delete_failed(target, stack) == ()
    assert addon_status(place) == "ACTIVE"


def test_a_creation_that_fails_always_never_counts_as_prepared(place: Any, target: Target) -> None:
    place.aws.creations.fail("addon/coredns", 99)
    stack = place.stack(program)
    for _ in range(3):
        delete_failed(target, stack)
        with pytest.raises(automation.CommandError, match="CREATE_FAILED"):
            stack.up()
    with pytest.raises(EngineFailed, match="add-on coredns is CREATE_FAILED"):
        require_active(target, stack)
    stack.destroy()
    assert place.aws.inventory() == []
