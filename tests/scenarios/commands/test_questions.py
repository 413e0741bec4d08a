"""What is asked on a terminal, and what holds elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from federation.contract.errors import InputError
from scenarios.commands import init as questions
from scenarios.data.profile import profile


@pytest.fixture
def found(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("age,person_id,a,b\n" + "".join(f"{30 + i % 7},{i % 9},{i % 2},{i % 3}\n" for i in range(60)))
    return profile(path)


def test_the_first_answer_holds_where_nobody_can_be_asked(monkeypatch):
    assert questions.choice("Which?", ("one", "two"), asking=False) == "one"
    monkeypatch.setattr("sys.stdin", io.StringIO("three\ntwo\n"))
    assert questions.choice("Which?", ("one", "two"), asking=True) == "two"


def test_columns_are_named_or_asked_for(found, monkeypatch):
    with pytest.raises(InputError, match="--label: name the column"):
        questions.column_of_labels(found, asking=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("a\n\n"))
    assert questions.column_of_labels(found, asking=True) == "a"
    assert questions.column_of_persons(found) == "person_id"


def test_paths_are_told_from_the_folder_of_the_scenario():
    assert questions.as_seen(Path("runs/mine.yaml"), Path("data/my.csv")) == "../data/my.csv"


def test_the_columns_are_shown(found, capsys):
    questions.show_columns(found)
    printed = capsys.readouterr().out
    assert "60 rows, 4 columns" in printed
    assert questions.described(found.columns[0])["values"] == 7
