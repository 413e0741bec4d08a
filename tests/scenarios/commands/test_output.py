"""What commands print of a record.

CSV for spreadsheets: no text is left that one of them would run, and numbers are what they were.
Lines for people: whole words on a terminal, whole lines elsewhere.
"""

import csv
import io
import json
import math
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import Terminal

from federation.contract.errors import InputError
from scenarios.commands.output import csv_lines, fitted, plain, remark, save, tell

RECORD = {
    "epsilon": 0.123456789012,
    "secure_sum": True,
    "bound": None,
    "counts": [1, 2],
    "guarantee": "secret",
    "mechanisms": [
        {"noise": "pure", "scale": 2 / 3, "parameters": {"pseudo_count": 5, "sigma": 1 / 3}, "note": ""},
        {"noise": "published", "scale": None, "parameters": {}, "note": "not private"},
    ],
}
HINT = "hint: choose up to 6 of soft_vote-output-published-regularisation=0.0001 with --only, or see runs/quickstart"


def test_json_is_the_whole_record_and_people_read_the_same_in_tables_that_break_at_spaces(capsys, columns):
    tell(True, RECORD, text=["for people"], hidden=("guarantee",))
    assert json.loads(capsys.readouterr().out) == RECORD
    tell(False, RECORD, text=["for people"], hidden=("guarantee",))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if "━" not in line] == [
        " quantity   ┃ value",
        " epsilon    │ 0.123456789",
        " secure sum │ yes",
        " bound      │ -",
        " counts     │ 1,2",
        "                      mechanisms",
        " noise     ┃ scale  ┃ parameters",
        " pure      │ 0.6667 │ pseudo count 5, sigma 0.3333333",
        " published │ -      │",
        "published: not private.",
        "for people",
    ]
    tell(False, RECORD, text=["OK"], hidden=RECORD)
    assert capsys.readouterr().out == "OK\n"
    columns(80)
    row = {f"head{i}": f"a_long_word_{i}" if i < 2 else "some shorter words" for i in range(6)}
    tell(False, [row])
    printed = capsys.readouterr().out
    assert re.search(r"a_long_word_0.*a_long_word_1", printed)
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("shorter") == 4


def test_a_file_is_written_as_given_or_the_option_named(tmp_path: Path) -> None:
    save("--out", tmp_path / "a.csv", "a\nö\n")
    assert (tmp_path / "a.csv").read_bytes() == "a\nö\n".encode()
    with pytest.raises(InputError, match=r"--out.*b\.csv"):
        save("--out", tmp_path / "none" / "b.csv", "")


ROWS = [{"noise": name, "epsilon per query": 0.5, "regularisation": 1 / 3} for name in ("pure", "published_laplace")]


@pytest.mark.parametrize("width", [40, 60, 200])
def test_rows_that_do_not_fit_are_tables_of_their_own(width, columns, capsys):
    columns(width)
    tell(False, {"mechanisms": ROWS})
    out = capsys.readouterr().out
    assert out.count("━╇━") == 2
    assert max(map(len, out.splitlines())) <= width
    for word in ("published_laplace", "regularisation", "0.3333"):
        assert word in out  # none is broken


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


def test_heads_and_cells_come_back() -> None:
    rows = [{"=a": 1, "b": 'say "x", y'}, {"=a": -2.5, "b": "line\nbreak"}]
    assert list(csv.reader(io.StringIO(csv_lines(rows)))) == [
        ["'=a", "b"], ["1", 'say "x", y'], ["-2.5", "line\nbreak"],
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["-", "-1-1", "+1_0", "-inf", "=1", "-٣", "-1\n", "--1", "-e5", "+."])
def test_what_is_nearly_a_number_is_not_one(text: str) -> None:
    assert plain(text) == f"'{text}"


@pytest.fixture
def columns(monkeypatch):
    return lambda number: monkeypatch.setenv("COLUMNS", str(number))


def test_no_word_is_broken_on_a_terminal_and_elsewhere_a_line_stays_one(columns):
    for width in (60, 80, 120, 200):
        columns(width)
        lines = fitted(HINT, Terminal()).splitlines()
        assert " ".join(lines) == HINT
        assert max(map(len, lines)) <= width
    columns(20)
    assert fitted(HINT, io.StringIO()) == HINT


@given(st.lists(st.text(alphabet="abc-_=/", min_size=1, max_size=70), min_size=1, max_size=30), st.integers(1, 200))
def test_words_stay_whole_whatever_they_are(words, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        assert fitted(" ".join(words), Terminal()).split() == words


def test_later_lines_hang_below_the_first_or_where_there_is_room(columns):
    columns(40)
    entry = "  quickstart  handwritten digits of 200 parties that learn to read them"
    assert fitted(entry, Terminal(), hanging=14).splitlines() == [
        "  quickstart  handwritten digits of 200", "              parties that learn to read", "              them",
    ]  # fmt: skip
    assert fitted(entry, Terminal(), hanging=30).splitlines()[1].startswith("    parties")
    assert fitted("    indented lines stay so where they go on", Terminal()).splitlines()[1] == "    on"


def test_remarks_go_to_standard_error(columns, monkeypatch, capsys):
    columns(60)
    remark(HINT)
    assert capsys.readouterr() == ("", f"{HINT}\n")
    monkeypatch.setattr(sys, "stderr", Terminal())
    remark(HINT)
    assert sys.stderr.getvalue().count("\n") == 3
