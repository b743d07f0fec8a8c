"""The chart's hash follows what Helm reads of the chart, and nothing else."""

import shutil
from pathlib import Path

import pytest

from components.vllm import CHART_FOLDER, chart_hash


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CHART_FOLDER, tmp_path / "vllm"))


def test_a_copy_of_the_chart_has_the_same_hash(chart: Path) -> None:
    assert chart_hash(chart) == chart_hash(CHART_FOLDER)


def test_the_order_in_which_files_were_made_does_not_count(chart: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    for file in sorted((file for file in chart.rglob("*") if file.is_file()), reverse=True):
        copy = again / file.relative_to(chart)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    assert chart_hash(again) == chart_hash(chart)


@pytest.mark.parametrize("file", ["templates/service.yaml", "values.yaml", "Chart.yaml", "values.schema.json"])
def test_a_changed_file_changes_the_hash(chart: Path, file: str) -> None:
    before = chart_hash(chart)
    (chart / file).write_text((chart / file).read_text() + "\n")
    assert chart_hash(chart) != before


def test_a_new_name_or_a_moved_border_between_files_changes_the_hash(tmp_path: Path) -> None:
    contents = [
        {"a": "xy", "b": "z"},
        {"a": "x", "b": "yz"},
        {"a": "xy", "c": "z"},
        {"a": "xyz"},
        {"a/b": "z", "a.b": ""},
    ]
    hashes = set()
    for number, files in enumerate(contents):
        for name, text in files.items():
            file = tmp_path / str(number) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        hashes.add(chart_hash(tmp_path / str(number)))
    assert len(hashes) == len(contents)


LEFTOVERS = [".DS_Store", "templates/.service.yaml.swp", "templates/service.yaml~", "files/__pycache__/any.pyc"]


@pytest.mark.parametrize("name", LEFTOVERS)
def test_what_editors_and_python_leave_does_not_count(chart: Path, name: str) -> None:
    before = chart_hash(chart)
    (chart / name).parent.mkdir(parents=True, exist_ok=True)
    (chart / name).write_text("leftover")
    assert chart_hash(chart) == before
