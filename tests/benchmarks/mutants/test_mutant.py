"""The survivors that are explained: still in the product, and each with its reason."""

from pathlib import Path

from benchmarks.mutants.mutant import explained

ROOT = Path(__file__).resolve().parents[3]


def test_every_explained_survivor_is_a_line_of_the_product_that_would_change():
    known = explained()
    assert known
    for (path, was, becomes), reason in known.items():
        lines = [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]
        assert was in lines, f"{path} has no line {was!r}: remove it from survivors.yaml, or correct it"
        assert becomes != was
        assert len(reason.split()) >= 4, reason
