"""Whatever a registry answers, an image is found, missing, rate limited or not known; nothing crashes."""

from collections.abc import Callable

import httpx
import pytest

from automation.registry import RegistryAnswer, ask_registry
from components.images import ImageReference

DIGEST = f"sha256:{'0a' * 32}"
VLLM = ImageReference.parse("vllm/vllm-openai:v0.29.0")
PLUGIN = ImageReference.parse("nvcr.io/nvidia/k8s-device-plugin:v0.18.2")

Answer = Callable[[httpx.Request], httpx.Response]


class Registry:
    """Gives out a token to anyone, and then what `manifest` says. Keeps the requests."""

    def __init__(self, challenge: str, manifest: Answer) -> None:
        self.challenge, self.manifest = challenge, manifest
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if "token" in request.url.path or "auth" in request.url.path:
            return httpx.Response(200, json={"token": "anyone"})
        if self.challenge and request.headers.get("Authorization") != "Bearer anyone":
            return httpx.Response(401, headers={"WWW-Authenticate": self.challenge})
        return self.manifest(request)

    def ask(self, image: ImageReference, mirror_url: str | None = None) -> RegistryAnswer:
        return ask_registry(image, mirror_url=mirror_url, transport=httpx.MockTransport(self))


def has_it(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, headers={"Docker-Content-Digest": DIGEST})


def test_docker_hub_gets_a_head_request_with_an_anonymous_token() -> None:
    challenge = (
        'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:vllm/x:pull"'
    )
    hub = Registry(challenge, has_it)
    answer = hub.ask(VLLM)
    assert (answer.outcome, answer.digest) == ("found", DIGEST)
    first, token, second = hub.asked
    assert {first.method, second.method} == {"HEAD"}
    assert str(second.url) == "https://registry-1.docker.io/v2/vllm/vllm-openai/manifests/v0.29.0"
    assert "application/vnd.oci.image.index.v1+json" in second.headers["Accept"]
    assert dict(token.url.params) == {"service": "registry.docker.io", "scope": "repository:vllm/x:pull"}


def test_a_scope_in_the_realm_itself_is_kept() -> None:
    nvcr = Registry('Bearer realm="https://nvcr.io/proxy_auth?scope=repository:nvidia/k8s-device-plugin:pull"', has_it)
    assert nvcr.ask(PLUGIN).digest == DIGEST
    assert dict(nvcr.asked[1].url.params) == {"scope": "repository:nvidia/k8s-device-plugin:pull"}


def test_a_registry_without_sign_in_is_asked_once() -> None:
    open_registry = Registry("", has_it)
    assert open_registry.ask(PLUGIN).outcome == "found"
    assert len(open_registry.asked) == 1


def test_a_mirror_is_told_whose_image_it_is() -> None:
    mirror = Registry("", has_it)
    mirror.ask(VLLM, "http://127.0.0.1:5000")
    assert str(mirror.asked[0].url) == "http://127.0.0.1:5000/v2/vllm/vllm-openai/manifests/v0.29.0?ns=docker.io"


def test_an_image_with_a_digest_is_asked_for_by_it() -> None:
    registry = Registry("", has_it)
    registry.ask(ImageReference.parse(f"vllm/vllm-openai:v0.29.0@{DIGEST}"))
    assert registry.asked[0].url.path.endswith(f"/manifests/{DIGEST}")


@pytest.mark.parametrize(
    ("status", "outcome", "says"),
    [
        (404, "missing", "docker.io does not have vllm/vllm-openai:v0.29.0"),
        (429, "rate limited", "refuses more requests from this address"),
        (401, "not known", "could not be checked: docker.io asks for a sign-in"),
        (403, "not known", "could not be checked: docker.io asks for a sign-in"),
        (503, "not known", "could not be checked: docker.io answered HTTP 503"),
        (200, "found", "does not name its digest"),
    ],
)
def test_every_status_has_an_outcome(status: int, outcome: str, says: str) -> None:
    answer = Registry("", lambda _: httpx.Response(status, headers={"Docker-Content-Digest": "md5:1"})).ask(VLLM)
    assert (answer.outcome, answer.digest) == (outcome, None)
    assert says in answer.sentence


@pytest.mark.parametrize(
    "challenge", ['Basic realm="https://1.dkr.ecr.us-west-2.amazonaws.com/"', "Bearer", 'Bearer realm="::"', "x"]
)
def test_a_registry_without_anonymous_tokens_is_not_known(challenge: str) -> None:
    private = Registry(challenge, has_it)
    assert private.ask(VLLM).outcome == "not known"


@pytest.mark.parametrize(
    "answer", [httpx.Response(200, text="<html>"), httpx.Response(200, json=[1]), httpx.Response(500)]
)
def test_a_token_that_cannot_be_read_is_none(answer: httpx.Response) -> None:
    def wrong(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return answer
        return httpx.Response(401, headers={"WWW-Authenticate": 'Bearer realm="https://auth.docker.io/token"'})

    assert ask_registry(VLLM, transport=httpx.MockTransport(wrong)).outcome == "not known"


def test_a_rate_limit_of_the_token_service_is_one_of_the_registry() -> None:
    def limited(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return httpx.Response(429)
        return httpx.Response(401, headers={"WWW-Authenticate": 'Bearer realm="https://auth.docker.io/token"'})

    assert ask_registry(VLLM, transport=httpx.MockTransport(limited)).outcome == "rate limited"


def test_a_registry_out_of_reach_is_not_known() -> None:
    def silent(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("timed out")

    answer = ask_registry(VLLM, transport=httpx.MockTransport(silent))
    assert answer.outcome == "not known"
    assert "docker.io could not be asked (ConnectTimeout: timed out)" in answer.sentence
