"""CSV for spreadsheets: no text is left that one of them would run, and numbers are what they were."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.commands.output import csv_lines, plain

FORMULA = "=+-@\t\r"


@given(text=st.text(max_size=8) | st.sampled_from(FORMULA).flatmap(lambda mark: st.text(max_size=6).map(mark.__add__)))
def test_what_begins_as_a_formula_is_a_number_or_behind_an_apostrophe(text: str) -> None:
    found = plain(text)
    assert found.removeprefix("'") == text or found == text
    if found[:1] and found[0] in FORMULA:
        assert math.isfinite(float(found)) or math.isinf(float(found))  # as long as digits
    assert (found == text) or text[0] in FORMULA


@given(number=st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_numbers_are_not_touched(number: float) -> None:
    assert plain(str(number)) == str(number)
    assert csv_lines([{"x": number}]) == f"x\n{number}\n"


@pytest.mark.parametrize("text", ["-", "-1-1", "+1_0", "-inf", "=1", "-٣", "-1\n", "--1", "-e5", "+."])
def test_what_is_nearly_a_number_is_not_one(text: str) -> None:
    assert plain(text) == f"'{text}"


def test_heads_and_cells_come_back() -> None:
    rows = [{"=a": 1, "b": 'say "x", y'}, {"=a": -2.5, "b": "line\nbreak"}]
    head, *lines = csv.reader(io.StringIO(csv_lines(rows)))
    assert head == ["'=a", "b"]
    assert lines == [["1", 'say "x", y'], ["-2.5", "line\nbreak"]]
