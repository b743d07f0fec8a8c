"""The engine works in the session's own folder, its words go to files, and nothing secret is in its arguments."""

import json
import os
import signal
import socket
import stat
import threading
import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pulumi import automation as auto

from automation.errors import ClusterFailed, EngineFailed, ExitCode
from automation.ledger.entries import Opened, OperationStarted
from automation.ledger.folder import SessionFolder, session_folder
from automation.ledger.journal import Journal
from automation.ledger.record import Record
from automation.ledger.request import RentRequest
from automation.session.engine import (
    FiledPulumi,
    diagnostics,
    engine_environment,
    locks,
    workspace_files,
)
from automation.session.outputs import api_key, read_outputs, write_outputs
from automation.session.stack_config import stack_config
from components.stack_file import each_key

with warnings.catch_warnings():
    # pulumi-eks warns while it is imported, whoever imports it.
    warnings.simplefilter("ignore", DeprecationWarning)
    from automation.session import child

OUTPUTS: Mapping[str, object] = {
    "cluster_name": "s",
    "kubeconfig": {"apiVersion": "v1", "users": []},
    "region": "us-west-2",
    "vpc_id": "vpc-1",
    "availability_zone_id": "usw2-az2",
    "gpu_node_group": "gpu",
    "namespace": "vllm",
    "service": "vllm",
    "served_model": "Kimi-K3",
}


def _config(record: Record) -> dict[str, str | list[str]]:
    assert record.block is not None
    return stack_config(record.request, record.block, record.image_digest)


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    folder = session_folder(tmp_path, "rtb-20261201-a1b2")
    folder.create()
    return folder


def test_the_program_takes_the_configuration_that_a_session_gives(record: Record) -> None:
    file, problems = each_key(_config(record))
    assert problems == []
    assert (file.reservation_id, file.weights, file.instance_count) == (
        "cr-0123456789abcdef0",
        "s3://store/kimi-k3",
        1,
    )


def test_a_session_works_in_a_folder_of_its_own_and_keeps_its_salt(folder: SessionFolder, record: Record) -> None:
    stack_file = folder.work / "Pulumi.rtb-20261201-a1b2.yaml"
    stack_file.write_text("encryptionsalt: v1:salt\nconfig:\n  rent-the-block:old: x\n")
    for _ in range(2):
        workspace_files(folder, _config(record))
    stack = yaml.safe_load(stack_file.read_text())
    assert stack["encryptionsalt"] == "v1:salt"
    assert stack["config"]["rent-the-block:endpointPublicAccessCidrs"] == ["192.0.2.1/32"]
    assert "rent-the-block:old" not in stack["config"]
    project = yaml.safe_load((folder.work / "Pulumi.yaml").read_text())
    assert project["config"] == {"pulumi:disable-default-providers": ["*"]}
    assert (folder.work / "charts").is_symlink()
    # The Kubernetes provider leaves kubeconfigs there: not in a place that all users of the machine share.
    temporary = Path(engine_environment(folder, {})["TMPDIR"])
    assert temporary.is_dir()
    assert temporary.is_relative_to(folder.root)


def test_the_passphrase_is_named_by_its_file_and_a_target_may_bring_a_backend(folder: SessionFolder) -> None:
    environment = engine_environment(folder, {})
    assert environment["PULUMI_BACKEND_URL"] == folder.state.as_uri()
    assert environment["PULUMI_CONFIG_PASSPHRASE_FILE"] == str(folder.passphrase)
    assert folder.passphrase.read_text() not in "".join(environment.values())
    given = engine_environment(folder, {"PULUMI_BACKEND_URL": "file:///world", "PULUMI_CONFIG_PASSPHRASE": "theirs"})
    assert given["PULUMI_BACKEND_URL"] == "file:///world"
    assert "PULUMI_CONFIG_PASSPHRASE" not in given


