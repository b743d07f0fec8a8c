"""The provider reaches an engine without PATH and without a copy of its 300 MB."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from toolchain import ToolchainError, install_plugin, locate

LAID_OUT = Path("plugins/resource-kubernetes-v4.25.0/pulumi-resource-kubernetes")


@pytest.fixture
def provider(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "pulumi-resource-kubernetes"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_provider_is_linked_and_not_copied(tmp_path: Path, provider: Path) -> None:
    home = tmp_path / "home"
    assert install_plugin(home, provider) == home / LAID_OUT
    assert (home / LAID_OUT).samefile(provider)


def test_linking_again_changes_nothing(tmp_path: Path, provider: Path) -> None:
    for _ in range(3):
        install_plugin(tmp_path / "home", provider)
    assert [path.name for path in (tmp_path / "home" / LAID_OUT).parent.iterdir()] == ["pulumi-resource-kubernetes"]


def test_another_provider_in_its_place_is_replaced(tmp_path: Path, provider: Path) -> None:
    target = tmp_path / "home" / LAID_OUT
    target.parent.mkdir(parents=True)
    target.write_text("an older build")
    install_plugin(tmp_path / "home", provider)
    assert target.samefile(provider)


def test_a_mark_of_a_broken_installation_is_removed(tmp_path: Path, provider: Path) -> None:
    mark = (tmp_path / "home" / LAID_OUT).parent.with_name("resource-kubernetes-v4.25.0.partial")
    mark.parent.mkdir(parents=True)
    mark.touch()
    install_plugin(tmp_path / "home", provider)
    assert not mark.exists()


def test_across_file_systems_the_link_is_symbolic(
    tmp_path: Path, provider: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    install_plugin(tmp_path / "home", provider)
    assert (tmp_path / "home" / LAID_OUT).readlink() == provider


def test_many_callers_link_into_one_home_at_once(tmp_path: Path, provider: Path) -> None:
    done: list[Path] = []
    threads = [
        threading.Thread(target=lambda: done.append(install_plugin(tmp_path / "home", provider))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(done) == 8
    assert (tmp_path / "home" / LAID_OUT).samefile(provider)


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path, provider: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(ToolchainError, match="Give a PULUMI_HOME that you may write to"):
        install_plugin(tmp_path / "home", provider)


@pytest.mark.engine
def test_the_real_engine_takes_the_linked_provider(tmp_path: Path) -> None:
    try:
        toolchain = locate()
    except ToolchainError as error:
        pytest.skip(error.message)
    install_plugin(tmp_path, toolchain.pulumi_resource_kubernetes)
    environment = os.environ | {
        "PULUMI_HOME": str(tmp_path),
        "PULUMI_BACKEND_URL": f"file://{tmp_path}",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }
    # Asks the provider itself for its schema, over gRPC: the engine has found, started and spoken with it.
    answer = subprocess.run(
        [toolchain.pulumi, "package", "get-schema", "kubernetes@4.25.0"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["version"] == "4.25.0"
