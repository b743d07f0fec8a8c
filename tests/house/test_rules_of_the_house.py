"""Rules that the source itself must keep; each guards money, a boundary, or a reader's trust."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("planning", "components", "automation", "rehearsal", "toolchain")


def modules() -> list[Path]:
    return sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))


def calls_named(*names: str) -> Iterator[tuple[str, str]]:
    """Modules that call a function or method of one of these names."""
    for file in modules():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in names:
                    yield str(file.relative_to(ROOT)), called


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_only_the_purchase_module_spends() -> None:
    spending = (
        "purchase_capacity_block",
        "purchase_capacity_block_extension",
        "create_training_plan",
        "extend_training_plan",
        "create_capacity_reservation",
    )
    assert set(calls_named(*spending)) == {("automation/market/purchase.py", "purchase_capacity_block")}


def test_the_purchase_is_never_a_pulumi_resource() -> None:
    assert not list(calls_named("CapacityBlockReservation", "get_capacity_block_offering"))


def test_only_settings_reads_the_configuration_of_pulumi() -> None:
    assert {module for module, _ in calls_named("Config") if module.startswith("components/")} <= {
        "components/settings.py"
    }


def test_components_read_no_clock_and_no_environment() -> None:
    found = [
        (str(file.relative_to(ROOT)), node.attr)
        for file in modules()
        if file.is_relative_to(ROOT / "components") or file.is_relative_to(ROOT / "planning")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "now", "utcnow", "today", "monotonic"}
    ]
    assert found == []


def test_no_module_is_called_after_nothing() -> None:
    names = {file.stem for file in modules()}
    assert not names & {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


@pytest.mark.parametrize(
    "package", [file.parent for file in modules() if file.name == "__init__.py"], ids=lambda folder: folder.name
)
def test_each_package_says_what_lives_where(package: Path) -> None:
    said = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    packages = (file.parent for file in package.glob("*/__init__.py"))
    named = [f"{each.name}/" for each in packages] + [file.name for file in package.glob("*.py")]
    assert [name for name in named if name not in said and name != "__init__.py"] == []


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    # Written in two halves, so that this file does not find itself.
    halves = (("pypi", r"\.org"), ("files.python", "hosted"), ("proxy", r"\.golang"), ("/wo", "rk/"))
    forbidden = re.compile("|".join(first + second for first, second in halves))
    found = []
    for file in tracked_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(ROOT)}: {match.group()}" for match in forbidden.finditer(text)]
    assert found == []


def test_requirements_are_pinned_with_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    requirements = re.split(r"\n(?=[a-z0-9])", lock.strip(), flags=re.IGNORECASE)
    unpinned = [text.split("\n")[0] for text in requirements if "==" not in text or "--hash=sha256:" not in text]
    assert unpinned == []
