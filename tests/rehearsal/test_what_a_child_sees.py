"""A stand-in never meets the real thing: what a child of a rehearsal gets to see."""

import socket
import struct
import threading
from pathlib import Path

import pytest
import yaml

from automation.errors import InvalidRequest
from rehearsal.control import ControlServer, WorldAddress, WorldUnreachable
from rehearsal.environment import WorldFolder, child_environment
from rehearsal.mirror import mirror, project_of, stack_names

# What a user's shell may hold that would let a child reach something real.
REAL = {
    "HOME": "/home/ana",
    "PATH": "/usr/bin",
    "TERM": "xterm",
    "LC_ALL": "es_AR.UTF-8",
    "AWS_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAREAL",
    "AWS_SECRET_ACCESS_KEY": "real",
    "AWS_SESSION_TOKEN": "real",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
    "KUBECONFIG": "/home/ana/.kube/config",
    "PULUMI_ACCESS_TOKEN": "pul-real",
    "PULUMI_BACKEND_URL": "s3://team-state",
    "PULUMI_CONFIG_PASSPHRASE_FILE": "/home/ana/passphrase",
    "HF_TOKEN": "hf_real",
}


@pytest.fixture
def seen(tmp_path: Path) -> dict[str, str]:
    return child_environment(
        world_id="w1",
        folder=WorldFolder(root=tmp_path),
        endpoint_url="http://127.0.0.1:1",
        region="us-west-2",
        kubeconfig=tmp_path / "kubeconfig",
        debug_providers="eks:2",
        aws_wait_percent=2,
        host=REAL,
    )


def test_no_value_of_the_users_environment_reaches_a_child_but_its_terminal_and_path(seen: dict[str, str]) -> None:
    passed_on = {name for name, value in REAL.items() if seen.get(name) == value}
    assert passed_on == {"TERM", "LC_ALL"}
    assert seen["PATH"].endswith("/usr/bin")
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "PULUMI_ACCESS_TOKEN"} & set(seen)


def test_a_child_can_ask_no_instance_metadata_and_reads_no_profile(seen: dict[str, str], tmp_path: Path) -> None:
    assert seen["AWS_EC2_METADATA_DISABLED"] == "true"
    for name in ("HOME", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "KUBECONFIG", "PULUMI_HOME"):
        assert Path(seen[name]).is_relative_to(tmp_path), name


def test_a_world_writes_its_salt_into_a_copy_of_the_stack_file(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "components").mkdir(parents=True)
    (checkout / "Pulumi.yaml").write_text("name: p\n")
    (checkout / "__main__.py").write_text("")
    original = "config: {p:model: kimi-k3}\nencryptionsalt: v1:real\nsecretsprovider: awskms://alias/team\n"
    (checkout / "Pulumi.dev.yaml").write_text(original)
    place = mirror(checkout, tmp_path / "mirror")
    assert yaml.safe_load((place / "Pulumi.dev.yaml").read_text()) == {"config": {"p:model": "kimi-k3"}}
    (place / "Pulumi.dev.yaml").write_text("encryptionsalt: v1:world\n")
    assert (checkout / "Pulumi.dev.yaml").read_text() == original
    assert (place / "components").resolve() == checkout / "components"


def test_dev_is_the_first_stack(tmp_path: Path) -> None:
    for name in ("ana", "dev", "zoe"):
        (tmp_path / f"Pulumi.{name}.yaml").touch()
    assert stack_names(tmp_path) == ("dev", "ana", "zoe")


def address(server: ControlServer, token: str) -> WorldAddress:
    return WorldAddress(
        control_url=server.url, token=token, endpoint_url="", region="us-west-2", account_id="1", registry_url=""
    )


def test_the_world_answers_only_who_knows_its_token(tmp_path: Path) -> None:
    server = ControlServer({"POST /advance": lambda body: {"until": body["until"]}})
    try:
        assert address(server, server.token).ask("POST", "/advance", until="noon") == {"until": "noon"}
        with pytest.raises(WorldUnreachable, match="another user"):
            address(server, "guess").ask("POST", "/advance", until="noon")
    finally:
        server.stop()


def test_an_ended_world_is_said_to_have_ended() -> None:
    server = ControlServer({})
    server.stop()
    with pytest.raises(WorldUnreachable, match="no longer answers"):
        address(server, server.token).ask("GET", "/now")


def test_an_asker_that_was_ended_while_it_waited_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    asked, ended = threading.Event(), threading.Event()

    def advance(_: object) -> object:
        asked.set()
        assert ended.wait(10)
        return {}

    server = ControlServer({"POST /advance": advance})
    before = set(threading.enumerate())
    try:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as asker:
            request = f"POST /advance HTTP/1.0\r\nAuthorization: Bearer {server.token}\r\n\r\n"
            asker.sendall(request.encode())
            assert asked.wait(10)
            # So the kernel ends the connections of a process that is killed with an answer unread.
            asker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        ended.set()
        for answering in set(threading.enumerate()) - before:
            answering.join(timeout=10)
    finally:
        server.stop()
    assert "Traceback" not in capfd.readouterr().err


def test_the_token_of_a_world_is_read_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "world.json"
    written = WorldAddress(control_url="u", token="t", endpoint_url="e", region="r", account_id="a", registry_url="i")
    written.write(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert WorldAddress.read(file) == written


def test_whoever_stands_in_a_sub_folder_stands_in_the_mirror_and_not_in_the_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "docs" / "es").mkdir(parents=True)
    (checkout / "docs" / "es" / "guía.md").touch()
    (checkout / "Pulumi.yaml").write_text("name: p\n")
    (checkout / "Pulumi.dev.yaml").write_text("encryptionsalt: v1:real\n")
    assert project_of(checkout / "docs" / "es") == checkout
    place = mirror(checkout, tmp_path / "mirror", Path("docs/es")) / "docs" / "es"
    assert place.resolve().is_relative_to(tmp_path / "mirror")
    assert (place / "guía.md").resolve() == checkout / "docs" / "es" / "guía.md"
    assert project_of(place.resolve()) == tmp_path / "mirror"


def test_a_folder_of_no_project_has_none(tmp_path: Path) -> None:
    assert project_of(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [("config:\n  a: [1\nb: {", "Pulumi.dev.yaml is no YAML in line"), ("- a", "Pulumi.dev.yaml holds no keys.")],
)
def test_a_stack_file_that_is_broken_is_named(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "Pulumi.dev.yaml").write_text(content)
    with pytest.raises(InvalidRequest) as caught:
        mirror(tmp_path / "checkout", tmp_path / "into")
    assert caught.value.happened.startswith(said)
