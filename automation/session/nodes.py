"""The two changes that a session makes between start and drain: the size of the GPU group, up and down.

By the Auto Scaling group, not by the node group: EKS answers ResourceInUse while it is busy with itself, and each paid
second counts. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
"""

from datetime import datetime

from automation.aws_errors import aws_errors
from automation.errors import Refused
from automation.session.observation import GpuGroup
from automation.session.plan import Plan
from automation.target import Target

_COST = "The block is paid for, whether its nodes run or not."


def raise_nodes(target: Target, plan: Plan, group: GpuGroup, now: datetime) -> None:
    """Tell the group to run the block's instances. Raises Refused outside the paid time, whoever asks."""
    if not plan.moments.start <= now < plan.moments.drain:
        raise Refused(
            happened=f"Nodes are raised from {plan.moments.start:%H:%M} to {plan.moments.drain:%H:%M}, its drain.",
            cost=_COST,
            remedy="Nothing: the session goes on by itself.",
        )
    autoscaling = target.client("autoscaling")
    with aws_errors("raising the GPU nodes", cost=_COST):
        if group.suspended:
            # AWS suspends a group that has failed to launch for a day; nobody else does.
            autoscaling.resume_processes(AutoScalingGroupName=group.name, ScalingProcesses=list(group.suspended))
        autoscaling.set_desired_capacity(
            AutoScalingGroupName=group.name, DesiredCapacity=plan.block.instance_count, HonorCooldown=False
        )


def drain_nodes(target: Target, group: GpuGroup) -> None:
    """Tell the group to shrink to 0. Its instances end when their pods are gone, after 15 minutes at most."""
    with aws_errors("draining the GPU nodes", cost=_COST):
        target.client("autoscaling").set_desired_capacity(
            AutoScalingGroupName=group.name, DesiredCapacity=0, HonorCooldown=False
        )
