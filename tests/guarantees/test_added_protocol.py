"""A newcomer adds a protocol as the tutorial says: nothing but pyproject.toml changes, and the contract is kept."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_NAMES = 15  # of this project that a newcomer must know
COPIED = ("federation", "parties", "aggregator", "scenarios", "pyproject.toml", "README.md", "LICENSE")
_BLOCK = re.compile(
    r"```(?:python|toml)\n# (?P<path>[\w./]+)(?:, below (?P<below>[^\n]+))?\n(?P<text>.*?)```", re.DOTALL
)


def follow(page: str, root: Path) -> list[str]:
    """Write the files that the page shows, and put lines where it says; returns the paths."""
    paths = []
    for block in _BLOCK.finditer(page):
        path, text = root / block["path"], block["text"]
        if block["below"]:
            old = path.read_text()
            assert old.count(f"{block['below']}\n") == 1
            text = old.replace(f"{block['below']}\n", f"{block['below']}\n{text}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        paths.append(block["path"])
    return paths


def contents(root: Path) -> dict[str, str]:
    """A digest of every file, by path."""
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project."""
    root = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, root / name)
    return root


@pytest.mark.slow
def test_it_changes_no_other_file_is_listed_and_keeps_the_contract(copy: Path) -> None:
    before = contents(copy)
    written = follow((ROOT / "docs" / "tutorials" / "own-protocol.md").read_text(), copy)
    after = contents(copy)
    assert {path for path in before if after.get(path) != before[path]} == {"pyproject.toml"}
    added = after.keys() - before.keys()
    assert added == set(written) - {"pyproject.toml"}
    assert len(added) == 6  # a protocol and its test; a protocol with a query and a response, and its test

    # What `pip install -e` writes for Python to find entry points; nothing has to be packed for it.
    written_down = [sys.executable, "-c", "import setuptools; setuptools.setup()", "--quiet", "egg_info"]
    subprocess.run(written_down, cwd=copy, check=True, timeout=300)
    environment = os.environ | {"PYTHONPATH": str(copy)}
    listed = subprocess.run(
        [sys.executable, "-c", "import sys; from scenarios.cli import main; sys.exit(main())", "list"],
        cwd=copy, env=environment, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "ridge_sums" in listed.stdout
    assert "class_means" in listed.stdout
    tests = [str(copy / path) for path in sorted(added) if path.startswith("tests/")]
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    checked = subprocess.run(
        [*pytest_command, "-c", os.devnull, "--rootdir", str(copy), *tests],
        cwd=copy, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout[-3000:]
    assert "2 passed" in checked.stdout


def test_a_protocol_with_its_own_query_takes_three_files_and_few_names() -> None:
    page = (ROOT / "docs" / "tutorials" / "own-protocol.md").read_text()
    own = [block["text"] for block in _BLOCK.finditer(page) if re.search(r"(?<!test_)class_means\.py", block["path"])]
    assert len(own) == 3
    imported = re.findall(r"^from (?:federation|parties|aggregator)\S* import (.+)$", "".join(own), re.MULTILINE)
    names = {name for line in imported for name in line.split(", ")} - {"ClassMeansQuestion"}
    assert len(names) <= MOST_NAMES, names
