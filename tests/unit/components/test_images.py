"""Image references are read and written as container runtimes do."""

import pytest

from components.images import ImageReference, pull_reference

DIGEST = f"sha256:{'0a' * 32}"
ECR = "123456789012.dkr.ecr.us-west-2.amazonaws.com/docker-hub"


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("vllm/vllm-openai:v0.29.0", "docker.io", "vllm/vllm-openai", "v0.29.0", ""),
        ("debian", "docker.io", "library/debian", "latest", ""),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.18.2", "nvcr.io", "nvidia/k8s-device-plugin", "v0.18.2", ""),
        (f"localhost:5000/a/b:1@{DIGEST}", "localhost:5000", "a/b", "1", DIGEST),
        (f"{ECR}/vllm/vllm-openai:v1", ECR.split("/")[0], "docker-hub/vllm/vllm-openai", "v1", ""),
    ],
)
def test_a_reference_is_read_in_its_parts(text: str, registry: str, repository: str, tag: str, digest: str) -> None:
    read = ImageReference.parse(text)
    assert (read.registry, read.repository, read.tag, read.digest) == (registry, repository, tag, digest)


@pytest.mark.parametrize(
    ("image", "digest", "prefix", "pulled"),
    [
        ("vllm/vllm-openai:v1", "", None, "vllm/vllm-openai:v1"),
        ("vllm/vllm-openai:v1", DIGEST, None, f"vllm/vllm-openai:v1@{DIGEST}"),
        ("vllm/vllm-openai:v1", DIGEST, ECR, f"{ECR}/vllm/vllm-openai:v1@{DIGEST}"),
        (
            "nvcr.io/nvidia/k8s-device-plugin:v1",
            "",
            "mirror.example:5000",
            "mirror.example:5000/nvidia/k8s-device-plugin:v1",
        ),
    ],
)
def test_a_prefix_takes_the_place_of_the_registry(image: str, digest: str, prefix: str | None, pulled: str) -> None:
    assert pull_reference(image, digest=digest, prefix=prefix) == pulled
