"""The providers of a rehearsal: a fake of pulumi-eks (eks.py). The AWS provider is the real one, from the toolchain."""

from importlib.metadata import version

from toolchain import Toolchain


def providers(toolchain: Toolchain) -> dict[str, str]:
    """For reports: version of the AWS and the EKS provider, and how each was obtained."""
    ways = {"built": "built from upstream 6.34.0, waits scaled", "official": "downloaded", "path": "found"}
    return {
        "aws": f"{version('pulumi-aws')}, {ways[toolchain.aws_way]}",
        "eks": f"{version('pulumi-eks')}, fake",
    }
