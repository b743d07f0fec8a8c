"""What lets the model's pod read its weights in S3, and nothing else: a role by EKS Pod Identity."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components import names
from components.trust import trust_policy


@dataclass(frozen=True, kw_only=True)
class WeightsAccessArgs:
    """`weights` is the S3 URI of one flat prefix. `kms_key_arn` is the customer's key that encrypts them, or None."""

    cluster_name: pulumi.Input[str]
    weights: str
    kms_key_arn: str | None


class WeightsAccess(pulumi.ComponentResource):
    """See the module. `association` must stand before the pod is made: its variables are injected at that moment."""

    association: aws.eks.PodIdentityAssociation

    def __init__(self, name: str, args: WeightsAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:serving:WeightsAccess", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        trust = trust_policy("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")
        role = aws.iam.Role(f"{name}-role", assume_role_policy=trust, opts=own)
        reading = read_policy(args.weights, args.kms_key_arn)
        policy = aws.iam.RolePolicy(f"{name}-policy", role=role.name, policy=reading, opts=own)
        self.association = aws.eks.PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.cluster_name,
            namespace=names.VLLM,
            service_account=names.VLLM,
            role_arn=role.arn,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )
        self.register_outputs({})


def read_policy(weights: str, kms_key_arn: str | None) -> str:
    """The IAM policy that reads below `weights` (`s3://bucket/prefix`).

    S3 decrypts SSE-KMS for the reader and asks the reader for kms:Decrypt; the key's own policy must allow it too.
    """
    bucket, _, prefix = weights.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    below = f"{prefix}/*" if prefix else "*"
    statements = [
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": f"arn:aws:s3:::{bucket}",
            "Condition": {"StringLike": {"s3:prefix": [below, prefix]}},
        },
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/{below}"},
    ]
    if kms_key_arn:
        statements.append({"Effect": "Allow", "Action": "kms:Decrypt", "Resource": kms_key_arn})
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
