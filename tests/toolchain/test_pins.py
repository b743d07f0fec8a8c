"""The real pins agree with the Go modules, and the cache key changes exactly when a build would."""

from importlib.metadata import version
from pathlib import Path

import pytest

from toolchain.pins import load_pins


def test_every_pin_has_a_go_module_that_requires_its_version() -> None:
    for pin in load_pins().pins:
        go_mod = (pin.module_folder / "go.mod").read_text()
        assert (pin.module_folder / "go.sum").stat().st_size > 1000, pin.name
        if pin.schema is not None:
            assert f"{pin.schema.module} v" in go_mod, pin.name
        elif pin.prepare is not None:
            # The version is that of the package that users install; the sources are pinned by checksum in trim/.
            assert version(pin.name) == pin.version
            assert (pin.module_folder / pin.prepare.folder / "go.mod").exists()
        else:
            assert f"v{pin.version}" in go_mod, pin.name


def test_every_program_of_a_toolchain_is_pinned_once() -> None:
    names = [program.name for pin in load_pins().pins for program in pin.programs]
    assert sorted(names) == [
        "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kwokctl", "pulumi",
        "pulumi-resource-aws", "pulumi-resource-kubernetes",
    ]  # fmt: skip


def test_the_go_modules_ask_for_the_go_that_the_pins_ask_for() -> None:
    pins = load_pins()
    for pin in pins.pins:
        assert f"\ngo {pins.go_minimum}\n" in (pin.module_folder / "go.mod").read_text(), pin.name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version = "1.2.3"', 'version = "1.2.4"'),
        ("example.com/alpha.Version={version}", "example.com/alpha.Release={version}"),
        ("example.com/alpha/cmd/one", "example.com/alpha/cmd/uno"),
    ],
)
def test_a_changed_pin_is_built_anew(world, old: str, new: str) -> None:
    text = (world.clone / "pins.toml").read_text()
    before = load_pins(world.clone / "pins.toml").pins[0].key()
    (world.clone / "pins.toml").write_text(text.replace(old, new))
    assert load_pins(world.clone / "pins.toml").pins[0].key() != before


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_a_changed_module_file_is_built_anew(world, name: str) -> None:
    pin = load_pins(world.clone / "pins.toml").pins[0]
    before = pin.key()
    (pin.module_folder / name).write_text("changed\n")
    assert pin.key() != before


def test_new_words_and_figures_build_nothing_anew(world) -> None:
    file: Path = world.clone / "pins.toml"
    before = [pin.key() for pin in load_pins(file).pins]
    file.write_text("# a comment\n" + file.read_text().replace('why = "tests"', 'why = "x"').replace("= 60", "= 61"))
    assert [pin.key() for pin in load_pins(file).pins] == before


@pytest.mark.parametrize(
    ("name", "found", "good"),
    [
        ("pulumi", "3.274.1", True),
        ("pulumi", "3.274.0", True),
        ("pulumi", "3.301.0", True),
        ("pulumi", "3.273.9", False),
        ("pulumi", "4.0.0", False),
        ("kubernetes", "1.35.0", True),
        ("kubernetes", "1.35.9", True),
        ("kubernetes", "1.34.4", False),
        ("kubernetes", "1.36.0", False),
        ("kwok", "0.8.0", True),
        ("kwok", "0.8.1", False),
        ("etcd", "3.6.1", True),
        ("etcd", "3.5.16", False),
        ("pulumi-kubernetes", "4.25.0", True),
        ("pulumi-kubernetes", "4.26.0", False),
    ],
)
def test_a_version_on_path_is_taken_or_refused(name: str, found: str, good: bool) -> None:
    [pin] = [pin for pin in load_pins().pins if pin.name == name]
    assert pin.accepts(found) is good
