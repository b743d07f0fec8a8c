"""The same program through Pulumi's Automation API, in a session's own folder: same outputs, same care."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import pytest
from pulumi import automation

from automation.ledger.folder import SessionFolder
from automation.session.adopt import KINDS, TAKEN_BACK, adopt
from automation.session.engine import diagnostics
from automation.target import Target
from tests.engine.program.conftest import CONFIG, SESSION, changes, without

pytestmark = [
    pytest.mark.engine,
    # Pulumi's SDK leaves the event loop of a program open when its operation has failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"

# AWS does not tell these, so the state of an adopted resource lacks them until an `up` writes them; it calls nothing.
NOT_TOLD = {
    ("aws:ec2/natGateway:NatGateway", "regionalNatGatewayAddresses"),
    ("aws:eks/addon:Addon", "resolveConflictsOnCreate"),
    ("aws:eks/addon:Addon", "resolveConflictsOnUpdate"),
}


def ids(resources: list[dict[str, Any]]) -> dict[str, str]:
    return {resource["urn"]: resource["id"] for resource in resources if "id" in resource}


def differences(events: Iterable[automation.events.EngineEvent]) -> set[tuple[str, str]]:
    """Type and property of all that an operation changes."""
    steps = [event.resource_pre_event.metadata for event in events if event.resource_pre_event]
    return {(step.type, each) for step in steps for each in step.detailed_diff or ()}


def routes_to_nat(ec2: Any, vpc_id: str) -> list[str]:
    """The route tables of the VPC whose default route is the NAT gateway, as the cloud says."""
    tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["RouteTables"]
    return [table["RouteTableId"] for table in tables if any("NatGatewayId" in route for route in table["Routes"])]


def test_a_session_has_the_outputs_of_a_shell_and_its_routes_are_put_back(
    place: Any, open_it: Any, folder: SessionFolder
) -> None:
    stack = open_it(place)(CONFIG)
    foreseen = {getattr(kind, "value", kind): count for kind, count in stack.preview().change_summary.items()}
    assert place.changes() == []
    made = stack.up(show_secrets=False)
    assert changes(made.summary) == foreseen
    cni = place.client("eks").describe_addon(clusterName=SESSION, addonName="vpc-cni")["addon"]
    assert json.loads(cni["configurationValues"])["enableNetworkPolicy"] == "true"
    everything = {"same": foreseen["create"]}
    assert changes(stack.up(show_secrets=False).summary) == everything

    outputs = {name: output.value for name, output in made.outputs.items()}
    vpc_id = outputs.pop("vpc_id")
    assert [name for name, output in made.outputs.items() if output.secret] == ["kubeconfig"]
    del outputs["kubeconfig"], outputs["next_step"]
    assert outputs == {
        "availability_zone_id": "usw2-az2",
        "cluster_name": SESSION,
        "gpu_node_group": "gpu",
        "namespace": "vllm",
        "region": "us-west-2",
        "served_model": "Kimi-K3",
        "service": "vllm",
    }

    ec2 = place.client("ec2")
    [table] = routes_to_nat(ec2, vpc_id)
    ec2.delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
    assert routes_to_nat(ec2, vpc_id) == []
    refreshed = changes(stack.refresh(show_secrets=False).summary)
    assert refreshed == {"same": foreseen["create"] - 1, "delete": 1}
    assert changes(stack.up(show_secrets=False).summary) == {"same": foreseen["create"] - 1, "create": 1}
    assert routes_to_nat(ec2, vpc_id) == [table]
    assert changes(stack.refresh(show_secrets=False).summary) == everything

    assert changes(stack.destroy(show_secrets=False).summary) == {"delete": foreseen["create"]}
    assert place.everything() == []
    assert not os.environ.get("PULUMI_CONFIG_PASSPHRASE")


def test_whatever_a_killed_engine_was_making_is_found_again_and_made_once(
    place: Any, open_it: Any, folder: SessionFolder, target: Target
) -> None:
    """Each resource that adoption knows, as if the engine had been killed between AWS's answer and its own note."""
    stack = open_it(place)(CONFIG)
    stack.up(show_secrets=False)
    exported = stack.export_stack()
    whole = exported.deployment["resources"]
    before = place.everything()

    lost = [resource for resource in whole if resource["type"] in KINDS]
    assert {resource["type"] for resource in lost} == KINDS
    pending = [{"type": "creating", "resource": without(resource, "id", "outputs")} for resource in lost]
    kept = [resource for resource in whole if resource not in lost]
    found = adopt(target, SESSION, {"resources": kept, "pending_operations": pending})
    assert found["pending_operations"] == []
    # Route tables are alike while they are made, so one may be taken for the other; here they hold routes already.
    adopted, made = ids(found["resources"]), ids(whole)
    tables = {resource["urn"]: resource["id"] for resource in lost if resource["type"] == ROUTE_TABLE}
    assert {adopted[urn] for urn in tables} == set(tables.values())
    assert adopted | tables == made

    order = [resource["urn"] for resource in whole]
    resources = sorted(
        (
            resource | {"id": tables[urn]} if (urn := resource["urn"]) in tables else resource
            for resource in found["resources"]
        ),
        key=lambda resource: order.index(resource["urn"]),
    )
    stack.import_stack(
        automation.Deployment(version=exported.version, deployment=exported.deployment | {"resources": resources})
    )
    stack.refresh(show_secrets=False)
    calls = place.changes()
    events: list[automation.events.EngineEvent] = []
    stack.preview(on_event=events.append)
    assert differences(events) == NOT_TOLD
    assert changes(stack.up(show_secrets=False).summary).keys() == {"same", "update"}
    assert place.changes() == calls
    assert place.everything() == before
    same = changes(stack.up(show_secrets=False).summary)
    assert same.keys() == {"same"}

    # What has no id that could be told is taken back. The state still knows it here, so a refresh says how much it was.
    taken = [without(resource, "id") for resource in whole if resource["type"] in TAKEN_BACK]
    assert {resource["type"] for resource in taken} == set(TAKEN_BACK)
    pending = [{"type": "creating", "resource": resource} for resource in taken]
    for _ in range(2):
        assert adopt(target, SESSION, {"pending_operations": pending})["pending_operations"] == pending
    deleted = changes(stack.refresh(show_secrets=False).summary)["delete"]
    assert deleted >= len(taken)
    assert changes(stack.up(show_secrets=False).summary) == {"same": same["same"] - deleted, "create": deleted}
    assert len(place.everything()) == len(before)
    stack.destroy(show_secrets=False)
    assert place.everything() == []


