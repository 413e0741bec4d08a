"""The mutants of a small module: every kind of error, each once, and none where types are declared."""

import pytest

pytest.importorskip("cosmic_ray", reason="pip install -e '.[mutants]'")

from benchmarks.mutants.mutation import mutants

MODULE = '''
from dataclasses import dataclass

LEAST: float | None = 0.5


@dataclass(frozen=True)
class Noise:
    scale: float

    def charged(self, parts: list[float], /, *, at: int | None = 3) -> float | None:
        """An example: 1 + 1."""
        check(parts)
        if self.scale <= LEAST:
            raise ValueError("too little")
        elif not parts:
            return None
        return min(parts) * 2 + at
'''


@pytest.fixture
def found(tmp_path):
    (tmp_path / "noise.py").write_text(MODULE)
    return list(mutants(tmp_path, "noise.py"))


def test_every_kind_of_error_is_made_and_declarations_are_left_alone(found):
    becomes = {mutant.becomes for mutant in found}
    assert becomes >= {
        "LEAST: float | None = 1.5",
        "def charged(self, parts: list[float], /, *, at: int | None = 4) -> float | None:",
        "None and check(parts)",
        "if self.scale < LEAST:",
        "if self.scale > LEAST:",
        "if False and ( self.scale <= LEAST):",
        "elif False and ( not parts):",
        "return max(parts) * 2 + at",
        "return min(parts) / 2 + at",
        "return min(parts) * 2 - at",
    }
    for text in ("frozen=False", "float & None", "list[float], *, *", "list[float], /, /", "int & None"):
        assert not any(text in one for one in becomes)


def test_a_mutant_is_the_module_with_one_line_changed_and_no_two_are_the_same(found):
    assert len({mutant.source for mutant in found}) == len(found) > 15
    before = MODULE.splitlines()
    for mutant in found:
        after = mutant.source.splitlines()
        assert [number for number, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]] == [
            mutant.line
        ]
        assert (mutant.was, mutant.becomes) == (before[mutant.line - 1].strip(), after[mutant.line - 1].strip())


def test_a_part_is_random_and_repeats_with_its_seed(tmp_path, found):
    half = [[mutant.key for mutant in mutants(tmp_path, "noise.py", 0.5, seed)] for seed in (1, 1, 2)]
    assert half[0] == half[1] != half[2]
    assert 0 < len(half[0]) < len(found)


@pytest.mark.parametrize(
    ("kind", "becomes"),
    [
        ("calls", {"None and check(parts)"}),
        ("conditions", {"if False and ( self.scale <= LEAST):", "elif False and ( not parts):"}),
        ("ends", {"if self.scale < LEAST:"}),
    ],
)
def test_a_kind_is_made_alone(tmp_path, found, kind, becomes):
    assert {mutant.becomes for mutant in mutants(tmp_path, "noise.py", kind=kind)} == becomes


def test_an_exception_of_another_module_among_several_is_left_as_it_is(tmp_path):
    (tmp_path / "reading.py").write_text("try:\n    x = 1 + 1\nexcept (json.JSONDecodeError, OSError):\n    x = 0\n")
    assert "x = 1 - 1" in {mutant.becomes for mutant in mutants(tmp_path, "reading.py")}
