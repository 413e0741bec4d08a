"""Test who may import whom. The packages are the trust boundary, so these are privacy tests.

The contracts are in pyproject.toml (`lint-imports` checks them). The two laws below are ours.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("federation", "parties", "aggregator", "scenarios")
# Users and the rim use what these packages of the common ground offer, so one side may be enough.
OPEN = ("federation.contract", "federation.mechanisms", "federation.engines", "federation.queries")
# One import against every contract, in their order: the importing module and the imported one.
BREACHES = (
    ("parties/app.py", "aggregator.trial.plan"),
    ("federation/contract/errors.py", "federation.contract.query"),
    ("aggregator/protocols/label_sums.py", "aggregator.protocols.majority_vote"),
    ("scenarios/runs/runner.py", "aggregator.protocols.majority_vote"),
    ("aggregator/trial/plan.py", "flwr.app"),
    ("parties/app.py", "ray"),
    ("aggregator/trial/plan.py", "yaml"),
    ("parties/app.py", "pydantic"),
    ("scenarios/runs/runner.py", "sqlalchemy"),
    ("federation/contract/query.py", "sklearn.base"),
)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All modules of the four packages and their imports, those for types and those inside functions included."""
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def outward(graph: grimp.ImportGraph) -> list[str]:
    """Imports of a module that lies directly in a folder around the importing module's folder."""
    found = []
    for source in sorted(graph.modules):
        folder = source if graph.find_children(source) else source.rpartition(".")[0]
        for target in graph.find_modules_directly_imported_by(source):
            around = target if graph.find_children(target) else target.rpartition(".")[0]
            if folder.startswith(f"{around}."):
                found.append(f"{source} -> {target}")
    return found


def one_sided(graph: grimp.ImportGraph) -> list[str]:
    """Modules of the common package that only one side needs, or none."""
    needed = [graph.find_upstream_modules(side, as_package=True) for side in ("parties", "aggregator")]
    common = {name for name in graph.modules if name.startswith("federation.") and not name.startswith(OPEN)}
    return sorted(name for name in common - (needed[0] & needed[1]) if not graph.find_children(name))


def linted(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of a folder in a process of its own: import-linter disables all loggers of its process."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports; exit(lint_imports(no_cache=True))"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_contract_is_kept() -> None:
    done = linted(ROOT)
    assert done.returncode == 0, done.stdout


def test_every_contract_has_power(tmp_path: Path) -> None:
    """A copy of the tree with one import against every contract breaks them all."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=lambda _, names: {"__pycache__"} & {*names})
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, target in BREACHES:
        with (tmp_path / path).open("a", encoding="utf-8") as file:
            file.write(f"\n\ndef late():\n    import {target}\n")
    done = linted(tmp_path)
    assert f"0 kept, {len(BREACHES)} broken" in done.stdout


def test_no_module_imports_from_a_folder_around_its_own(graph: grimp.ImportGraph) -> None:
    assert outward(graph) == []


def test_what_only_one_side_uses_lies_with_that_side(graph: grimp.ImportGraph) -> None:
    assert one_sided(graph) == []


@pytest.mark.parametrize(
    ("found", "source", "target"),
    [
        (outward, "federation.numerics.inner.x", "federation.numerics.y"),
        (outward, "federation.numerics.inner.x", "federation.numerics"),
        (one_sided, "federation.numerics.unused", "federation.numerics.rows"),
        (one_sided, "parties.app", "federation.numerics.unused"),
    ],
)
def test_each_law_has_power(found: Callable[[grimp.ImportGraph], list[str]], source: str, target: str) -> None:
    changed = grimp.ImportGraph()
    for name in ("federation", "parties", "aggregator", "federation.numerics", source, target):
        changed.add_module(name)
    changed.add_module("federation.numerics.inner")
    changed.add_import(importer=source, imported=target)
    assert found(changed) != []
