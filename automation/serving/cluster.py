"""The session's Kubernetes API, read through kr8s.

kr8s keeps its loop in a daemon thread until the process ends, leaves the kubeconfig's keys behind in temporary files,
and ends a port-forward only when its last connection is closed. So its asynchronous half runs here in a loop of our
own, which ends with the `with` block and takes all of that along.
"""

import asyncio
import errno
import logging
import socket
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import anyio
import httpx
import kr8s
import kr8s.asyncio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from kr8s.asyncio.objects import APIObject, Pod, Service
from kr8s.asyncio.portforward import PortForward

from ..errors import ClusterFailed

T = TypeVar("T")

_log = logging.getLogger(__name__)

_READ_TIMEOUT_S = 10.0
# Signing in runs `aws eks get-token`, which starts slowly and asks STS.
_SIGN_IN_TIMEOUT_S = 30.0
_GOODBYE_S = 1.0
_PORT_TRIES = 5

# What kr8s lets through: its own errors, httpx's, the socket's and TLS's, an `aws` that is missing (OSError) or fails
# (RuntimeError), and ValueError or KeyError for a kubeconfig that says nothing usable.
_KR8S_ERRORS = (
    kr8s.ServerError,
    kr8s.NotFoundError,
    kr8s.APITimeoutError,
    kr8s.ConnectionClosedError,
    httpx.HTTPError,
    OSError,
    RuntimeError,
    ValueError,
    KeyError,
)


