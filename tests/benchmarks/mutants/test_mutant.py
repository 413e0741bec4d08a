"""Explained survivors are still in the product, each with its reason; there are modules wherever mutants are made."""

from pathlib import Path

import pytest

from benchmarks.mutants.mutant import PRIVATE, SURVIVORS, explained, modules
from federation.contract.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


def test_every_explained_survivor_is_a_line_of_the_product_that_would_change():
    known = explained()
    assert known
    for (path, was, becomes), reason in known.items():
        lines = [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]
        assert was in lines, f"{path} has no line {was!r}: remove it from survivors.yaml, or correct it"
        assert becomes != was
        assert len(reason.split()) >= 4, reason


def test_no_module_is_named_twice_as_yaml_would_keep_the_last_one_only():
    named = [line for line in SURVIVORS.read_text(encoding="utf-8").splitlines() if not line.startswith((" ", "#"))]
    assert sorted(named) == sorted(set(named))


def test_there_are_modules_wherever_mutants_are_made_by_default_and_a_path_without_any_is_refused():
    assert len(modules(ROOT, PRIVATE)) > len(PRIVATE)
    assert modules(ROOT, ["parties/app.py"]) == ["parties/app.py"]
    for absent in ("parties/nowhere", "parties/nowhere.py"):
        with pytest.raises(InputError, match=absent):
            modules(ROOT, [*PRIVATE, absent])
