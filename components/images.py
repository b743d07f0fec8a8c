"""References of container images: `registry/repository:tag@digest`, as container runtimes read them."""

from __future__ import annotations

from dataclasses import dataclass

DOCKER_HUB = "docker.io"


@dataclass(frozen=True, kw_only=True)
class ImageReference:
    """The parts of a reference; `digest` is empty while the reference has none."""

    registry: str
    repository: str
    tag: str
    digest: str

    @classmethod
    def parse(cls, text: str) -> ImageReference:
        """Reads a reference. A first part with a dot or a colon is a registry; without one it is Docker Hub's."""
        name, _, digest = text.partition("@")
        first, slash, path = name.partition("/")
        if not slash or not ("." in first or ":" in first or first == "localhost"):
            # https://github.com/distribution/reference/blob/main/normalize.go
            first, path = DOCKER_HUB, name if slash else f"library/{name}"
        repository, _, tag = path.partition(":")
        return cls(registry=first, repository=repository, tag=tag or "latest", digest=digest)


@dataclass(frozen=True, kw_only=True)
class ModelImage:
    """The model server's image as nodes pull it, and the Secret of its namespace that they sign in with, if any."""

    reference: str
    pull_secret: str | None


def pull_reference(image: str, *, digest: str, prefix: str | None = None) -> str:
    """What a node pulls: `image`, from below `prefix` in place of its registry, pinned by `digest` unless it is empty.

    `prefix` is a mirror or a pull-through cache, such as `ACCOUNT.dkr.ecr.REGION.amazonaws.com/docker-hub`.
    """
    if prefix:
        read = ImageReference.parse(image)
        image = f"{prefix}/{read.repository}:{read.tag}"
    return f"{image}@{digest}" if digest else image