class Cluster:
    """A connection to the cluster that a kubeconfig names; use it as a context manager, from one thread.

    Nothing is read before the first call. Every call has a time limit and raises ClusterFailed, with the API server's
    own words, when it is not answered as asked.
    """

    def __init__(self, kubeconfig: Path, *, timeout_s: float = _READ_TIMEOUT_S) -> None:
        self._kubeconfig = kubeconfig
        self._timeout_s = timeout_s
        self._loop_thread = start_blocking_portal("asyncio")
        self._portal: BlockingPortal | None = None
        self._api: _Api | None = None

    def __enter__(self) -> Self:
        self._portal = self._loop_thread.__enter__()
        self._portal.call(_quiet_about_connections)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._running.call(self._hang_up)
        finally:
            self._loop_thread.__exit__(kind, error, trace)

    def objects(
        self, kind: type[APIObject], *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> tuple[Mapping[str, object], ...]:
        """The objects of a kind as the API server gives them; those that carry all of `labels`."""

        async def read(api: kr8s.asyncio.Api) -> tuple[Mapping[str, object], ...]:
            found = api.async_get(kind, namespace=namespace, label_selector=dict(labels or {}), raw=True)
            return tuple([item async for item in found if isinstance(item, dict)])

        return self._ask(read, f"reading {kind.plural}")

    def log(self, namespace: str, pod: str, container: str, *, lines: int) -> tuple[str, ...]:
        """The last lines of a container's log, each led by the kubelet's timestamp (RFC 3339)."""

        async def read(api: kr8s.asyncio.Api) -> tuple[str, ...]:
            found = await Pod.get(pod, namespace=namespace, api=api)
            log = found.async_logs(container=container, timestamps=True, tail_lines=lines, timeout=int(self._timeout_s))
            return tuple([line async for line in log])

        return self._ask(read, f"reading the log of pod {pod}")

    @contextmanager
    def forward(self, namespace: str, service: str, port: int) -> Iterator[int]:
        """A free port on 127.0.0.1 that reaches `port` of a ready pod of the Service while the block lasts.

        Each new connection goes to the pod of the last one and, where that is gone, to another that is ready.
        """

        async def ready_service(api: kr8s.asyncio.Api) -> Service:
            found = await Service.get(service, namespace=namespace, api=api)
            if not await found.async_ready_pods():
                raise kr8s.NotFoundError(f"no pod of Service {service} is ready")
            return found

        target = self._ask(ready_service, f"looking for a ready pod of Service {service}")
        with ExitStack() as forwarding:
            yield self._forwarded(target, port, forwarding)

    def _forwarded(self, target: Service, port: int, forwarding: ExitStack) -> int:
        # kr8s's own choice of a port is lost to whoever takes it before kr8s does, and a minute of a block with it.
        for attempt in range(1, _PORT_TRIES + 1):
            forward = PortForward(target, port, local_port=_free_port(), address="127.0.0.1")
            try:
                return forwarding.enter_context(self._running.wrap_async_context_manager(_bounded(forward)))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or attempt == _PORT_TRIES:
                    raise _failed("opening a port-forward", str(error)) from error
        raise AssertionError("the last attempt returns or raises")

    @property
    def _running(self) -> BlockingPortal:
        if self._portal is None:
            raise RuntimeError("a Cluster is used inside its `with` block")
        return self._portal

    def _ask(self, question: Callable[[kr8s.asyncio.Api], Awaitable[T]], doing: str) -> T:
        async def bounded() -> T:
            with anyio.fail_after(_SIGN_IN_TIMEOUT_S):
                api = await self._signed_in()
            with anyio.fail_after(self._timeout_s):
                return await question(api)

        try:
            return self._running.call(bounded)
        except TimeoutError as error:
            raise _failed(doing, "no answer in time") from error
        except _KR8S_ERRORS as error:
            raise _failed(doing, str(error) or type(error).__name__) from error

    async def _signed_in(self) -> kr8s.asyncio.Api:
        if self._api is None:
            self._api = await _Api(kubeconfig=str(self._kubeconfig), bypass_factory=True)
            self._api.timeout = self._timeout_s
        return self._api

    async def _hang_up(self) -> None:
        # kr8s has no way to close: its session would be told on as an unclosed transport.
        if self._api is not None and self._api._session is not None:
            await self._api._session.aclose()


class _Api(kr8s.asyncio.Api):
    """kr8s's API object with one HTTP client for as long as it lives, and no limit to that client's connections.

    kr8s makes a new client each time it signs in and closes the old one, which cuts every forwarded connection in the
    middle of its answer; and a token of EKS lasts 15 minutes. So the client stays, and only its token changes. kr8s's
    own would also hold 100 connections at most, while an OpenAI client opens up to 1,000.
    """

    async def _create_session(self) -> None:
        # kr8s has no hook for its client: it calls this before its first request, and whenever it has signed in again.
        if self._session is None:
            self._session = httpx.AsyncClient(
                base_url=self.auth.server,
                headers={"User-Agent": self.__version__},
                auth=_Token(self),
                verify=await self.auth.ssl_context(),  # type: ignore[no-untyped-call]
                timeout=self.timeout,
                follow_redirects=True,
                limits=httpx.Limits(max_connections=None),
                proxy=self.auth.proxy,
            )
        self._remove_key_files()

    async def sign_in_again(self) -> None:
        # A forwarded connection has no time limit of its own, and the others wait for this one.
        with anyio.fail_after(_SIGN_IN_TIMEOUT_S):
            await self.auth.reauthenticate()
        self._remove_key_files()

    def _remove_key_files(self) -> None:
        """Remove the copies of the kubeconfig's keys: each sign-in makes them, and only a new client reads them."""
        named_by_user = str(self.auth.kubeconfig.raw)
        for path in (self.auth.client_key_file, self.auth.client_cert_file, self.auth.server_ca_file):
            if path and Path(path).parent == Path(tempfile.gettempdir()) and str(path) not in named_by_user:
                Path(path).unlink(missing_ok=True)


class _Token(httpx.Auth):
    """Signs each request with the token of its moment; the first that is refused gets a new one for all."""

    def __init__(self, api: _Api) -> None:
        self._api = api
        self._renewing = anyio.Lock()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        refused = self._sign(request)
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            async with self._renewing:
                if self._api.auth.token == refused:
                    await self._api.sign_in_again()
            self._sign(request)
            response = yield request
            if response.status_code == httpx.codes.UNAUTHORIZED:
                # Told as a 401, kr8s would sign in three times more; `aws` takes a second or two each time.
                raise kr8s.ServerError("the API server refuses a new sign-in, too (401 Unauthorized)")

    def _sign(self, request: httpx.Request) -> str | None:
        token = self._api.auth.token
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        return token


@asynccontextmanager
async def _bounded(forward: PortForward) -> AsyncIterator[int]:
    """The forward, which at the end waits only a moment for connections that somebody still holds open."""
    port = await forward.__aenter__()  # type: ignore[no-untyped-call]
    try:
        yield port
    finally:
        with anyio.move_on_after(_GOODBYE_S, shield=True):
            await forward.__aexit__(None, None, None)  # type: ignore[no-untyped-call]


def _free_port() -> int:
    """A port that the system calls free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _quiet_about_connections() -> None:
    """A forwarded connection that breaks is told to its client; asyncio would print its traceback as well."""

    def note(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        _log.debug("a forwarded connection ended: %s", context.get("exception") or context.get("message"))

    asyncio.get_running_loop().set_exception_handler(note)


def _failed(doing: str, why: str) -> ClusterFailed:
    return ClusterFailed(
        happened=f"The cluster did not do what was asked while {doing}: {why}.",
        cost="The block's minutes go on.",
        remedy="Run `rentblock status`; it looks again.",
    )
