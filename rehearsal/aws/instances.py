"""EC2's call that ends instances: those of node groups end as machines of the fleet, and their nodes go with them."""

from __future__ import annotations

from collections.abc import Mapping

from moto.ec2.models import EC2Backend, ec2_backends

from rehearsal.aws.fleet import Fleet
from rehearsal.aws.operations import Request, refuse
from rehearsal.delays import Refusal


class InstanceOperations:
    """Each public method is an operation of EC2."""

    def __init__(self, fleet: Fleet, refusals: Mapping[str, Refusal]) -> None:
        self._fleet = fleet
        self._refusals = refusals

    def terminate_instances(self, request: Request) -> Mapping[str, object]:
        ec2: EC2Backend = ec2_backends[request.account_id][request.region]
        instances = ec2.get_multi_instances_by_id(request.texts("InstanceIds"))
        if request.flag("DryRun"):
            raise refuse(self._refusals["dry_run"])
        changes = []
        for instance in instances:
            before = {"Code": instance.state_code, "Name": instance.state}
            if machine := self._fleet.machine(instance.id):
                self._fleet.terminate(machine)
            elif instance.state != "terminated":
                ec2.terminate_instances([instance.id])
            after = {"Code": 32, "Name": "shutting-down"}
            changes.append({"InstanceId": instance.id, "PreviousState": before, "CurrentState": after})
        return {"TerminatingInstances": changes}
