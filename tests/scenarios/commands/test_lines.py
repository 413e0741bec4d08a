"""Lines for people: whole words on a terminal, whole lines elsewhere."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.commands.output import fitted, remark

HINT = "hint: choose up to 6 of soft_vote-output-published-regularisation=0.0001 with --only, or see runs/quickstart"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def columns(monkeypatch):
    return lambda number: monkeypatch.setenv("COLUMNS", str(number))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_word_is_broken_on_a_terminal(columns, width):
    columns(width)
    lines = fitted(HINT, Terminal()).splitlines()
    assert " ".join(lines) == HINT
    assert max(map(len, lines)) <= width


def test_elsewhere_a_line_stays_one(columns):
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
        "  quickstart  handwritten digits of 200",
        "              parties that learn to read",
        "              them",
    ]
    assert fitted(entry, Terminal(), hanging=30).splitlines()[1].startswith("    parties")
    assert fitted("    indented lines stay so where they go on", Terminal()).splitlines()[1] == "    on"


def test_remarks_go_to_standard_error(columns, monkeypatch, capsys):
    columns(60)
    remark(HINT)
    assert capsys.readouterr() == ("", f"{HINT}\n")
    monkeypatch.setattr(sys, "stderr", Terminal())
    remark(HINT)
    assert sys.stderr.getvalue().count("\n") == 3
