"""A site's table is examined as the plan has it, and is watched for changes.

The findings say what is wrong, and what becomes of the rows is tested here, too.
"""

import json
import os
import re
import threading
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from support.exchanges import agreement_for
from support.postgresql import postgresql
from support.questions import QUESTIONS
from support.refusals import refused
from support.site_folders import site_folder

from federation.features.feature_map import text_code
from federation.signed_messages.agreement import Agreement
from parties.party_data.cohort import Cohort
from parties.site.settings import Settings, Table
from parties.site.worker import _away
from scenarios.data.hashing import Hashing, hashed_texts
from scenarios.deployment import table_check as site_table
from scenarios.deployment.site_data import source
from scenarios.deployment.table_check import WatchedTable, examined, rows_are_fixed

PLAN = agreement_for(Ed25519PrivateKey.generate(), [], QUESTIONS["votes"], sites=[{"name": "north"}])
CHANGED = {
    "columns": [{"name": "age"}, {"name": "sex", "text": True}],
    "label": {"name": "dx", "classes": ["benign", "malignant"]},
    "rows": [2, 50],
}
WORKS = ("AGE_Y,sex,ICD", "30,m,C50", "41,f,D24", "52,f,C50")
COLUMNS = {"age": "AGE_Y", "dx": {"from": "ICD", "map": {"C50": "malignant", "D24": "benign"}}}
CELLS = st.text(st.characters(codec="utf-8", exclude_characters='\0\r\n",')) | st.sampled_from(["nan", "inf", "1e999"])
REAL = {"label": {"name": "dx", "range": [0.0, 5.0]}}


def promised(unit, adjacency="replace"):
    return {"promises": [{"unit": unit, "adjacency": adjacency, "epsilon": 1.0, "delta": 0.0, "trusted": False}]}


def plan(**changed):
    return type(PLAN).model_validate_json(json.dumps(json.loads(PLAN.canonical()) | CHANGED | changed))


def spoilt(*lines):
    return [*WORKS, *lines]


@pytest.fixture
def look(tmp_path):
    """Errors and remarks of a table of some lines, and its rows."""

    def at(lines, settings=None, agreement=None):
        path = tmp_path / "p.csv"
        path.write_text("\n".join(lines) + "\n")
        where = Table.model_validate_json(json.dumps({"table": "t", "file": str(path), **(settings or {})}))
        found = examined(source(where), agreement or plan(**promised("label")), where, 7)
        told = [(one.error, one.text.replace(f"{tmp_path}/", "")) for one in found.findings]
        assert len(found.errors) == sum(error for error, _ in told)
        return [text for error, text in told if error], [text for error, text in told if not error], found.holdings

    return at


@pytest.mark.parametrize(
    "changed",
    [
        {"columns": [{"name": "dx", "text": True}]},
        {"columns": [{"name": "AGE_Y"}, {"name": "ICD", "text": True}]},  # what only this site calls so
        {"columns": [{"name": Hashing(3, "ICD").names[0]}]},
        {"bags": {"column": "ICD", "most": 9}},
        {"person": "ICD"},
    ],
    ids=["label", "own name", "words", "bags", "persons"],
)
def test_a_label_is_told_under_no_other_name(look, changed):
    """A coordinator could else have it as a feature, which leaves as it is where labels alone are protected."""
    agreement = plan(**{"columns": [{"name": "AGE_Y"}], **changed, **promised("label")})
    errors, _, holdings = look(WORKS, {"columns": {"dx": COLUMNS["dx"]}}, agreement)
    assert holdings is None
    assert any("the plan takes the column 'ICD' for the label, which it protects, and for" in one for one in errors)


