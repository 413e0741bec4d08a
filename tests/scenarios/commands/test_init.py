"""`federation init` as a person meets it: on good files, on nasty ones, by flags and by questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios.cli import _exit_code
from scenarios.runs import runner
from scenarios.settings.yaml_rules import parse

TINY = ["trials.splits=1", "trials.noise=1", "privacy.epsilon=3"]


@pytest.fixture
def federation(monkeypatch, capsys, tmp_path) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in an empty folder and gives its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["federation", *arguments])
        code = _exit_code()
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


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


def first(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {"ill": columns["ill"], **columns}


WIDE = people(60, **{f"x{i}": (np.arange(60) * (i % 7 + 3) % 11).tolist() for i in range(400)})
NASTY: dict[str, tuple[str | bytes, dict[str, Any] | str]] = {
    # name: (contents, the `data` that init must write beside source, label and auxiliary, or a part of its refusal)
    "semicolons": (text(people(), ";"), {}),
    "tabs": (text(people(), "\t"), {}),
    "byte order mark": (b"\xef\xbb\xbf" + text(people()).encode(), {}),
    "decimal commas": (text(with_commas(people()), ";"), "age, dose hold numbers with a decimal comma"),
    "latin-1": (text(people(city=cycled("Köln", "Bonn"))).encode("latin-1"), "is not UTF-8 text (line 2)"),
    "no header": (
        text({f"{i}": c for i, c in enumerate(people(ill=cycled(0, 1)).values())}, header=False),
        "must name",
    ),
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
    "label first": (text(first(people())), {}),
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
    accuracies = [row["value"] for row in rows if (row["variant"], row["metric"]) == ("soft_vote", "accuracy")]
    assert len(accuracies) == 1
    assert 0 <= accuracies[0] <= 1
