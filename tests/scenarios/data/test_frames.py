"""New rows in blocks are the rows that are read at once, and there may be more of them where they are hashed."""

from types import SimpleNamespace

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.refusals import refused

import scenarios
from federation.contract.errors import InputError
from scenarios.data import hashing
from scenarios.data.catalogue import load
from scenarios.data.files import read_rows, read_table
from scenarios.data.frames import as_file, read_unlabelled, sheet
from scenarios.scores.results import read_results

RANDOM = np.random.default_rng(3)
N = 240
AGE = RANDOM.normal(40, 12, N).round()
CITY = RANDOM.choice(["Rome", "Oslo", " Bern"], N)
COLUMNS = {
    "age": pyarrow.array(AGE, from_pandas=True),
    "income": pyarrow.array([None if n % 50 == 0 else float(n % 17) for n in range(N)]),
    "member": pyarrow.array((AGE > 35).tolist()),
    "city": pyarrow.array(CITY.tolist()).dictionary_encode(),
    "ill": pyarrow.array(np.where(AGE + 8 * (CITY == "Rome") > 43, "yes", "no").tolist()),
}
FRAME = pyarrow.table(COLUMNS)
WORDS, COLOURS, SPARSE = hashing.Hashing(3, "said"), hashing.Hashing(2, "colour", 2), hashing.Hashing(4)


def capsule(table):
    """What offers nothing but the PyCapsule interface."""
    return SimpleNamespace(__arrow_c_stream__=table.__arrow_c_stream__)


def interchange(table):
    """What offers nothing but the interchange protocol, as old releases of pandas."""
    return SimpleNamespace(__dataframe__=table.__dataframe__)


def scenario(**data):
    return {
        "name": "people",
        "data": {"label": "ill", **data},
        "parties": {"count": 12},
        "privacy": {"epsilon": [20]},
        "trials": {"splits": 1, "noise": 1},
    }


@pytest.mark.parametrize("wrapped", [capsule, interchange, lambda table: table])
def test_a_frame_is_the_table_that_its_file_is(tmp_path, wrapped):
    write_table(FRAME, tmp_path / "people.parquet")
    of_file = read_table(tmp_path / "people.parquet", "ill", missing=True)
    with as_file(wrapped(FRAME)) as (name, folder):
        table = load(name, data_dir=folder, label="ill", missing=True)
    assert (table.columns, table.classes, table.text) == (of_file.columns, of_file.classes, of_file.text)
    assert table.text == (3,)
    every = np.arange(N)
    np.testing.assert_array_equal(table.rows(every), of_file.rows(every))
    np.testing.assert_array_equal(table.labels, of_file.labels)
    assert not (folder / name).exists()  # nothing of private rows stays behind


def test_a_run_of_a_frame_measures_what_a_run_of_its_file_does(tmp_path, undrawn):
    write_table(FRAME, tmp_path / "people.parquet")
    references = {"protocols": [{"kind": "pooled"}, {"kind": "constant"}]}  # noise is keyed by the bytes of the file
    resolved = scenarios.resolve(scenario(source=str(tmp_path / "people.parquet")) | references)
    of_frame = scenarios.run(resolved, data=FRAME, out=tmp_path / "frame", overrides=["trials.noise=3"])
    of_file = scenarios.run(resolved, out=tmp_path / "file", overrides=["trials.noise=3"])
    assert of_frame.rows == of_file.rows
    assert {row["noise"] for row in of_frame.rows} == {0}  # of baselines
    assert "  noise: 3\n" in (tmp_path / "frame" / "scenario.yaml").read_text()
    assert str(tmp_path) not in (tmp_path / "frame" / "scenario.yaml").read_text()


def test_equal_frames_resume_a_run_and_others_do_not(tmp_path, undrawn):
    first = scenarios.run(scenario(), data=FRAME, out=tmp_path)
    before = (tmp_path / "results.csv").read_bytes()
    plain = FRAME.set_column(3, "city", pyarrow.array(CITY.tolist(), pyarrow.string_view()))  # another kind of text
    again = scenarios.run(scenario(), data=capsule(plain), out=tmp_path, resume=True)
    assert (tmp_path / "results.csv").read_bytes() == before
    assert again.rows == read_results(tmp_path / "results.csv")
    assert len(first.rows) == len(again.rows)
    refused(None, scenarios.run, scenario(), data=FRAME.slice(1), out=tmp_path, resume=True)