def test_a_table_that_is_as_agreed_becomes_rows_and_class_codes_known_by_value_or_numbers(look):
    errors, remarks, holdings = look(WORKS, {"columns": COLUMNS})
    assert (errors, remarks) == ([], [])
    assert holdings.party == 7
    assert holdings.rows.tolist() == [[30, text_code("m")], [41, text_code("f")], [52, text_code("f")]]
    assert holdings.labels.tolist() == [1, 0, 1]
    assert (holdings.labels.dtype, holdings.bags, holdings.persons) == (np.int64, None, None)
    lines = ["age,sex,dx", "1,m,1.0", "2,f,02", "3,f,1"]
    assert look(lines, agreement=plan(label={"name": "dx", "classes": ["2", "1"]}))[2].labels.tolist() == [1, 0, 1]
    assert look(lines, agreement=plan(**REAL))[2].labels.tolist() == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("n/a,f,C50", "'AGE_Y' ('age' of the plan) is missing; correct it, or say data.missing = \"drop\""),
        ("old,f,C50", "'AGE_Y' ('age' of the plan) is 'old', no number; correct it"),
        ("inf,f,C50", "'AGE_Y' ('age' of the plan) is 'inf', no number; correct it"),
        ("3,,C50", "'sex' is missing; correct it"),
        (
            "3,f,C5l",
            "'ICD' ('dx' of the plan) is 'C5l', none of the classes benign, malignant; correct it, or "
            'say in [data.columns] which class it is: dx = {from = "ICD", map = {"C5l" = "benign"}}',
        ),
        ("3,f,", "'ICD' ('dx' of the plan) is missing; correct it, or give a value in [data.missing]; no"),
    ],
)
def test_a_cell_that_cannot_be_used_keeps_the_site_from_being_ready(look, line, said):
    errors, _, holdings = look(spoilt(line), {"columns": COLUMNS})
    assert len(errors) == 1
    assert errors[0].startswith(f"p.csv:5: column {said}")
    assert np.isfinite(holdings.rows).all()  # for a question that has been paid for
    assert (holdings.rows.shape, holdings.labels[3] in (0, 1)) == ((4, 2), True)
    assert look(spoilt(line), {"columns": COLUMNS, "missing": "refuse"})[0] == errors


def test_what_is_wrong_is_told_at_once_with_how_often_and_so_is_what_nothing_can_be_learned_from(look):
    errors, _, _ = look(spoilt(",f,x", "-,f,x", "1,f,y"), {"columns": COLUMNS})
    assert [error.partition(" (")[0] for error in errors] == ["p.csv:5: column 'AGE_Y'", "p.csv:5: column 'ICD'"]
    assert "is missing (2 such rows)" in errors[0]
    assert "no classes are 'x', 'y'" in errors[1]
    assert "(3 such rows)" in errors[1]
    _, remarks, _ = look(["age,sex,dx", "1,m,benign", "1,f,benign"])
    assert remarks == ["'age' has the same value in every row", "no row has the class 'malignant'"]


def test_rows_without_a_feature_may_be_left_out_and_never_for_their_label(look):
    dropping = {"columns": COLUMNS, "missing": "drop"}
    errors, remarks, holdings = look(spoilt(",f,C50", "1,,D24"), dropping)
    assert errors == []
    assert remarks == ["2 of 5 rows have a missing or unreadable value, and are left out"]
    assert holdings.labels.tolist() == [1, 0, 1]
    assert look(spoilt("1,f,x"), dropping)[0]
    removable = plan(**promised("row", "add_remove"))
    assert look(spoilt("1,f,x", ",f,C50"), dropping, removable)[2].labels.tolist() == [1, 0, 1]
    assert look(spoilt("1,f,x"), {"columns": COLUMNS}, removable)[0]


@pytest.mark.parametrize("unit", ["row", "party"])
def test_where_whole_rows_are_protected_what_cannot_be_used_is_replaced_and_counted(look, unit):
    lines = spoilt(",m,D24", "abc,f,C50", "60,f,C51")
    errors, remarks, holdings = look(lines, {"columns": COLUMNS}, plan(**promised(unit)))
    assert errors == []
    assert remarks == [
        "1 of 6 rows have no class in 'ICD' ('dx' of the plan), and count as 'benign'",
        "2 of 6 rows have a missing or unreadable value, and count as rows of zeros",
    ]
    assert holdings.rows[3:].tolist() == [[0, 0], [0, 0], [60, text_code("f")]]
    assert holdings.labels.tolist() == [1, 0, 1, 0, 1, 0]


