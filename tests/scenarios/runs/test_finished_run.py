"""A finished run in Python: what it shows, and its results in libraries of data frames."""

import math
import sys

import duckdb
import pandas
import polars
import pyarrow
import pytest
from support.released_runs import vote_run

from federation.contract.errors import InputError
from scenarios.runs.finished_run import Results, Run
from scenarios.runs.progress import Costs
from scenarios.scores.results import write_results

KEPT = [("soft_vote", 0.5, "party"), ("soft_vote", 2.0, "party"), ("pooled", math.inf, "none")]
ROWS = [
    {
        **{"scenario": "<tiny>", "protocol": name, "variant": name, "default": int(name == "soft_vote")},
        **{"epsilon": epsilon, "delta": 0.0, "unit": unit, "split": 0, "noise": draw},
        **{"metric": "accuracy", "value": 0.25 + draw / 8},
    }
    for name, epsilon, unit in KEPT
    for draw in range(2)
]


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, ROWS, Costs(), {}, [])


def test_a_run_says_in_a_line_what_it_is(run, tmp_path):
    assert repr(run) == f"Run('<tiny>': soft_vote, pooled; epsilon 0.5, 2; in {tmp_path})"
    assert repr(Run(tmp_path, [], Costs(), {}, [])) == f"Run('nothing finished': ; in {tmp_path})"
    many = [{**ROWS[0], "variant": f"v{n}"} for n in range(6)]
    assert "v0, v1, v2, v3 and 2 more; epsilon 0.5; in" in repr(Run(tmp_path, many, Costs(), {}, []))


def test_notebooks_show_the_table_of_results_and_rows(run):
    page = run._repr_html_()
    assert page.count("<tr>") == 1 + 2  # the head and the variants
    assert "<td>soft_vote (default)</td>" in page
    assert "0.312 ± 0.088" in page
    rows = Results(ROWS)._repr_html_()
    assert "<td>&lt;tiny&gt;</td>" in rows  # names are text
    assert "<td>inf</td>" in rows
    assert Results(ROWS * 10)._repr_html_().count("<tr>") == 21
    assert "60 rows, of which the first 20" in Results(ROWS * 10)._repr_html_()
    assert "<th>epsilon</th>" in Results([])._repr_html_()


def test_results_are_rows_that_arrow_takes(run):
    results = Results(ROWS)
    assert results == ROWS
    assert pyarrow.RecordBatchReader.from_stream(results).read_all().to_pylist() == ROWS


def test_without_pandas_results_are_a_list_that_notebooks_show(run, monkeypatch):
    assert isinstance(run.results, pandas.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    assert isinstance(run.results, Results)
    assert run.results == ROWS
    assert "<td>soft_vote</td>" in run.results._repr_html_()


def test_the_file_of_results_loads_in_a_line(tmp_path):
    write_results(tmp_path / "results.csv", ROWS, [])
    from pyarrow.csv import read_csv

    table = read_csv(tmp_path / "results.csv")
    assert str(table.schema.field("epsilon").type) == "double"  # infinite ones too
    assert table.to_pylist() == ROWS


def test_pandas_reads_it(tmp_path, run):
    write_results(tmp_path / "results.csv", ROWS, [])
    assert pandas.read_csv(tmp_path / "results.csv").epsilon.max() == math.inf
    assert pandas.DataFrame(Results(ROWS)).equals(run.results)


def test_polars_reads_it(tmp_path):
    write_results(tmp_path / "results.csv", ROWS, [])
    assert polars.read_csv(tmp_path / "results.csv")["epsilon"].max() == math.inf
    assert polars.DataFrame(Results(ROWS)).to_dicts() == ROWS


def test_duckdb_reads_it(tmp_path):
    write_results(tmp_path / "results.csv", ROWS, [])
    assert duckdb.sql(f"SELECT max(epsilon) FROM '{tmp_path / 'results.csv'}'").fetchall() == [(math.inf,)]


def test_a_model_of_the_run(tmp_path, rng):
    directory, _ = vote_run(tmp_path, rng)
    run = Run(directory, ROWS, Costs(), {}, [])
    assert run.model("soft_vote", epsilon=2, draw=3).epsilon_ == 2.0
    assert run.model().epsilon_ == 8.0
    with pytest.raises(InputError, match=r"epsilon 7 has no release in .*; there are 0.5, 2, 8"):
        run.model("soft_vote", epsilon=7)
