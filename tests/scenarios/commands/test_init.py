"""`federation init` as a person meets it: on good files, on nasty ones, by flags and by questions.

What is asked on a terminal, and what holds elsewhere.
"""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import Terminal

from federation.contract.errors import InputError
from scenarios.commands import init as questions
from scenarios.data.profile import profile
from scenarios.runs import runner
from scenarios.settings.loader import parse
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

TINY = ["trials.splits=1", "trials.noise=1", "privacy.epsilon=3"]


@pytest.fixture
def federation(typed, monkeypatch, tmp_path) -> Callable[..., tuple[int, str, str]]:
    """Types a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return typed


def people(count: int = 80, **columns: Any) -> dict[str, list[Any]]:
    """Columns of so many people, of which two features tell the label; `columns` are put in or replaced."""
    random = np.random.default_rng(7)
    age, dose = random.normal(50, 9, count).round(1), random.normal(size=count).round(2)
    ill = np.where(age / 9 + dose + 0.3 * random.normal(size=count) > 50 / 9, "yes", "no")
    return {"age": age.tolist(), "dose": dose.tolist(), **columns, "ill": columns.get("ill", ill.tolist())}


def text(columns: dict[str, list[Any]], separator: str = ",", header: bool = True) -> str:
    lines = [separator.join(columns)] if header else []
    return "\n".join([*lines, *(separator.join(map(str, row)) for row in zip(*columns.values(), strict=True))]) + "\n"


def cycled(*values: Any, count: int = 80) -> list[Any]:
    return [values[i % len(values)] for i in range(count)]


def with_commas(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return columns | {name: [str(cell).replace(".", ",") for cell in columns[name]] for name in ("age", "dose")}


WIDE = people(60, **{f"x{i}": (np.arange(60) * (i % 7 + 3) % 11).tolist() for i in range(400)})
NASTY: dict[str, tuple[str | bytes, dict[str, Any] | str]] = {
    # name: (contents, the `data` that init must write beside source, label and auxiliary, or a part of its refusal)
    "semicolons": (text(people(), ";"), {}),
    "tabs": (text(people(), "\t"), {}),
    "byte order mark": (b"\xef\xbb\xbf" + text(people()).encode(), {}),
    "decimal commas": (text(with_commas(people()), ";"), "age, dose hold numbers with a decimal comma"),
    "latin-1": (text(people(city=cycled("Köln", "Bonn"))).encode("latin-1"), "is not UTF-8 text (line 2)"),
    "no header": (text(people(ill=cycled(0, 1)), header=False), "must name"),
    "duplicate names": (text(people()).replace("dose", "age", 1), "has the name 'age' twice"),
    "quotes": (text(people(city=cycled('"Bern, CH"', '"a ""b"""'))), {}),
    "dates": (text(people(born=cycled("1990-02-03", "3.4.1985", count=80))), {"drop": ["born"]}),
    "free text": (text(people(note=[f"patient number {i} was here" for i in range(80)])), {"drop": ["note"]}),
    "an id": (text(people(patient_id=range(1000, 1080))), {"drop": ["patient_id"]}),
    "an id of texts": (text(people(key=[f"P-{i}" for i in range(80)])), {"drop": ["key"]}),
    "a column of missing cells": (text(people(empty=cycled(""))), {"drop": ["empty"]}),
    "missing cells": (text(people(weight=cycled(70, "", "NA", 81), city=cycled("Rome", "", "?"))), {}),
    "one class": (text(people(ill=cycled("no"))), "the same value in all rows"),
    "a class of 2 %": (text(people(400, ill=["yes"] * 8 + ["no"] * 392)), {}),
    "60 classes": (text(people(240, ill=[f"c{i % 60}" for i in range(240)])), {}),
    "label first": (text({"ill": [], **people()}), {}),
    "boolean labels": (text(people(ill=cycled("True", "False", "False"))), {}),
    "negative labels": (text(people(ill=cycled(-1, 1, -1))), {}),
    "labels of a half": (text(people(ill=cycled(0.5, 1.0, 1.5))), {}),
    "labels such as NA": (text(people(ill=cycled("NA", "yes"))), "40 of the 80 cells of 'ill' are missing"),
    "spaces in names": (text(people(**{"blood pressure: mm": cycled(1, 2, 3), " x ": cycled(1, 5)})), {}),
    "one row": (text(people(1)), "the same value in all rows"),
    "two rows": (text(people(2, ill=["no", "yes"])), "needs 2 rows at least"),
    "no rows": (text(people(0)), "has no rows below its header"),
    "nothing": (b"", "the first line must name the columns"),
    "very wide": (text(WIDE), {}),
    "mixed types": (text(people(size=[*range(78), "large", "small"], half=cycled(1, "a"))), {"drop": ["size"]}),
    "ragged": (text(people()) + "1,2\n", "this row has 2"),
    "a constant": (text(people(site=cycled("A"), year=cycled(1999))), {"drop": ["site", "year"]}),
    "no feature": (text({"id": range(80), "ill": cycled("no", "yes")}), "no column that can be a feature"),
    "infinite": (text(people(size=cycled(1.0, "inf"))), {"drop": ["size"]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NASTY)
def test_of_a_nasty_file_comes_a_scenario_that_runs_or_one_sentence(name, federation, tmp_path, monkeypatch):
    contents, expected = NASTY[name]
    Path("my rows.csv").write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    code, out, err = federation("init", "my rows.csv", "--label", "ill")
    if isinstance(expected, str):
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert expected in err
        assert not Path("my-scenario.yaml").exists()
        return
    assert (code, err) == (0, "")
    said, _ = parse(Path("my-scenario.yaml").read_text(), "my-scenario.yaml")
    assert said["data"] == {"source": "my rows.csv", "label": "ill", "auxiliary": 0.25, **expected}
    assert federation("validate", "my-scenario.yaml")[0] == 0
    monkeypatch.setattr(runner, "_draw", lambda *_: None)
    rows = runner.run("my-scenario.yaml", overrides=TINY, out=tmp_path / "run").rows
    accuracies = [row["value"] for row in rows if (row["protocol"], row["metric"]) == ("soft_vote", "accuracy")]
    assert len(accuracies) == 1
    assert 0 <= accuracies[0] <= 1


@pytest.fixture
def own() -> Path:
    """A file of 300 rows of 60 people in 12 towns, with a number that could be a label."""
    random = np.random.default_rng(3)
    who = random.integers(0, 60, 300)
    columns = people(300, town=[f"T{one % 12}" for one in who], patient_id=who.tolist())
    Path("own.csv").write_text(text(columns | {"cost": (random.random(300) * 90).round(2).tolist()}))
    return Path("own.csv")


def settings(path: str = "my-scenario.yaml") -> dict[str, Any]:
    return parse(Path(path).read_text(), path)[0]


ROW, LABEL, PERSON = ("--protect", "row"), ("--protect", "label"), ("--protect", "person", "--person", "patient_id")
TOWN, TWO_TOWNS = ("--group", "town"), ("--label", "town", "--positive", "T1", "--positive", "T2")
COST = ("--label", "cost", "--range", "0,90")
BY_TOWN, BY_PERSON = {"partition": {"by": "town"}}, {"partition": {"by": "patient_id"}}
AVERAGE, MEAN = {"kind": "parameter_average"}, {"kind": "mean_operator"}


@pytest.mark.parametrize(
    ("flags", "data", "parties", "first"),
    [
        ((), {"drop": ["patient_id"]}, {"count": 30}, AVERAGE),
        (("--parties", "9"), {}, {"count": 9}, {"kind": "soft_vote"}),
        (TOWN, {}, BY_TOWN, AVERAGE),
        (PERSON, {}, BY_PERSON, AVERAGE),
        ((*PERSON, *TOWN), {"person": "patient_id"}, BY_TOWN, AVERAGE),
        (ROW, {}, {"count": 1}, {**MEAN, "protect": "row"}),
        ((*ROW, "--trust", "none"), {}, {"count": 10}, {**MEAN, "protect": "row"}),
        (LABEL, {}, {"count": 1}, MEAN),
        ((*TWO_TOWNS, *LABEL), {"positive": ["T1", "T2"]}, {"count": 1}, MEAN),
        ((*COST, *ROW), {"range": [0, 90]}, {"count": 1}, {"kind": "label_sums", "protect": "row"}),
        ((*COST, *LABEL, "--trust", "none"), {"range": [0, 90]}, {"count": 10}, None),
    ],
)
def test_flags_are_kept(flags, data, parties, first, federation, own):
    label = () if "--label" in flags else ("--label", "ill")
    code, out, err = federation("init", "own.csv", "--epsilon", "2", *label, *flags)
    assert (code, err) == (0, "")
    assert out.endswith("run it with: federation run my-scenario.yaml\n")
    said = settings()
    assert said["data"].items() >= data.items()
    assert said["parties"] == parties
    assert first in (None, said["protocols"][0])
    assert said["privacy"] == {"epsilon": 2}
    names = {variant.name for variant in variants(resolve("my-scenario.yaml"))}
    assert names >= {"pooled", "constant"}
    assert ("individual" in names) == (parties.get("count") != 1 and "--range" not in flags)


@pytest.mark.slow
def test_public_rows_of_a_file_are_used_and_theirs_alone(federation, own, monkeypatch, tmp_path):
    public = text({name: cells for name, cells in people(70).items() if name != "ill"})
    Path("rows").mkdir()
    Path("rows/public.csv").write_text(public)
    flags = ("--label", "ill", "--public", "rows/public.csv", "--out", "rows/first.yaml")
    code, _, err = federation("init", "own.csv", *flags)
    assert code == 2
    assert "rows/public.csv lacks 2 of the 4 columns that are features of" in err
    assert re.search(r"own\.csv.*data\.drop", err)
    Path("own.csv").write_text(text(people(300)))
    assert federation("init", "own.csv", *flags)[0] == 0
    assert settings("rows/first.yaml")["data"] == {
        "source": "../own.csv", "label": "ill", "auxiliary": "public.csv",
    }  # fmt: skip
    monkeypatch.setattr(runner, "_draw", lambda *_: None)
    runner.run("rows/first.yaml", overrides=TINY, out=tmp_path / "run")
    assert "the public rows are those of the file public.csv" in (tmp_path / "run/ledger.json").read_text()
    assert federation("run", "rows/first.yaml", "--dry-run", "--json")[1].count('"auxiliary_rows": 70') == 1


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (("--label", "il"), "--label: own.csv has no column 'il'; it has age, dose, town, patient_id, ill, cost; did"),
        ((), "--label: name the column that is to be learned; those that may be: ill, town, "),
        (("--label", "cost"), "--range: 'cost' holds numbers with"),
        (("--label", "ill", "--trust", "none"), "The nearest is --protect row, by mean_operator"),
        (("--label", "town", "--protect", "label"), "Or --positive CLASS, by mean_operator"),
        (("--label", "ill", "--protect", "person"), "--protect person needs --person"),
        (("--label", "ill", "--person", "patient_id"), "--person is for --protect person"),
        (("--label", "ill", "--group", "ill"), "--group: 'ill' is the label"),
        (("--label", "ill", "--parties", "400"), "parties.count 400 with at least one row each needs 400 private rows"),
        (("--label", "ill", "--out", "own.csv"), "--out: own.csv exists; name another file"),
        (("--label", "ill", "--range", "0,1", "--protect", "row"), "column 'ill' is 'yes', not a finite number"),
        (("--label", "ill", "--public", "none.csv"), "there is no such file: none.csv"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_nothing_is_written(flags, part, federation, own, refused):
    assert part in refused("init", "own.csv", *flags)
    assert not Path("my-scenario.yaml").exists()


@pytest.mark.parametrize(
    ("answers", "flags", "expected"),
    [
        ("ill\n\n\n\n", (), {"kind": "soft_vote"}),
        ("ill\nhouse\nrow\nnone\n\n", (), {"kind": "mean_operator", "protect": "row"}),
        ("\n\n", ("--label", "ill", *LABEL), MEAN),
        ("aggregator\n\n0,90\n", ("--label", "cost", *ROW), {"kind": "label_sums", "protect": "row"}),
        ("person\npatient_id\n\n\n", ("--label", "ill"), {"kind": "soft_vote"}),
    ],
)
def test_on_a_terminal_it_asks_what_flags_leave_open(answers, flags, expected, federation, own, monkeypatch):
    keyboard = Terminal(answers)
    monkeypatch.setattr("sys.stdin", keyboard)
    code, _, err = federation("init", "own.csv", *flags)
    assert code == 0, err
    assert keyboard.read() == ""  # every answer was asked for
    assert settings()["protocols"][0] == expected
    assert ("What shall nobody be able to tell" in err) == ("--protect" not in flags)


def test_the_record_is_what_is_written_and_nothing_is_asked_for_it(federation, own, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal(""))
    code, out, _ = federation("init", "own.csv", "--label", "ill", "--json")
    assert code == 0
    record = json.loads(out)
    assert record["settings"] == settings()
    assert [(one["column"], one["holds"], one["values"]) for one in record["columns"]][3:5] == [
        ("patient_id", "whole numbers", 59), ("ill", "texts", 2),
    ]  # fmt: skip
    assert record["remarks"][0].startswith("classes of ill: no 58.0%, yes 42.0%")


@pytest.fixture
def found(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("age,person_id,a,b\n" + "".join(f"{30 + i % 7},{i % 9},{i % 2},{i % 3}\n" for i in range(60)))
    return profile(path)


def test_columns_are_shown_and_asked_for_and_the_first_answer_holds_where_nobody_can_be(monkeypatch, found, capsys):
    assert questions.choice("Which?", ("one", "two"), asking=False) == "one"
    monkeypatch.setattr("sys.stdin", io.StringIO("three\ntwo\n"))
    assert questions.choice("Which?", ("one", "two"), asking=True) == "two"
    assert questions.as_seen(Path("runs/mine.yaml"), Path("data/my.csv")) == "../data/my.csv"
    questions.show_columns(found)
    assert "60 rows, 4 columns" in capsys.readouterr().out
    assert questions.described(found.columns[0])["values"] == 7
    with pytest.raises(InputError, match=r"--label.*name"):
        questions.column_of_labels(found, asking=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("a\n\n"))
    assert questions.column_of_labels(found, asking=True) == "a"
    assert questions.column_of_persons(found) == "person_id"