def test_real_labels_are_cut_to_the_range_where_whole_rows_are_protected(look):
    lines = ["age,sex,dx", "1,m,-3", "2,f,9", "3,m,x", "4,f,2.5"]
    _, remarks, holdings = look(lines, agreement=plan(**promised("row"), **REAL))
    assert holdings.labels.tolist() == [0.0, 5.0, 0.0, 2.5]
    assert "2 of 4 rows have a number outside [0, 5] in 'dx', and count as its nearer end" in remarks
    errors, _, _ = look(lines, agreement=plan(**promised("label"), **REAL))
    assert errors == [
        "p.csv:4: column 'dx' is 'x', no number; correct it, or give a value in [data.missing]; no row is left out for "
        "its label, as the number of rows is public",
        "p.csv:2: column 'dx' is '-3', outside [0, 5] (2 such rows); correct it, or agree on another range with all "
        "sites",
    ]


def not_left_out(missing):
    """The error of a table whose rows would be left out, though their number is public."""
    return (
        f'data.missing = "{missing}" is not for this plan: it protects whole rows, whose number is public, so that no '
        "value may change it; leave data.missing out, and rows without a value count as rows of zeros, or give values "
        "in [data.missing]"
    )


def beyond(agreed):
    """The error of a table of more or fewer rows than were agreed on."""
    return f"the table has 3 rows, and the plan has {agreed} in each; ask its coordinator for another"


@pytest.mark.parametrize(
    ("missing", "changed", "said"),
    [
        ("drop", promised("row"), not_left_out("drop")),
        ("refuse", promised("row"), not_left_out("refuse")),
        ({"agee": 1}, {}, "data.missing: 'agee' is no feature or label of the plan; did you mean 'age'?"),
        ({"age": "none"}, {}, "data.missing: 'age' is a column of numbers, so that its value must be one, got 'none'"),
        (None, {"rows": [4, 9]}, beyond("4 to 9")),
        (None, {"rows": [1, 2]}, beyond("1 to 2")),
    ],
)
def test_settings_and_tables_that_do_not_fit_the_plan_are_refused(look, missing, changed, said):
    settings = {"columns": COLUMNS} | ({} if missing is None else {"missing": missing})
    assert look(WORKS, settings, plan(**{**promised("label"), **changed}))[0] == [said]


@pytest.mark.parametrize("unit", ["row", "label"])
def test_values_can_stand_in_for_those_that_are_missing(look, unit):
    values = {"age": 33, "sex": "m", "dx": "malignant"}
    errors, remarks, holdings = look(spoilt("x,,"), {"columns": COLUMNS, "missing": values}, plan(**promised(unit)))
    assert errors == []
    assert len(remarks) == 3
    assert (holdings.rows[3].tolist(), holdings.labels[3]) == ([33, text_code("m")], 1)
    real = look(["age,sex,dx", "1,m,x", "1,f,2"], {"missing": {"dx": 4}}, plan(**promised(unit), **REAL))[2]
    assert real.labels.tolist() == [4.0, 2.0]


def test_cells_may_be_missing_where_the_plan_fills_them_in(look):
    by_label, by_row = (plan(missing=True, **promised(unit)) for unit in ("label", "row"))
    errors, _, holdings = look(spoilt(",,D24"), {"columns": COLUMNS}, by_label)
    assert errors == []
    assert np.isnan(holdings.rows[3, 0])
    assert holdings.rows[3, 1] == text_code("")
    assert "is 'x', no number" in look(spoilt("x,m,D24"), {"columns": COLUMNS}, by_label)[0][0]
    assert np.isnan(look(spoilt("x,m,D24"), {"columns": COLUMNS}, by_row)[2].rows[3, 0])


