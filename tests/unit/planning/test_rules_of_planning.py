"""Planning can be asked anywhere: it pulls in nothing, and takes no time to load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from planning import catalogue

MODULES = sorted(Path(catalogue.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_planning_imports_the_standard_library_and_itself(module: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    assert imported - {"planning"} <= sys.stdlib_module_names


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_planning_reads_no_clock(module: Path) -> None:
    text = module.read_text()
    assert ".now(" not in text
    assert "import time\n" not in text
    assert "environ" not in text


def test_asking_the_catalogue_imports_no_library() -> None:
    script = (
        "import sys; from planning.catalogue import load; import planning.ranking; load(); "
        "print(sorted(set(sys.modules) & {'pulumi', 'boto3', 'pydantic', 'pulumi_aws', 'asyncio'}))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.strip() == "[]"
