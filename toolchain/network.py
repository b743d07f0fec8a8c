"""Downloads that give up quickly: an unreachable network costs seconds, once in a run, and then is not asked again.

The transfer runs in a thread that is left behind when it stalls. That is the only way to bound everything: looking up a
name, for one, knows no time limit.
"""

import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from .errors import OfficialFailed

# Name, connection, TLS, redirects and the first byte: together they must leave room within the ten seconds that an
# unreachable network may cost a user before the next way is tried.
FIRST_BYTE_SECONDS = 8.0
# Once bytes have come the network is there: a pause may be longer.
STALL_SECONDS = 30.0
_CHUNK_BYTES = 1 << 16


@dataclass(kw_only=True)
class Network:
    """The network as this run has found it. `unreachable` holds the reason once one download has failed."""

    first_byte_seconds: float = FIRST_BYTE_SECONDS
    stall_seconds: float = STALL_SECONDS
    unreachable: str | None = None

    def reach(self, url: str) -> None:
        """Return when the address answers with a first byte; raises OfficialFailed."""
        chunks = self._chunks(url)
        next(chunks, None)
        chunks.close()

    def download(self, url: str, target: Path, tick: Callable[[str], None]) -> None:
        """Fetch an address into a file; raises OfficialFailed, or OSError when the file cannot be written."""
        with target.open("wb") as file:
            for transfer in self._chunks(url):
                file.write(transfer.chunk)
                tick(f"{file.tell() >> 20} MB of {transfer.total >> 20} MB" if transfer.total else "")

    def text(self, url: str) -> str:
        """Fetch a small text, such as a checksum file; raises OfficialFailed."""
        return b"".join(transfer.chunk for transfer in self._chunks(url)).decode(errors="replace")

    def _chunks(self, url: str) -> "Generator[_Transfer, None, None]":
        if self.unreachable:
            raise OfficialFailed(self.unreachable)
        fetcher = _Fetcher(url=url, socket_seconds=self.stall_seconds)
        threading.Thread(target=fetcher.run, name=f"download {url}", daemon=True).start()
        patience = self.first_byte_seconds
        received = 0
        try:
            while True:
                item = fetcher.items.get(timeout=patience)
                if isinstance(item, BaseException):
                    raise item
                if item.end:
                    if item.total and received != item.total:
                        raise ConnectionError(f"{received} of {item.total} bytes came")
                    return
                received += len(item.chunk)
                patience = self.stall_seconds
                yield item
        except urllib.error.HTTPError as error:
            # The vendor is there but has no such file: that says nothing about the others.
            if error.code != 404:
                self.unreachable = f"{url} answered {error.code} {error.reason}"
            raise OfficialFailed(f"{url} answered {error.code} {error.reason}") from error
        except queue.Empty as error:
            self.unreachable = f"nothing came from {url} for {patience:.0f} s"
            raise OfficialFailed(self.unreachable) from error
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            self.unreachable = f"{url} could not be read ({getattr(error, 'reason', error)})"
            raise OfficialFailed(self.unreachable) from error
        finally:
            fetcher.abandoned.set()


@dataclass(frozen=True, kw_only=True)
class _Transfer:
    chunk: bytes = b""
    total: int = 0
    end: bool = False


@dataclass(kw_only=True)
class _Fetcher:
    """Reads one address in a thread and hands chunks over; ends by itself soon after it was abandoned."""

    url: str
    socket_seconds: float
    items: "queue.Queue[_Transfer | Exception]" = field(default_factory=lambda: queue.Queue(maxsize=16))
    abandoned: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        try:
            with urllib.request.urlopen(self.url, timeout=self.socket_seconds) as answer:
                total = int(answer.headers.get("Content-Length") or 0)
                while chunk := answer.read(_CHUNK_BYTES):
                    if not self._hand_over(_Transfer(chunk=chunk, total=total)):
                        return
            self._hand_over(_Transfer(total=total, end=True))
        except urllib.error.HTTPError as error:
            error.close()
            self._hand_over(error)
        except OSError as error:
            self._hand_over(error)
        except (HTTPException, ValueError) as error:  # an answer that is no HTTP: a firewall's page, a broken proxy
            self._hand_over(ConnectionError(repr(error)))

    def _hand_over(self, item: "_Transfer | Exception") -> bool:
        while not self.abandoned.is_set():
            try:
                self.items.put(item, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False