def test_a_destroy_deletes_what_others_made_beside_the_engine_and_spares_the_stacks_own(
    folder: SessionFolder, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    @contextmanager
    def others_deleted(target: object, session: str, own: frozenset[str]) -> Iterator[None]:
        done.append((target, session, own))
        yield
        done.append("end")

    monkeypatch.setattr(child, "others_deleted", others_deleted)
    resources = [{"urn": "urn:stack"}, {"urn": "urn:vpc", "id": "vpc-1"}, {"urn": "urn:group", "id": "sg-1"}]
    stack = SimpleNamespace(
        export_stack=lambda: auto.Deployment(version=3, deployment={"resources": resources}),
        destroy=lambda **_: done.append("destroy"),
    )
    work: Any = SimpleNamespace(folder=folder, record=record, target="aws", environment={}, stack=stack)
    child.destroy(work)
    assert done == [("aws", folder.session, {"vpc-1", "sg-1"}), "destroy", "end"]


@pytest.fixture
def pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands for the engine: it tells its arguments, and fails when it is told to."""
    program = tmp_path / "bin" / "pulumi"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nif [ "$1" = version ]; then echo v3.274.1; exit 0; fi\n'
        'echo "told $*"\necho "error: it broke" >&2\nexit ${EXIT:-0}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def test_long_commands_write_to_files_so_that_they_outlive_their_reader(pulumi: Path, tmp_path: Path) -> None:
    engine = FiledPulumi(tmp_path)
    result = engine.run(["up", "--yes"], str(tmp_path), {})
    assert (tmp_path / "up.out").read_text() == result.stdout
    assert f"--event-log {tmp_path}/up.events" in result.stdout
    engine.run(["stack", "output"], str(tmp_path), {})
    assert not (tmp_path / "stack.out").exists()


def test_a_failed_command_is_an_error_with_the_engines_words(pulumi: Path, tmp_path: Path) -> None:
    with pytest.raises(auto.CommandError, match="it broke"):
        FiledPulumi(tmp_path).run(["destroy"], str(tmp_path), {"EXIT": "255"})


def test_an_engine_that_was_killed_is_said_to_be(pulumi: Path, tmp_path: Path) -> None:
    pulumi.write_text('#!/bin/sh\nif [ "$1" = version ]; then echo v3.274.1; exit 0; fi\necho half; kill -9 $$\n')
    with pytest.raises(auto.CommandError) as caught:
        FiledPulumi(tmp_path).run(["up"], str(tmp_path), {})
    assert child._told("up", tmp_path, caught.value).startswith("The engine was ended by signal 9.")


def test_diagnostics_are_the_engines_own_errors_once_each(tmp_path: Path) -> None:
    events = [
        {"diagnosticEvent": {"severity": "info", "message": "fine"}},
        {"diagnosticEvent": {"severity": "error", "urn": "urn:pulumi:s::p::aws:eks::gpu", "message": "no\n capacity"}},
        {"diagnosticEvent": {"severity": "error", "urn": "urn:pulumi:s::p::aws:eks::gpu", "message": "no capacity"}},
        {"diagnosticEvent": {"severity": "error", "message": "update failed"}},
        {"diagnosticEvent": {"severity": "error", "message": "an unhandled error: update failed"}},
        {"summaryEvent": {}},
    ]
    file = tmp_path / "up.events"
    file.write_text("\n".join(json.dumps(event) for event in events) + '\n{"torn')
    assert diagnostics(file) == "gpu: no capacity; update failed"
    assert diagnostics(tmp_path / "none") == ""


@pytest.mark.parametrize("name", ["plain", "with space", "ñandú", "100%25", "a#b?c"])
def test_a_lock_is_known_by_its_holder(tmp_path: Path, name: str) -> None:
    backend = tmp_path / name
    place = backend / ".pulumi" / "locks" / "organization" / "rent-the-block" / "s"
    place.mkdir(parents=True)
    held = {"pid": 4711, "username": "u", "hostname": "h", "timestamp": "2026-12-01T11:30:00Z"}
    (place / "a.json").write_text(json.dumps(held))
    (place / "b.json").write_text("{half")
    assert [(lock.pid, lock.hostname) for lock in locks(backend.as_uri(), "s")] == [(4711, "h")]
    assert locks("s3://team", "s") == ()


def test_a_living_engine_elsewhere_is_never_cancelled(tmp_path: Path, folder: SessionFolder) -> None:
    place = tmp_path / ".pulumi" / "locks" / "organization" / "rent-the-block" / folder.session
    place.mkdir(parents=True)
    held = {"pid": 1, "username": "u", "hostname": "another-laptop", "timestamp": "2026-12-01T11:30:00Z"}
    (place / "a.json").write_text(json.dumps(held))
    with pytest.raises(EngineFailed, match="another-laptop holds the stack"):
        child._wait_for_the_stack(f"file://{tmp_path}", folder)


def test_a_lock_whose_pid_is_now_somebody_elses_holds_nobody_up(tmp_path: Path, folder: SessionFolder) -> None:
    place = tmp_path / ".pulumi" / "locks" / "organization" / "rent-the-block" / folder.session
    place.mkdir(parents=True)
    held = {"pid": os.getpid(), "username": "u", "hostname": socket.gethostname(), "timestamp": "2026-12-01T11:30:00Z"}
    (place / "a.json").write_text(json.dumps(held))
    child._wait_for_the_stack(f"file://{tmp_path}", folder)


def test_a_child_that_nobody_wrote_down_makes_nothing_and_leaves_no_word(
    folder: SessionFolder, rent_request: RentRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_LINE_LIMIT_S", 0.0)
    journal = Journal(folder.journal)
    now = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
    journal.write(Opened(at=now, session="s", mode="rehearsal", account_id="1", request=rent_request))
    # What a child sets for its whole process is not for this one.
    monkeypatch.setattr(child.signal, "signal", lambda *_: None)
    monkeypatch.setattr(child.os, "umask", lambda _: 0)
    place = folder.operation(1, "up")
    place.mkdir(parents=True)
    assert child.main(["up", str(folder.root), "1"]) == ExitCode.ENGINE
    # Its number is given to the next child, whose word it would be taken for.
    assert list(place.iterdir()) == []
    journal.write(OperationStarted(at=now, number=1, name="up", pid=os.getpid(), process_started=1.0))
    assert child._is_written_down(folder, 1)


def test_an_up_that_was_asked_to_stop_before_its_engine_began_begins_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_asked_to_stop", threading.Event())
    child._leave_it_to_the_engine(signal.SIGINT, None)
    work: Any = SimpleNamespace(target=SimpleNamespace(mode="rehearsal"))
    with pytest.raises(EngineFailed, match="before the engine began"):
        child.up(work)


class Stack:
    """What recovery does to a stack."""

    def __init__(self, pending: list[dict[str, Any]]) -> None:
        self.pending = pending
        self.done: list[Any] = []

    def cancel(self) -> None:
        self.done.append("cancel")

    def export_stack(self) -> Any:
        resources = [{"urn": "urn:k8s", "type": "kubernetes:helm.sh/v3:Release"}, {"urn": "urn:vpc", "type": "aws:ec2"}]
        deployment = {"pending_operations": self.pending, "resources": resources}
        return auto.Deployment(version=3, deployment=deployment)

    def import_stack(self, deployment: auto.Deployment) -> None:
        assert deployment.deployment == self.export_stack().deployment
        self.done.append("import")

    def refresh(self, **options: Any) -> None:
        self.done.append(("refresh", options["clear_pending_creates"], options["exclude"]))


# Of a kind that adoption does not look for.
_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
PENDING = {"type": "creating", "resource": {"type": _ATTACHMENT, "urn": "urn:attachment", "inputs": {}}}


@pytest.mark.parametrize(
    ("locked", "pending", "done"),
    [
        (False, [], []),
        (True, [], ["cancel"]),
        (True, [PENDING], ["cancel", "import", ("refresh", True, ["urn:k8s"])]),
    ],
)
def test_recovery_takes_a_dead_lock_away_and_asks_aws_what_was_being_made(
    folder: SessionFolder, record: Record, locked: bool, pending: list[dict[str, Any]], done: list[Any]
) -> None:
    if locked:
        place = folder.state / ".pulumi" / "locks" / "organization" / "rent-the-block" / folder.session
        place.mkdir(parents=True)
        held = {"pid": 1, "username": "u", "hostname": "h", "timestamp": "t"}
        (place / "a.json").write_text(json.dumps(held))
    stack: Any = Stack(pending)
    environment = engine_environment(folder, {})
    child._recover(
        child.Work(
            folder=folder,
            logs=folder.root,
            record=record,
            target=None,  # type: ignore[arg-type]
            environment=environment,
            stack=stack,
        )
    )
    assert stack.done == done


def test_outputs_are_kept_and_the_kubeconfig_is_private(folder: SessionFolder) -> None:
    assert read_outputs(folder) is None
    write_outputs(folder, OUTPUTS)
    outputs = read_outputs(folder)
    assert outputs is not None
    assert (outputs.gpu_node_group, outputs.served_model) == ("gpu", "Kimi-K3")
    assert json.loads(folder.kubeconfig.read_text()) == OUTPUTS["kubeconfig"]
    assert stat.S_IMODE(folder.kubeconfig.stat().st_mode) == 0o600
    assert "kubeconfig" not in folder.outputs.read_text()
    with pytest.raises(EngineFailed, match="without its output 'service'"):
        write_outputs(folder, {name: value for name, value in OUTPUTS.items() if name != "service"})


class Cluster:
    """A cluster with these Secrets."""

    def __init__(self, *secrets: dict[str, Any]) -> None:
        self.secrets = secrets

    def objects(self, kind: object, *, namespace: str) -> tuple[dict[str, Any], ...]:
        return self.secrets


def test_the_api_key_is_read_once_from_its_secret_and_kept_private(folder: SessionFolder) -> None:
    helm = {"metadata": {"name": "sh.helm.release.v1.vllm.v1"}, "data": {"release": "x"}}
    secret = {"metadata": {"name": "vllm-api-key"}, "data": {"api-key": b64encode(b"the key").decode()}}
    cluster: Any = Cluster(helm, secret)
    assert api_key(folder, cluster, "vllm") == "the key"
    assert stat.S_IMODE(folder.api_key.stat().st_mode) == 0o600
    nobody: Any = Cluster()
    assert api_key(folder, nobody, "vllm") == "the key"


def test_a_cluster_without_the_key_is_named(folder: SessionFolder) -> None:
    cluster: Any = Cluster({"metadata": {"name": "vllm-api-key"}, "data": {}})
    with pytest.raises(ClusterFailed, match="holds no api-key"):
        api_key(folder, cluster, "vllm")
