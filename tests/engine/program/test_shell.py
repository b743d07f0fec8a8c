"""`pulumi` in a checkout, by hand, with the stack file that ships: the life of a stack, and what it keeps to itself."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import Any

import pytest

from rehearsal.cluster_client import ClusterClient

pytestmark = pytest.mark.engine

OUTPUTS = {
    "availability_zone_id": "usw2-az2",
    "cluster_name": "dev",
    "gpu_node_group": "gpu",
    "kubeconfig": "[secret]",
    "namespace": "vllm",
    "region": "us-west-2",
    "served_model": "Kimi-K3",
    "service": "vllm",
}
EVERYWHERE = "0.0.0.0/0"


def counted(output: str) -> dict[str, int]:
    """The engine's last summary: `+ 50 created`, `50 unchanged`."""
    summary = output.rpartition("Resources:")[2]
    return {what: int(count) for count, what in re.findall(r"^ +(?:\W+ ?)?(\d+) ([a-z ]+)$", summary, re.MULTILINE)}


def routes_to_nat(ec2: Any, vpc_id: object) -> list[tuple[str, str]]:
    """The table and the NAT gateway of each default route of a VPC that has one, as the cloud says."""
    tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["RouteTables"]
    return [
        (table["RouteTableId"], route["NatGatewayId"])
        for table in tables
        for route in table["Routes"]
        if route.get("DestinationCidrBlock") == EVERYWHERE and "NatGatewayId" in route
    ]


def test_a_stack_stays_as_it_is_finds_what_was_taken_away_and_goes_without_its_cluster(place: Any) -> None:
    foreseen = counted(place.works("preview", "--stack", "dev"))
    assert place.changes() == []
    assert foreseen.keys() == {"to create"}
    count = foreseen["to create"]
    said = [place.works("up", "--yes", *more, "--stack", "dev") for more in ([], [], ["--refresh"])]
    assert [counted(one) for one in said] == [{"created": count}, {"unchanged": count}, {"unchanged": count}]
    outputs = place.outputs()
    vpc_id = outputs.pop("vpc_id")
    assert vpc_id in {each.resource_id for each in place.everything()}
    assert "aws eks update-nodegroup-config" in str(outputs.pop("next_step"))
    assert outputs == OUTPUTS

    ec2 = place.client("ec2")
    [(table, gateway)] = routes_to_nat(ec2, vpc_id)
    ec2.delete_route(RouteTableId=table, DestinationCidrBlock=EVERYWHERE)
    place.client("eks").update_nodegroup_config(
        clusterName="dev", nodegroupName="gpu", scalingConfig={"minSize": 0, "maxSize": 1, "desiredSize": 1}
    )
    said.append(place.works("preview", "--refresh", "--stack", "dev"))
    assert re.search(r"aws:ec2:Route session-network-private-default create", said[-1])
    assert counted(said[-1]) == {"to create": 1, "unchanged": count - 1}
    said.append(place.works("refresh", "--yes", "--stack", "dev"))
    assert counted(said[-1]).items() >= {("deleted", 1)}
    assert routes_to_nat(ec2, vpc_id) == []
    said.append(place.works("up", "--yes", "--stack", "dev"))
    assert counted(said[-1]) == {"created": 1, "unchanged": count - 1}
    assert routes_to_nat(ec2, vpc_id) == [(table, gateway)]
    # The size of the GPU group belongs to whoever runs the session: no `up` sets it back.
    assert place.gpu_scaling("dev")["desiredSize"] == 1

    nobody_was_told_the_secrets(place, said)

    place.running.cluster.stop()
    assert counted(place.works("destroy", "--yes", "--stack", "dev")) == {"deleted": count}
    assert place.everything() == []


def nobody_was_told_the_secrets(place: Any, said: list[str]) -> None:
    with ClusterClient(place.running.cluster.kubeconfig) as cluster:
        api_key = cluster.secret_value("vllm", "vllm-api-key", "api-key")
    assert len(api_key) == 48
    in_clear = place.works("stack", "export", "--show-secrets", "--stack", "dev")
    for text in (api_key, b64encode(api_key.encode()).decode()):
        assert place.files_that_hold(text) == []
        assert text not in in_clear + "".join(said)

    # The kubeconfig is in the state, as a secret: only who has the passphrase can read it.
    signed_in = json.loads(place.running.cluster.kubeconfig_json())["users"][0]["user"]["client-key-data"]
    assert signed_in in in_clear
    # The Kubernetes provider leaves its kubeconfig in TMPDIR. That of EKS holds no credentials: it calls `aws`.
    assert {file.parent for file in place.files_that_hold(signed_in)} <= {place.running.folder.root / "tmp"}
    assert signed_in not in "".join(said)
    # What is no secret is found by the same search.
    assert place.files_that_hold("203.0.113.7/32")