def test_the_index_of_pandas_is_no_column():
    described = b'{"index_columns": ["__index_level_0__", "person"]}'
    table = pyarrow.table({"x": [1.0], "person": [7], "__index_level_0__": [3]})
    assert sheet(capsule(table.replace_schema_metadata({"pandas": described}))).header == ["x"]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ([[1, 2]], "data"),
        (FRAME.slice(0, 0), None),
        (pyarrow.table([[1], [2]], names=["a", "a"]), "'a'"),
        (FRAME.drop_columns(["ill"]), "ill"),
        (FRAME.append_column("born", pyarrow.array([0] * N, pyarrow.date32())), r"frame.*column.*born"),
        (FRAME.append_column("size", pyarrow.array([float("inf")] * N)), "size"),
    ],
)
def test_what_cannot_be_used_is_told_of_the_frame_and_its_column(tmp_path, frame, words):
    with pytest.raises(InputError, match=words) as told:
        scenarios.run(scenario(), data=frame, out=tmp_path / "run")
    assert "frame-" not in str(told.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("made", [pandas.DataFrame, polars.DataFrame, lambda cells: duckdb.from_arrow(FRAME)])
def test_files_of_equal_frames_of_all_libraries_are_equal(made):
    frame = made({name: column.to_pylist() for name, column in COLUMNS.items()})
    batches = pyarrow.Table.from_batches(FRAME.to_batches(max_chunksize=100))
    with as_file(frame) as (of_library, folder), as_file(FRAME) as (of_arrow, _), as_file(batches) as (of_batches, _):
        assert of_library == of_arrow == of_batches
        assert folder.stat().st_mode & 0o077 == 0  # nobody else may read it


@pytest.fixture
def comments(tmp_path):
    lines = [f"{i},{'red' if i % 3 else 'light blue'},word{i % 5} and {i}" for i in range(20)]
    path = tmp_path / "comments.csv"
    path.write_text("likes,colour,said\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def sparse(tmp_path):
    path = tmp_path / "new.svm"
    path.write_text("".join(f"1 {i + 1}:0.5 {7 * i + 30}:2\n" for i in range(20)))
    return path


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (("likes", *WORDS.names), ()),
        (("colour", "likes", *WORDS.names, *COLOURS.names), (0,)),
        (WORDS.names, ()),
        ((*WORDS.names, "likes"), ()),  # not as models have them: all at once
        (("likes", *WORDS.names[1:]), ()),
        (("likes", "colour"), (1,)),
    ],
)
def test_blocks_hold_the_rows_that_are_read_at_once(comments, columns, text):
    found = read_unlabelled(comments, columns, text)
    assert (found.columns, found.text) == (columns, text)
    np.testing.assert_array_equal(found.rows(range(20)), read_rows(comments, columns, text))


def test_more_hashed_rows_than_memory_holds_with_their_zeros(comments, sparse, monkeypatch):
    expected = read_rows(comments, WORDS.names)
    of_sparse = read_rows(sparse, SPARSE.names)
    np.testing.assert_array_equal(read_unlabelled(sparse, SPARSE.names).rows(range(20)), of_sparse)
    monkeypatch.setattr(hashing, "MOST_CELLS", 20 * 8 - 1)
    refused("159", read_rows, comments, WORDS.names)
    np.testing.assert_array_equal(read_unlabelled(comments, WORDS.names).rows(range(20)), expected)
    assert len(read_unlabelled(sparse, SPARSE.names)) == 20


def test_columns_that_lack_are_named_together(comments):
    refused(r"2.*3", read_unlabelled, comments, ("age", "likes", *hashing.Hashing(2, "text").names))
    refused(r"siad.*said", read_unlabelled, comments, ("likes", *hashing.Hashing(2, "siad").names))
