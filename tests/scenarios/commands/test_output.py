"""What commands print of a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from federation.contract.errors import InputError
from scenarios.commands.output import save, tell

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


def test_json_is_the_whole_record(capsys: pytest.CaptureFixture[str]) -> None:
    tell(True, RECORD, text=["for people"], hidden=("guarantee",))
    assert json.loads(capsys.readouterr().out) == RECORD


def test_people_read_the_same_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_wide_table_breaks_at_spaces_and_loses_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    row = {f"head{i}": f"a_long_word_{i}" if i < 2 else "some shorter words" for i in range(6)}
    tell(False, [row])
    printed = capsys.readouterr().out
    assert "a_long_word_0│a_long_word_1" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("shorter") == 4


def test_all_may_be_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    tell(False, RECORD, text=["OK"], hidden=RECORD)
    assert capsys.readouterr().out == "OK\n"


def test_a_file_is_written_as_given_or_the_option_named(tmp_path: Path) -> None:
    save("--out", tmp_path / "a.csv", "a\nö\n")
    assert (tmp_path / "a.csv").read_bytes() == "a\nö\n".encode()
    with pytest.raises(InputError, match=r"cannot write to --out .*b.csv: No such file or directory; name another"):
        save("--out", tmp_path / "none" / "b.csv", "")


ROWS = [{"noise": name, "epsilon per query": 0.5, "regularisation": 1 / 3} for name in ("pure", "published_laplace")]


@pytest.mark.parametrize(("width", "tables"), [(40, 2), (60, 1), (200, 1)])
def test_rows_that_do_not_fit_are_tables_of_their_own(width, tables, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    tell(False, {"mechanisms": ROWS})
    out = capsys.readouterr().out
    assert out.count("━╇━") == (tables if tables > 1 else 2)
    assert max(map(len, out.splitlines())) <= width
    for word in ("published_laplace", "regularisation", "0.3333"):
        assert word in out  # none is broken