def test_what_aws_does_not_have_stays_pending_and_is_made_anew(place: Any, target: Target) -> None:
    inputs = {"name": "nothing", "clusterName": "nothing", "nodeGroupName": "n", "addonName": "a", "role": "nothing"}
    pending = [
        {
            "type": "creating",
            "resource": {
                "type": kind,
                "urn": kind,
                "inputs": inputs | {"subnetId": "subnet-0"},
            },
        }
        for kind in sorted(KINDS)
    ]
    found = adopt(target, "rtb-nobody", {"resources": [], "pending_operations": pending})
    assert found == {"resources": [], "pending_operations": pending}


def test_what_is_wrong_with_a_configuration_is_told_once(place: Any, open_it: Any, folder: SessionFolder) -> None:
    stack = open_it(place)({**CONFIG, "model": "gpt-2", "instanceTyp": "p6-b300.48xlarge"})
    with pytest.raises(automation.CommandError):
        stack.up(show_secrets=False)
    said = diagnostics(folder.root / "up.events")
    assert said.startswith("2 problem(s) in the configuration, nothing was created: ")
    assert said.count("instanceTyp: there is no such key. Did you mean instanceType.") == 1
    assert said.count("model: unknown model 'gpt-2'; known: kimi-k3") == 1
    assert place.everything() == []
    assert place.changes() == []
