"""No unit test reaches beyond this machine: what would is a call that the test has forgotten to answer."""

import ipaddress
import socket
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _nobody_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and not ipaddress.ip_address(address[0]).is_loopback:
            raise AssertionError(f"a unit test reaches for {address}")
        connect(self, address)

    def resolve_here(host: Any, *given: Any, **more: Any) -> Any:
        if host not in (None, "localhost", b"localhost") and not _is_address(host):
            raise AssertionError(f"a unit test asks where {host} is")
        return resolve(host, *given, **more)

    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", connect_here)
    monkeypatch.setattr(socket, "getaddrinfo", resolve_here)


def _is_address(host: Any) -> bool:
    try:
        ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host)
    except ValueError:
        return False
    return True
