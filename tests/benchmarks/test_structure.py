"""What `benchmarks.structure` counts in small trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.structure import Module, Named, Sizes, Walk, code_lines, measured, returns

CODE = '''"""Of two lines
of prose."""

import os
from pathlib import (
    Path,
)


def here() -> Path:
    """One line."""
    # A comment.
    text = """
# no comment

"""
    return Path(os.fspath(text))  # another one
'''
PROJECT = """
[project.entry-points."federation.protocols"]
soft_vote = "aggregator.soft_vote:SoftVote"
"""
FILES = {
    "pyproject.toml": PROJECT,
    "federation/__init__.py": '"""Common ground."""\n',
    "federation/errors.py": "WORST = 1\n",
    "federation/numerics/__init__.py": "",
    "federation/numerics/sums.py": "from federation.errors import WORST\n",
    "aggregator/__init__.py": "",
    "aggregator/soft_vote.py": "from federation.numerics import sums\n\n\nclass SoftVote:\n    total = sums\n",
    "scenarios/__init__.py": "",
    "scenarios/cli.py": 'def main(protocol="soft_vote"):\n    import aggregator.soft_vote\n',
    "scenarios/hints.py": "no_soft_vote = getattr(0, 'real', None), getattr(0, no_name)\n",
}


def _write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_code_lines_are_not_blank_comment_docstring_or_import() -> None:
    assert code_lines(Module("federation/here.py", CODE)) == 5


def test_a_tree_without_circles(tmp_path: Path) -> None:
    found = measured(_write(tmp_path, FILES))
    assert not any(found.circles.values())
    assert found.code_lines["federation"] == 1
    assert found.code_lines["federation/numerics"] == 0
    assert found.code_lines["all packages"] == 5
    assert found.sizes["aggregator"] == Sizes(modules=2, median=2.5, longest=5)
    assert found.protocols == {"soft_vote": Named(files=2, folders=2)}
    assert found.names_probed == {"scenarios/hints.py": 1}
    assert found.walk == Walk(modules=4, rooms=4, stays=3, returns=1, returns_of_all=1)


def test_circles_of_modules_and_folders(tmp_path: Path) -> None:
    back = "def late():\n    from .numerics import sums\n    return sums\n"
    found = measured(_write(tmp_path, FILES | {"federation/errors.py": back}))
    assert found.circles["modules"] == [("federation/errors.py", "federation/numerics/sums.py")]
    assert found.circles["folders"] == [("federation/errors.py", "federation/numerics")]


def test_circles_only_for_types_are_told_apart(tmp_path: Path) -> None:
    back = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import scenarios.cli\nelse:\n    import os\n"
    found = measured(
        _write(tmp_path, FILES | {"aggregator/__init__.py": back, "scenarios/hints.py": "import aggregator"})
    )
    assert found.circles["modules"] == found.circles["folders"] == []
    assert found.circles["modules, for types too"] == []
    assert found.circles["folders, for types too"] == [("aggregator", "scenarios")]


def test_questions_are_probed(tmp_path: Path) -> None:
    probing = "isinstance(1, int)\nisinstance(2, a.VotesQuestion | RowsQuestion)\nisinstance(3, (int, RowsQuestion))\n"
    assert measured(_write(tmp_path, FILES | {"parties/app.py": probing})).questions_probed == {"parties/app.py": 2}


@pytest.mark.parametrize(
    ("source", "target", "back"),
    [
        ("federation/errors.py", "scenarios/cli.py", True),
        ("parties/app.py", "aggregator/server/app.py", False),
        ("aggregator/server/app.py", "federation/errors.py", False),
        ("federation/numerics/kernels/tiles.py", "federation/errors.py", True),
        ("federation/errors.py", "federation/numerics/sums.py", False),
        ("federation/numerics/sums.py", "federation/privacy/sums.py", False),
    ],
)
def test_returns_lead_to_an_earlier_layer_or_a_folder_around(source: str, target: str, back: bool) -> None:
    assert returns(source, target) is back
