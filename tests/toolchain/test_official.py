"""The vendors' own downloads, against a loopback server that stands in for all of them.

No vendor is reachable from where this was written: addresses and forms come from their documents (toolchain/pins.toml).
"""

import hashlib
import io
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from toolchain import network as network_module
from toolchain import official
from toolchain.errors import ToolchainError
from toolchain.network import Network
from toolchain.pins import load_pins

TARBALL = """
kind = "tarball"
url = "https://vendor.example/v{version}/beta-{os}.tar.gz"
checksum_url = "https://vendor.example/v{version}/SHA256SUMS"
folder = "beta-{version}"
"""
BINARIES = """
kind = "binaries"
url = "https://other.example/v{version}/{program}"
checksum_url = "https://other.example/v{version}/{program}.sha256"
"""
TAR_PATH = "/vendor.example/v4.5.6/beta-linux.tar.gz"
SUMS_PATH = "/vendor.example/v4.5.6/SHA256SUMS"
ALPHA_SCRIPT = b"#!/bin/sh\necho 'alpha v1.2.3'\n"
BETA_SCRIPT = b"#!/bin/sh\necho 'beta Version: 4.5.6'\n"


class Vendor:
    """What the loopback server answers, and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.statuses: dict[str, int] = {}
        self.short_by = 0
        self.asked: list[str] = []
        self.base = ""

    def offer_alpha(self) -> None:
        for name in ("alpha-one", "alpha-two"):
            self.files[f"/other.example/v1.2.3/{name}"] = ALPHA_SCRIPT
            self.files[f"/other.example/v1.2.3/{name}.sha256"] = hashlib.sha256(ALPHA_SCRIPT).hexdigest().encode()

    def offer_beta(self, folder: str = "beta-4.5.6") -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in (("beta", BETA_SCRIPT), ("beta-language-host", b"beside it")):
                member = tarfile.TarInfo(f"{folder}/{name}")
                member.size, member.mode = len(content), 0o755
                tar.addfile(member, io.BytesIO(content))
        self.files[TAR_PATH] = buffer.getvalue()
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        self.files[SUMS_PATH] = f"{'0' * 64}  other.tar.gz\n{digest} *beta-linux.tar.gz\n".encode()


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    made = Vendor()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            body = made.files.get(self.path)
            self.send_response(made.statuses.get(self.path, 200 if body is not None else 404))
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write((body or b"")[: len(body or b"") - made.short_by])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    made.base = f"http://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


@pytest.fixture
def silent_base() -> Iterator[str]:
    """A server that takes connections and never says a word, as some firewalls do."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses above are those for Linux on a PC, and no proxy stands between us and the loopback."""
    monkeypatch.setattr("toolchain.pins.go_os", lambda: "linux")
    monkeypatch.setattr("toolchain.official.go_os", lambda: "linux")
    monkeypatch.setattr("toolchain.official.go_arch", lambda: "amd64")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_tarball_is_checked_and_unpacked_whole(with_official: Callable[..., object], vendor: Vendor) -> None:
    world = with_official(beta=TARBALL)
    world.official_base = vendor.base
    vendor.offer_beta()
    beta = world.obtain()["beta"]
    assert beta.way == "official"
    assert beta.path.read_bytes() == BETA_SCRIPT
    assert beta.path.with_name("beta-language-host").read_bytes() == b"beside it"
    assert "example.com/beta" not in world.builds()


def test_single_binaries_are_checked_and_made_executable(with_official, vendor: Vendor) -> None:
    world = with_official(alpha=BINARIES)
    world.official_base = vendor.base
    vendor.offer_alpha()
    parts = world.obtain()
    assert [parts[name].way for name in ("alpha-one", "alpha-two", "beta")] == ["official", "official", "built"]
    assert world.obtain() == parts
    assert len(vendor.asked) == 4
    assert world.leftovers() == []


def test_a_wrong_checksum_is_thrown_away_and_built(with_official, vendor: Vendor) -> None:
    world = with_official(alpha=BINARIES)
    world.official_base = vendor.base
    vendor.offer_alpha()
    vendor.files["/other.example/v1.2.3/alpha-two.sha256"] = b"0" * 64
    assert world.obtain()["alpha-one"].way == "built"
    assert "the checksum of https://other.example/v1.2.3/alpha-two is not the vendor's" in world.printed()