def test_bags_are_numbered_by_their_names_and_there_are_no_more_than_agreed(look):
    lines = ["age,sex,dx,ward", "1,m,benign,10", "2,f,malignant,9", "3,f,benign,10"]

    def bagged(most, rows):
        return plan(bags={"column": "ward", "most": most}, rows=rows)

    assert look(lines, agreement=bagged(2, [1, 2]))[2].bags.tolist() == [1, 0, 1]
    assert look(lines, agreement=bagged(1, [1, 2]))[0] == [
        "column 'ward' has 2 values (9, 10), each of which is a bag, and the plan has 1 at most; map some to one"
    ]
    assert "a bag has 1 rows, and the plan has 2 to 2" in look(lines, agreement=bagged(2, [2, 2]))[0][0]
    assert re.search(r"p\.csv.*5.*ward", look([*lines, "1,m,benign,"], agreement=bagged(2, [1, 2]))[0][0])


def test_persons_have_as_many_rows_as_agreed(look):
    lines = ["age,sex,dx,who", "1,m,benign,ann", "2,f,malignant,bob", "3,f,benign,ann"]
    assert look(lines, agreement=plan(person="who"))[0] == [
        "column 'who': persons with more rows than 1: 1, such as 'ann'; keep one row of each"
    ]
    several = plan(person="who", rows_per_person=2)
    assert look(lines, agreement=several)[2].persons.tolist() == [0, 1, 0]
    assert look(lines, {"rows-per-person": 1}, several)[0][0].endswith("correct data.rows-per-person")
    assert look(lines[:3], agreement=plan(person="who"))[2].persons.tolist() == [0, 1]


def test_rows_are_fixed_where_one_whole_one_may_be_replaced():
    fixed = {("row", "replace"), ("party", "replace")}
    for kind in {*fixed, ("row", "add_remove"), ("label", "replace"), ("person", "replace")}:
        assert rows_are_fixed(plan(**promised(*kind))) is (kind in fixed)


@given(row=st.integers(1, 3), column=st.integers(0, 2), cell=CELLS, missing=st.booleans(), real=st.booleans())
def test_no_cell_changes_how_many_rows_there_are_or_whether_they_answer(
    tmp_path_factory, row, column, cell, missing, real
):
    lines = [["age", "sex", "dx"], ["1", "m", "3"], ["2", "f", "4"], ["3", "f", "3"]]
    lines[row][column] = f'"{cell}"'
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    path.write_text("\n".join(map(",".join, lines)) + "\n")
    label = REAL if real else {"label": {"name": "dx", "classes": ["3", "4"]}}
    agreement = plan(missing=missing, **label, **promised("row"))
    where = Table(table="t", file=path)
    found = examined(source(where), agreement, where, 0).holdings
    assert found.rows.shape == (3, 2)
    assert not np.isinf(found.rows).any()
    assert missing or np.isfinite(found.rows).all()
    others = [i for i in range(3) if i != row - 1]
    plain = [[1, text_code("m")], [2, text_code("f")], [3, text_code("f")]]
    assert found.rows[others].tolist() == [plain[i] for i in others]
    labels = [3.0, 4.0, 3.0] if real else [0, 1, 0]
    assert found.labels[others].tolist() == [labels[i] for i in others]


@given(cell=CELLS, missing=st.sampled_from([None, "drop", "refuse"]), real=st.booleans())
def test_no_label_changes_which_rows_are_answered_for(tmp_path_factory, cell, missing, real):
    """Also where the site is no longer ready: an answer that is paid for has as many rows."""
    path = tmp_path_factory.getbasetemp() / "labels.csv"
    path.write_text(f'age,sex,dx\n1,m,3\n,f,3\n2,f,"{cell}"\n')
    agreement = plan(**(REAL if real else {"label": {"name": "dx", "classes": ["3", "4"]}}), **promised("label"))
    where = Table(table="t", file=path, missing=missing)
    found = examined(source(where), agreement, where, 0).holdings
    first, absent, last = [1, text_code("m")], [0, 0], [2, text_code("f")]
    assert found.rows.tolist() == ([first, last] if missing == "drop" else [first, absent, last])
    assert (0 <= found.labels[-1] <= 5) if real else (found.labels[-1] in (0, 1))


