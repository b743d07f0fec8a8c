"""Names by which the rest of the product finds what this program makes, and names of AWS's that both must know."""

SESSION_TAG = "rent-the-block:session"

GPU_NODE_GROUP = "gpu"
SYSTEM_NODE_GROUP = "system"

ROLE_LABEL = "rent-the-block/role"
GPU_ROLE = "gpu"
SYSTEM_ROLE = "system"

GPU_TAINT_KEY = "nvidia.com/gpu"
GPU_TAINT_VALUE = "present"

APP_LABEL = "app.kubernetes.io/name"
DEVICE_PLUGIN = "nvidia-device-plugin"

VLLM = "vllm"
"""Namespace, Helm release, Deployment, Service, container and service account all bear it."""

ZONES_WITHOUT_EKS = ("use1-az3", "usw1-az2", "cac1-az3")
"""EKS has no control planes in these: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html"""
