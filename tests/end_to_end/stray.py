"""A session that serves while a controller in its cluster, and its user, make what its stack does not know.

Makes that in the session's VPC, forgets the stack's state, then ends the session with `rentblock down`. Prints, as
JSON, what was made and how `down` ended.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

from automation.market.purchase import Approval
from automation.session.display import Quiet
from automation.session.engine import PROJECT
from automation.session.rent import run_to_end
from automation.target import Target
from planning.ranking import Offer
from rehearsal.delays import load_scenario
from rehearsal.straight_way import request_of
from rehearsal.target import world_target


def approve(offer: Offer) -> Approval:
    return Approval(offering_id=offer.offering_id, fee_usd=offer.fee_usd)


def leave(target: Target, session: str) -> dict[str, str]:
    """What nobody's stack knows, by kind: each is made as AWS's own controllers, or people in a hurry, make it."""
    client: Callable[..., Any] = target.client
    ec2, balancing = client("ec2"), client("elbv2")
    tag = {"Name": "tag:rent-the-block:session", "Values": [session]}
    subnets = [subnet["SubnetId"] for subnet in ec2.describe_subnets(Filters=[tag])["Subnets"]]
    vpc_id = ec2.describe_vpcs(Filters=[tag])["Vpcs"][0]["VpcId"]
    group = ec2.create_security_group(GroupName="k8s-traffic", Description="of a controller", VpcId=vpc_id)["GroupId"]
    address = ec2.allocate_address(
        TagSpecifications=[
            {"ResourceType": "elastic-ip", "Tags": [{"Key": "rent-the-block:session", "Value": session}]}
        ]
    )["AllocationId"]
    balancer = balancing.create_load_balancer(
        Name="k8s-vllm", Type="network", Subnets=subnets, Tags=[{"Key": "elbv2.k8s.aws/cluster", "Value": session}]
    )
    volume = ec2.create_volume(
        AvailabilityZone=ec2.describe_subnets(SubnetIds=subnets)["Subnets"][0]["AvailabilityZone"],
        Size=100,
        VolumeType="gp3",
        TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": "rent-the-block:session", "Value": session}]}],
    )
    return {
        "load_balancer": balancer["LoadBalancers"][0]["LoadBalancerArn"],
        "network_interface": ec2.create_network_interface(SubnetId=subnets[0], Groups=[group])["NetworkInterface"][
            "NetworkInterfaceId"
        ],
        "security_group": group,
        "public_ipv4": address,
        "nat_gateway": ec2.create_nat_gateway(SubnetId=subnets[0], AllocationId=address)["NatGateway"]["NatGatewayId"],
        "ebs_gp3_gib": volume["VolumeId"],
    }


def forget(target: Target, session: str) -> None:
    """Lose the stack's state, as with the disk that it was on."""
    work = target.home / "sessions" / session / "work"
    subprocess.run(
        ["pulumi", "stack", "rm", "--force", "--yes", "--stack", f"organization/{PROJECT}/{session}"],
        cwd=work,
        env={**os.environ, **target.engine_environment},
        stdout=subprocess.DEVNULL,
        timeout=120,
        check=True,
    )


def main() -> None:
    target = world_target()
    request = request_of(load_scenario("default"), parallel=16)
    record = run_to_end(request, target, approve=approve, display=Quiet(), until=lambda record: record.phase == "serve")
    assert record.block is not None
    target = target.in_region(record.block.region)
    made = leave(target, record.session)
    forget(target, record.session)
    down = subprocess.run(
        ["rentblock", "down", "--yes", "--session", record.session], capture_output=True, text=True, timeout=600
    )
    print(json.dumps({"session": record.session, "made": made, "exit_code": down.returncode, "said": down.stderr}))


if __name__ == "__main__":
    main()