def test_a_site_hashes_the_words_of_its_own_column(look):
    stage = Hashing(4, "said", 2)
    hashed = [{"name": "age"}, *({"name": name} for name in stage.names)]
    lines = ["AGE_Y,words,ICD", "30,free money now,C50", "41,,D24", "52,a good song,C50"]
    errors, remarks, holdings = look(lines, {"columns": {**COLUMNS, "said": "words"}}, plan(columns=hashed))
    assert (errors, remarks) == ([], [])
    expected = hashed_texts([["free money now", "", "a good song"]], stage)[np.arange(3)]
    np.testing.assert_array_equal(holdings.rows, np.column_stack([[30, 41, 52], expected]))
    [error], _, none = look(lines, {"columns": COLUMNS}, plan(columns=hashed))
    assert none is None
    assert re.search(r"said.*AGE_Y.*ICD", error)


@pytest.fixture
def watched(tmp_path):
    settings = Settings.load(site_folder(tmp_path))
    return WatchedTable(settings.data, Agreement.load(settings.plan), 0)


def test_a_process_of_its_own_reads_what_the_service_has_seen_and_refuses_a_table_that_is_not_as_agreed(watched):
    holdings, told = watched.read()
    cohort = Cohort(watched.reference, 0, 1, None)
    found = cohort.holdings(0)
    assert told == ["no row has the class 'maybe'"]
    assert found.rows.tolist() == holdings.rows.tolist()
    assert found.labels.tolist() == holdings.labels.tolist()
    assert cohort.provider.evaluation() is None
    path = watched.where.file
    path.write_text(path.read_text().replace(",r,", ",s,"))
    refused("'r'", Cohort(watched.reference, 0, 1, None).provider.holdings, 0)


def test_a_file_is_another_one_once_it_has_changed(watched):
    before, path = watched.version(), watched.where.file
    assert watched.version() == before
    path.write_text(path.read_text() + "1,2,3,perhaps\n")
    assert watched.version() != before
    _, told = watched.read()
    assert told == ["1 of 41 rows have no class in 'ill', and count as 'no'", "no row has the class 'maybe'"]
    os.remove(path)
    assert watched.version() is None
    holdings, told = watched.read()
    assert (holdings, len(told)) == (None, 1)
    assert re.search(r"file.*rows\.csv", told[0])


@pytest.mark.slow
def test_a_server_that_goes_away_in_the_middle_of_reading_is_away_and_a_cell_that_fails_is_not(watched):
    def asked(cells):
        query = f"select {cells} as p, 1.5 as q, 2.5 as r, 'no' as ill from generate_series(1, 100) as n"
        where = watched.where.model_copy(update={"file": None, "query": query, "url": server.url()})
        return Cohort(replace(watched, where=where).reference, 0, 1, None).provider

    with postgresql() as server:
        assert _away(asked("n"), 0) == _away(asked("n / (n - 50)"), 0) == ""
        going = threading.Timer(1.0, server.stop)
        going.start()
        told = _away(asked("n + length(pg_sleep(0.1)::text)"), 0)  # of ten seconds
        going.join()
        server.start()
    assert told.startswith("data.query: the data base says: ")


def test_a_query_is_made_again_after_a_while(watched, monkeypatch):
    where = watched.where.model_copy(update={"file": None, "query": "select 1", "url": "sqlite:///none"})
    asked, now = replace(watched, where=where), [1000.0]
    monkeypatch.setattr(site_table.time, "monotonic", lambda: now[0])
    before = asked.version()
    now[0] += 1
    assert asked.version() == before
    now[0] += 700
    assert asked.version() != before
