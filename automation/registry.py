"""What a container registry says about an image: whether it exists, and the digest behind its tag.

It is asked as an anonymous pull begins: HEAD of the manifest, with an anonymous bearer token where the registry wants
one. https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pull and
https://distribution.github.io/distribution/spec/auth/token/
"""

import re
from dataclasses import dataclass
from typing import Literal

import httpx

from components.images import DOCKER_HUB, ImageReference

_TIMEOUT_S = 10.0
_DOCKER_HUB_API = "registry-1.docker.io"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
# A registry answers 404 for a tag whose manifest has a type that the client does not accept.
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


@dataclass(frozen=True, kw_only=True)
class RegistryAnswer:
    """`digest` is None unless the image was found and the registry named its digest; `sentence` is for people."""

    outcome: Literal["found", "missing", "rate limited", "not known"]
    digest: str | None
    sentence: str


def ask_registry(
    image: ImageReference, *, mirror_url: str | None = None, transport: httpx.BaseTransport | None = None
) -> RegistryAnswer:
    """Ask for the image's manifest. Never raises: a registry that cannot be asked leaves the image "not known".

    `mirror_url`: a mirror that answers for every registry, None to ask the image's own. It gets the registry's name as
    containerd's mirrors do, in the parameter `ns`. `transport` None is the network.
    """
    host = _DOCKER_HUB_API if image.registry == DOCKER_HUB else image.registry
    base = httpx.URL(mirror_url or f"https://{host}")
    url = base.join(f"/v2/{image.repository}/manifests/{image.digest or image.tag}")
    if mirror_url:
        url = url.copy_add_param("ns", image.registry)
    try:
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, transport=transport) as client:
            answer = client.head(url, headers={"Accept": _MANIFESTS})
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                service = _token_service(answer.headers.get("WWW-Authenticate", ""), image)
                signed_in = client.get(service) if service else answer
                if token := _token(signed_in):
                    answer = client.head(url, headers={"Accept": _MANIFESTS, "Authorization": f"Bearer {token}"})
                elif signed_in.status_code == httpx.codes.TOO_MANY_REQUESTS:
                    answer = signed_in
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return _not_known(f"{image.registry} could not be asked ({type(error).__name__}: {error}).")
    return _read(image, answer)


def _token_service(challenge: str, image: ImageReference) -> httpx.URL | None:
    """Where the registry's challenge says that anyone gets a token for a pull; None if the registry takes no tokens."""
    fields = dict(_CHALLENGE.findall(challenge))
    if not challenge.lower().startswith("bearer ") or "realm" not in fields:
        return None
    realm = httpx.URL(fields["realm"])
    # nvcr.io writes the scope into the realm's own query.
    scope = {} if "scope" in realm.params else {"scope": f"repository:{image.repository}:pull"}
    return realm.copy_merge_params(scope | {name: fields[name] for name in ("service", "scope") if name in fields})


def _token(answer: httpx.Response) -> str | None:
    if not answer.is_success:
        return None
    content = answer.json()
    token = content.get("token") or content.get("access_token") if isinstance(content, dict) else None
    return token if isinstance(token, str) else None


def _read(image: ImageReference, answer: httpx.Response) -> RegistryAnswer:
    registry = image.registry
    if answer.status_code == httpx.codes.NOT_FOUND:
        what = f"{registry} does not have {image.repository}:{image.tag}."
        return RegistryAnswer(outcome="missing", digest=None, sentence=what)
    if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
        what = f"{registry} refuses more requests from this address for now (HTTP 429)."
        return RegistryAnswer(outcome="rate limited", digest=None, sentence=what)
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return _not_known(f"{registry} asks for a sign-in: the image is private there, or does not exist.")
    if not answer.is_success:
        return _not_known(f"{registry} answered HTTP {answer.status_code}.")
    named = answer.headers.get("Docker-Content-Digest", "")
    digest = named if _DIGEST.fullmatch(named) else None
    what = f"{registry} has it{f' as {digest}' if digest else ' and does not name its digest'}."
    return RegistryAnswer(outcome="found", digest=digest, sentence=what)


def _not_known(why: str) -> RegistryAnswer:
    return RegistryAnswer(outcome="not known", digest=None, sentence=f"It could not be checked: {why}")
