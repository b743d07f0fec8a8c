"""The two node groups: `gpu`, which waits for its block at size 0, and `system`, which carries CoreDNS.

The rules of a managed node group on a Capacity Block (EKS user guide, capacity-blocks-mng): market type, reservation id
and instance type stand in a launch template of ours and nowhere else, `capacity_type` says CAPACITY_BLOCK, the one
subnet lies in the block's zone, and there is no placement group. pulumi-eks can't say that in its groups.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components import names, versions
from components.location import LookupFailed
from components.trust import trust_policy
from planning.catalogue import InstanceType

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
SYSTEM_INSTANCE_TYPE = "m7i.large"
SYSTEM_NODES = 1
SYSTEM_ROOT_GIB = 20
GPU_ROOT_GIB = 200  # images and caches live on the NVMe; this is for the system and its logs
TAGGED_BY_TEMPLATE = ("instance", "volume", "network-interface")  # the provider's default tags do not reach these


@dataclass(frozen=True, kw_only=True)
class NodeGroupsArgs:
    """`reservation_id` None: the GPU group rents on demand. `tags` are put on instances, volumes and interfaces.
    `after` must stand before the nodes are made. `gpu_nodes` is the size that the GPU group has now, or why it is not
    known: unless it is 0, the program refuses to change what its nodes are launched from."""

    cluster_name: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    instance_type: InstanceType
    instance_count: int
    reservation_id: str | None
    tags: dict[str, str]
    after: Sequence[pulumi.Resource]
    gpu_nodes: int | LookupFailed = 0


class NodeGroups(pulumi.ComponentResource):
    """See the module."""

    gpu: aws.eks.NodeGroup
    system: aws.eks.NodeGroup

    def __init__(self, name: str, args: NodeGroupsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:nodes:NodeGroups", name, None, opts)
        role, attachments = self._node_role(name)
        before_nodes = [*attachments, *args.after]
        system_template = aws.ec2.LaunchTemplate(
            f"{name}-system",
            launch_template_args(
                instance_type=SYSTEM_INSTANCE_TYPE,
                root_gib=SYSTEM_ROOT_GIB,
                reservation_id=None,
                user_data=None,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.system = aws.eks.NodeGroup(
            f"{name}-system",
            node_group_args(
                group=names.SYSTEM_NODE_GROUP,
                role=names.SYSTEM_ROLE,
                args=args,
                node_role_arn=role.arn,
                template=system_template,
                ami_type="AL2023_x86_64_STANDARD",
                capacity_type="ON_DEMAND",
                sizes=(SYSTEM_NODES, SYSTEM_NODES, SYSTEM_NODES),
                tainted=False,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=before_nodes, delete_before_replace=True),
        )
        frozen = _frozen(name, args.gpu_nodes)
        gpu_template = aws.ec2.LaunchTemplate(
            f"{name}-gpu",
            launch_template_args(
                instance_type=args.instance_type.name,
                root_gib=GPU_ROOT_GIB,
                reservation_id=args.reservation_id,
                user_data=node_config_user_data(),
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self, hooks=frozen),
        )
        self.gpu = aws.eks.NodeGroup(
            f"{name}-gpu",
            node_group_args(
                group=names.GPU_NODE_GROUP,
                role=names.GPU_ROLE,
                args=args,
                node_role_arn=role.arn,
                template=gpu_template,
                ami_type="AL2023_x86_64_NVIDIA",
                capacity_type="CAPACITY_BLOCK" if args.reservation_id else "ON_DEMAND",
                sizes=(0, 0, args.instance_count),
                tainted=True,
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=before_nodes,
                delete_before_replace=True,
                # The path is the provider's, in camel case: the Python name is ignored in silence, and an `up` while
                # serving would then drain paid nodes.
                # All three sizes: EKS takes them in one call, and the desired one would be that of the creation.
                ignore_changes=["scalingConfig"],
                hooks=frozen,
            ),
        )
        self.register_outputs({"gpu": self.gpu.node_group_name, "system": self.system.node_group_name})

    def _node_role(self, name: str) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        own = pulumi.ResourceOptions(parent=self)
        trust = trust_policy("ec2.amazonaws.com", "sts:AssumeRole")
        role = aws.iam.Role(f"{name}-node", assume_role_policy=trust, opts=own)
        attachments: list[pulumi.Resource] = [
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy}", role=role.name, policy_arn=f"arn:aws:iam::aws:policy/{policy}", opts=own
            )
            for policy in NODE_POLICIES
        ]
        return role, attachments


def _frozen(name: str, gpu_nodes: int | LookupFailed) -> pulumi.ResourceHookBinding | None:
    """Refuses updates of a resource, in previews too, while GPU nodes run; None while none run."""
    if gpu_nodes == 0:
        return None
    in_previews_too = pulumi.ResourceHookOptions(on_dry_run=True)
    hook = pulumi.ResourceHook(f"{name}-frozen", refuse_update(gpu_nodes), in_previews_too)
    return pulumi.ResourceHookBinding(before_update=[hook])


def refuse_update(gpu_nodes: int | LookupFailed) -> Callable[[pulumi.ResourceHookArgs], None]:
    """A hook for what GPU nodes are launched from: EKS replaces all nodes when it changes, and a block has no spare."""
    if isinstance(gpu_nodes, LookupFailed):
        why = f"AWS did not say whether GPU nodes run ({gpu_nodes})"
    else:
        why = f"{gpu_nodes} GPU node(s) run"

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        raise RuntimeError(
            f"{why}, and a change of {args.name} would replace them, so it was not changed. Undo the change of the "
            f"stack file, or scale the node group {names.GPU_NODE_GROUP} to 0 first."
        )

    return refuse


def node_config_user_data() -> str:
    """A node's NodeConfig as base64 MIME: images, logs and pod storage on a RAID0 of its NVMe, parallel image pull.

    https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
    """
    text = "\n".join(
        (
            "MIME-Version: 1.0",
            'Content-Type: multipart/mixed; boundary="NODECONFIG"',
            "",
            "--NODECONFIG",
            "Content-Type: application/node.eks.aws",
            "",
            "apiVersion: node.eks.aws/v1alpha1",
            "kind: NodeConfig",
            "spec:",
            "  featureGates:",
            "    FastImagePull: true",
            "  instance:",
            "    localStorage:",
            "      strategy: RAID0",
            "",
            "--NODECONFIG--",
            "",
        )
    )
    return base64.b64encode(text.encode()).decode()


def launch_template_args(
    *,
    instance_type: str,
    root_gib: int,
    reservation_id: str | None,
    user_data: str | None,
    tags: dict[str, str],
) -> aws.ec2.LaunchTemplateArgs:
    """The launch template of a group; with `reservation_id` the shape that a Capacity Block demands.

    What does not apply is left out, not empty: an empty block is a permanent difference, and an empty reservation
    target is accepted and fails at the launch. Without interfaces EKS attaches one with the cluster's security group;
    EFA interfaces would serve nothing, since each node serves a whole copy of the model.
    """
    template = aws.ec2.LaunchTemplateArgs(
        instance_type=instance_type,
        # One hop: pods take credentials from Pod Identity and never from the node.
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
        ),
        block_device_mappings=[
            aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                device_name="/dev/xvda",
                ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                    volume_size=root_gib, volume_type="gp3", encrypted="true", delete_on_termination="true"
                ),
            )
        ],
        user_data=user_data,
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags) for kind in TAGGED_BY_TEMPLATE
        ],
    )
    if reservation_id:
        template.instance_market_options = aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
        template.capacity_reservation_specification = aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
            capacity_reservation_target=aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
                capacity_reservation_id=reservation_id
            )
        )
    return template


def node_group_args(
    *,
    group: str,
    role: str,
    args: NodeGroupsArgs,
    node_role_arn: pulumi.Input[str],
    template: aws.ec2.LaunchTemplate,
    ami_type: str,
    capacity_type: str,
    sizes: tuple[int, int, int],
    tainted: bool,
) -> aws.eks.NodeGroupArgs:
    """A managed group of the template's instance type; `sizes` are minimum, desired and maximum.

    `tainted` keeps away every pod that does not say that it is for GPU nodes.
    """
    smallest, desired, largest = sizes
    taint = aws.eks.NodeGroupTaintArgs(key=names.GPU_TAINT_KEY, value=names.GPU_TAINT_VALUE, effect="NO_SCHEDULE")
    return aws.eks.NodeGroupArgs(
        cluster_name=args.cluster_name,
        node_group_name=group,
        node_role_arn=node_role_arn,
        subnet_ids=[args.subnet_id],
        ami_type=ami_type,
        release_version=versions.NODE_AMI_RELEASE,
        capacity_type=capacity_type,
        # "$Latest" would be a difference at every update.
        launch_template=aws.eks.NodeGroupLaunchTemplateArgs(id=template.id, version=template.latest_version.apply(str)),
        scaling_config=aws.eks.NodeGroupScalingConfigArgs(min_size=smallest, desired_size=desired, max_size=largest),
        labels={names.ROLE_LABEL: role},
        taints=[taint] if tainted else None,
    )
