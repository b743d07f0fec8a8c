"""Providers reach an engine without PATH and without a copy of their hundreds of megabytes."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.toolchain.conftest import World
from toolchain import ToolchainError, install_plugins, locate
from toolchain.cache import folder_of
from toolchain.plugin import install_plugins as install_from

PINS = """
go_minimum = "1.26.6"

[[pin]]
name = "alpha"
version = "1.2.3"
why = "tests"
accept = "exact"
ways = ["build", "found", "download"]
measured = { seconds = 60, megabytes = 1 }
[[pin.program]]
name = "pulumi-resource-alpha"
package = "example.com/alpha"
plugin = "resource-alpha-v{version}"
[pin.go]
ldflags = []
[pin.go.prepare]
folder = "trim"
arguments = ["run", ".", ".."]

[[pin]]
name = "no-plugin"
version = "4.5.6"
why = "tests"
accept = "exact"
measured = { seconds = 10, megabytes = 1 }
[[pin.program]]
name = "beta"
package = "example.com/beta"
version_command = ["--version"]
version_pattern = 'beta Version: (\\d+\\.\\d+\\.\\d+)'
[pin.go]
ldflags = []
"""
LAID_OUT = Path("plugins/resource-alpha-v1.2.3/pulumi-resource-alpha")


@pytest.fixture
def plugins(world: World) -> World:
    """A machine that has built its one provider."""
    world.write_pins(PINS)
    (world.clone / "modules/alpha/trim").mkdir()
    world.obtain()
    return world


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "pulumi-home"


def built(world: World) -> Path:
    [path] = world.cache.glob("alpha-*/pulumi-resource-alpha")
    return path


def test_a_provider_is_linked_and_not_copied(plugins: World, home: Path) -> None:
    assert install_from(home, plugins.surroundings()) == [home / LAID_OUT]
    assert (home / LAID_OUT).samefile(built(plugins))


def test_linking_again_changes_nothing(plugins: World, home: Path) -> None:
    for _ in range(3):
        install_from(home, plugins.surroundings())
    assert [path.name for path in (home / LAID_OUT).parent.iterdir()] == ["pulumi-resource-alpha"]


def test_another_provider_in_its_place_is_replaced(plugins: World, home: Path) -> None:
    target = home / LAID_OUT
    target.parent.mkdir(parents=True)
    target.write_text("an older build")
    install_from(home, plugins.surroundings())
    assert target.samefile(built(plugins))


def test_a_mark_of_an_interrupted_installation_is_removed(plugins: World, home: Path) -> None:
    mark = (home / LAID_OUT).parent.with_name("resource-alpha-v1.2.3.partial")
    mark.parent.mkdir(parents=True)
    mark.touch()
    install_from(home, plugins.surroundings())
    assert not mark.exists()


def test_across_file_systems_the_link_is_symbolic(plugins: World, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    install_from(home, plugins.surroundings())
    assert (home / LAID_OUT).readlink() == built(plugins)


def test_many_callers_link_into_one_home_at_the_same_time(plugins: World, home: Path) -> None:
    done: list[list[Path]] = []
    threads = [
        threading.Thread(target=lambda: done.append(install_from(home, plugins.surroundings()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(done) == 8
    assert (home / LAID_OUT).samefile(built(plugins))


def test_a_home_that_cannot_be_written_is_one_sentence(plugins: World, home: Path) -> None:
    home.write_text("a file")
    with pytest.raises(ToolchainError, match="Give a PULUMI_HOME that you may write to"):
        install_from(home, plugins.surroundings())


def test_a_missing_provider_names_the_command_that_gets_it(world: World, home: Path) -> None:
    world.write_pins(PINS)
    with pytest.raises(ToolchainError, match="python -m toolchain ensure"):
        install_from(home, world.surroundings())


def test_a_build_runs_its_preparation_first(plugins: World) -> None:
    assert plugins.builds()[:2] == ["trim", "example.com/alpha"]


def test_a_preferred_build_is_made_although_the_plugin_is_installed(world: World) -> None:
    world.write_pins(PINS)
    (world.clone / "modules/alpha/trim").mkdir()
    installed = world.says(world.folder / "home/.pulumi" / LAID_OUT, "x")
    part = world.obtain()["pulumi-resource-alpha"]
    assert part.way == "built"
    assert part.path != installed


def test_without_go_the_installed_plugin_is_taken(world: World) -> None:
    world.write_pins(PINS)
    (world.bin / "go").unlink()
    world.says(world.bin / "beta", "beta Version: 4.5.6")
    installed = world.says(world.folder / "home/.pulumi" / LAID_OUT, "x")
    part = world.obtain()["pulumi-resource-alpha"]
    assert (part.way, part.path) == ("path", installed)


def test_without_go_and_without_a_vendor_the_error_names_both_remedies(world: World) -> None:
    world.write_pins(PINS)
    (world.bin / "go").unlink()
    with pytest.raises(ToolchainError, match="Check the network, or install Go"):
        world.obtain()


def test_the_official_plugin_has_a_folder_of_its_own_and_is_never_built(plugins: World) -> None:
    surroundings = plugins.surroundings()
    official = next(pin for pin in surroundings.pins.official_only("alpha").pins if pin.name == "alpha")
    assert official.ways == ("found", "download")
    ours = next(pin for pin in surroundings.pins.pins if pin.name == "alpha")
    assert folder_of(plugins.cache, official) != folder_of(plugins.cache, ours)


@pytest.mark.engine
def test_the_real_engine_takes_the_linked_providers(tmp_path: Path) -> None:
    try:
        toolchain = locate()
    except ToolchainError as error:
        pytest.skip(error.message)
    install_plugins(tmp_path)
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
