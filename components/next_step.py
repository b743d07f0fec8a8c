"""What a person does after `pulumi up`: start the GPU nodes, reach the model, delete everything."""

from __future__ import annotations

from components import names
from components.settings import Settings


def next_step(stack: str, settings: Settings) -> str:
    """The commands of the stack output `next_step`, in order, each on a line of its own.

    The program leaves the GPU group at size 0: it knows no clock, and nodes cost money from their start. No later
    update changes the size (`ignore_changes` in node_groups.py).
    """
    region, cluster, count = settings.region, stack, settings.instance_count
    start = "Start the GPU nodes. They bill from then on, until step 4."
    if settings.reservation_id:
        start = f"When the block {settings.reservation_id} has started, start its nodes."
    kubectl = f"kubectl --namespace {names.VLLM}"
    # Comments and commands, as in a shell script: the engine shows text that it can read as YAML as a table, and of any
    # other text the first three lines.
    return f"""\
# All of this: pulumi stack output next_step --stack {stack}
# 1. {start}
aws eks update-nodegroup-config --region {region} --cluster-name {cluster} --nodegroup-name {names.GPU_NODE_GROUP} \
--scaling-config minSize=0,maxSize={count},desiredSize={count}
# 2. Wait until the model serves. Ctrl-C stops nothing.
aws eks update-kubeconfig --region {region} --name {cluster}
{kubectl} rollout status deployment/{names.VLLM} --timeout=3h
# 3. Reach it as {settings.model.served_name} at http://127.0.0.1:8000/v1. Run the second command in another terminal.
{kubectl} port-forward service/{names.VLLM} 8000:8000
{kubectl} get secret vllm-api-key --output jsonpath='{{.data.api-key}}' | base64 --decode
# 4. At the end, delete the nodes and everything else of this stack.
pulumi destroy --stack {stack}"""
