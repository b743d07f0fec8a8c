"""The table: one row per resource type that a rehearsal knows. A new type is a new row in the module of its service.

row.py              what a row is                    ec2.py              what EC2's resources have in common
network.py          VPC, subnets, gateways, routes   security.py         security groups and rules
launch_template.py  launch templates                 node_group.py       EKS managed node groups
iam.py              roles and attachments            logs.py             log groups
cluster.py          EKS clusters                     cluster_access.py   add-ons, access entries, pod identity
"""

from collections.abc import Mapping

from rehearsal.providers.resources import (
    cluster,
    cluster_access,
    iam,
    launch_template,
    logs,
    network,
    node_group,
    security,
)
from rehearsal.providers.resources.row import Row

ROWS: Mapping[str, Row] = {
    row.token: row
    for module in (network, security, launch_template, iam, logs, cluster, node_group, cluster_access)
    for row in module.ROWS
}