def test_a_checksum_file_that_does_not_name_the_file_does_not_count(with_official, vendor: Vendor) -> None:
    world = with_official(beta=TARBALL)
    world.official_base = vendor.base
    vendor.offer_beta()
    vendor.files[SUMS_PATH] = b"0" * 64 + b"  another.tar.gz\n" + b"1" * 64 + b"  third.tar.gz\n"
    assert world.obtain()["beta"].way == "built"


def test_a_binary_of_another_version_is_refused(with_official, vendor: Vendor) -> None:
    world = with_official(
        alpha=BINARIES.replace('checksum_url = "https://other.example/v{version}/{program}.sha256"', "")
    )
    world.official_base = vendor.base
    vendor.files["/other.example/v1.2.3/alpha-one"] = b"#!/bin/sh\necho 'alpha v1.2.4'\n"
    vendor.files["/other.example/v1.2.3/alpha-two"] = ALPHA_SCRIPT
    assert world.obtain()["alpha-one"].way == "built"
    assert "alpha-one says it is version 1.2.4" in world.printed()


def test_an_archive_of_another_shape_is_refused(with_official, vendor: Vendor) -> None:
    world = with_official(beta=TARBALL)
    world.official_base = vendor.base
    vendor.offer_beta(folder="something-else")
    assert world.obtain()["beta"].way == "built"


@pytest.mark.parametrize("form", ["../../../outside", "{absolute}/outside"])
def test_an_archive_cannot_write_outside_its_folder(with_official, vendor: Vendor, tmp_path: Path, form: str) -> None:
    world = with_official(beta=TARBALL)
    world.official_base = vendor.base
    vendor.offer_beta(folder=form.format(absolute=tmp_path))
    assert world.obtain()["beta"].way == "built"
    assert list(tmp_path.rglob("outside")) == []


def test_a_file_that_the_vendor_lacks_does_not_stop_other_downloads(with_official, vendor: Vendor) -> None:
    world = with_official(alpha=BINARIES, beta=TARBALL)
    world.official_base = vendor.base
    vendor.offer_beta()
    parts = world.obtain()
    assert (parts["alpha-one"].way, parts["beta"].way) == ("built", "official")


def test_a_firewall_that_refuses_is_asked_once(with_official, vendor: Vendor) -> None:
    world = with_official(alpha=BINARIES, beta=TARBALL)
    world.official_base = vendor.base
    vendor.offer_alpha()
    vendor.offer_beta()
    vendor.statuses = dict.fromkeys(vendor.files, 403)
    parts = world.obtain()
    assert {part.way for part in parts.values()} == {"built"}
    assert len(vendor.asked) == 1
    assert world.printed().count("Building it instead") == 1


def test_a_download_that_breaks_off_is_never_taken(with_official, vendor: Vendor) -> None:
    world = with_official(
        alpha=BINARIES.replace('checksum_url = "https://other.example/v{version}/{program}.sha256"', "")
    )
    world.official_base = vendor.base
    vendor.offer_alpha()
    vendor.short_by = 1
    assert world.obtain()["alpha-one"].way == "built"


def test_a_network_that_says_nothing_costs_its_patience_once(
    with_official, silent_base: str, hasty_network: Network
) -> None:
    world = with_official(alpha=BINARIES, beta=TARBALL)
    world.official_base = silent_base
    started = time.monotonic()
    assert {part.way for part in world.obtain(network=hasty_network).values()} == {"built"}
    assert time.monotonic() - started < 10
    assert "nothing came from" in world.printed()
    assert world.printed().count("Building it instead") == 1


