"""What others leave in a session's VPC: a network interface that no stack knows, made when the nodes start."""

from __future__ import annotations

from moto.ec2.models import EC2Backend, ec2_backends

from rehearsal.aws.calls import Call

DESCRIPTION = "made by a controller that did not delete it"


class LeftoverInterface:
    """Creates the interface once, after the call that starts the nodes."""

    def __init__(self, account_id: str) -> None:
        self._account_id = account_id
        self._interface_id: str | None = None

    def after_call(self, call: Call) -> None:
        """To be told of each call that changed something."""
        starts_nodes = call.action == "SetDesiredCapacity" and int(str(call.parameters["DesiredCapacity"])) > 0
        if not starts_nodes or self._interface_id is not None:
            return
        ec2: EC2Backend = ec2_backends[self._account_id][call.region]
        subnets = [subnet for zone in ec2.subnets.values() for subnet in zone.values()]
        subnet = next(one for one in subnets if one.get_tags())
        self._interface_id = ec2.create_network_interface(subnet, "", description=DESCRIPTION).id