def test_looking_up_a_name_for_ever_costs_its_patience_once(
    with_official, hasty_network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = with_official(alpha=BINARIES, beta=TARBALL)
    release = threading.Event()

    def never(*_: object, **__: object) -> None:
        release.wait(20)
        raise OSError("released")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    started = time.monotonic()
    assert {part.way for part in world.obtain(network=hasty_network).values()} == {"built"}
    assert time.monotonic() - started < 10
    assert world.printed().count("Building it instead") == 1
    release.set()


def test_an_unreachable_network_costs_at_most_ten_seconds() -> None:
    # One wait in a run, and what comes before the next way (ending the transfer, taking the lock) is milliseconds.
    assert network_module.FIRST_BYTE_SECONDS <= 9


def test_nobody_listening_costs_nothing(with_official) -> None:
    world = with_official(alpha=BINARIES)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        world.official_base = f"http://127.0.0.1:{unused.getsockname()[1]}"
        started = time.monotonic()
        assert world.obtain()["alpha-one"].way == "built"
    assert time.monotonic() - started < 5


def test_a_platform_without_a_download_is_built(with_official, vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchain.official.go_arch", lambda: "riscv64")
    world = with_official(alpha=BINARIES)
    world.official_base = vendor.base
    assert world.obtain()["alpha-one"].way == "built"
    assert vendor.asked == []


@pytest.mark.parametrize("base", ["http://192.0.2.1:80", "https://vendor.example", "file:///tmp"])
def test_only_a_loopback_server_may_stand_in_for_the_vendors(world, base: str) -> None:
    world.official_base = base
    with pytest.raises(ToolchainError, match="loopback"):
        world.surroundings()


ENGINE = """
[[pin]]
name = "pulumi"
version = "3.274.1"
why = "tests"
accept = "minor-or-later"
measured = { seconds = 1, megabytes = 1 }
[[pin.program]]
name = "pulumi"
package = "example.com/pulumi"
version_command = ["version"]
version_pattern = '^v(\\d+\\.\\d+\\.\\d+)'
[pin.go]
ldflags = []

[[pin]]
name = "provider"
version = "4.25.0"
why = "tests"
accept = "exact"
measured = { seconds = 1, megabytes = 1 }
[[pin.program]]
name = "pulumi-resource-kubernetes"
package = "."
plugin = "resource-kubernetes-v{version}"
[pin.go]
ldflags = []
[pin.official]
kind = "plugin"
platforms = ["linux/amd64"]
url = "https://vendor.example/plugins/pulumi-resource-kubernetes-v{version}.tar.gz"
"""
# Does what `pulumi plugin install` does, as far as the folder goes, and notes how it was called.
FAKE_PULUMI = """#!/bin/sh
if [ "$1" = version ]; then echo v3.280.0; exit 0; fi
echo "$@" > {calls}
PATH=/usr/bin:/bin
folder="$PULUMI_HOME/plugins/resource-kubernetes-v4.25.0"
mkdir -p "$folder"
printf '#!/bin/sh\\n' > "$folder/pulumi-resource-kubernetes"
chmod +x "$folder/pulumi-resource-kubernetes"
{then}
"""
PLUGIN_PATH = "/vendor.example/plugins/pulumi-resource-kubernetes-v4.25.0.tar.gz"


def engine_world(world, then: str = "exit 0"):
    world.write_pins('go_minimum = "1.26.6"\n' + ENGINE)
    world.program(world.bin / "pulumi", FAKE_PULUMI.format(calls=world.folder / "calls", then=then))
    return world


def test_the_provider_is_installed_by_the_engine(world, vendor: Vendor) -> None:
    engine_world(world).official_base = vendor.base
    vendor.files[PLUGIN_PATH] = b"an archive"
    part = world.obtain()["pulumi-resource-kubernetes"]
    assert part.way == "official"
    assert part.path.parent.parent == world.cache
    called = (world.folder / "calls").read_text()
    assert called == f"plugin install resource kubernetes 4.25.0 --server {vendor.base}/vendor.example/plugins\n"
    assert not (world.folder / "home" / ".pulumi").exists()


def test_the_engine_is_not_let_loose_on_a_dead_network(world, silent_base: str, hasty_network: Network) -> None:
    engine_world(world).official_base = silent_base
    assert world.obtain(network=hasty_network)["pulumi-resource-kubernetes"].way == "built"
    assert not (world.folder / "calls").exists()


def test_a_provider_that_the_engine_cannot_install_is_built(world, vendor: Vendor) -> None:
    engine_world(world, then="echo 'error: no' >&2; exit 255").official_base = vendor.base
    vendor.files[PLUGIN_PATH] = b"an archive"
    assert world.obtain()["pulumi-resource-kubernetes"].way == "built"
    assert "did not install pulumi-resource-kubernetes: error: no" in world.printed()


def test_the_real_download_addresses_are_complete() -> None:
    for pin in load_pins().pins:
        assert pin.official is not None
        for text in (pin.official.url, pin.official.checksum_url or ""):
            assert "{" not in pin.fill(text, pin.programs[0].name)


def test_a_vendors_own_name_of_the_processor_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchain.pins.go_arch", lambda: "amd64")
    [pulumi] = [pin for pin in load_pins().pins if pin.name == "pulumi"]
    assert pulumi.official is not None
    assert pulumi.fill(pulumi.official.url).endswith("/pulumi-v3.274.1-linux-x64.tar.gz")


def test_without_a_stand_in_the_vendors_address_is_used(world) -> None:
    assert official.address(world.surroundings(), "https://vendor.example/a") == "https://vendor.example/a"
