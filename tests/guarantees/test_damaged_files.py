"""Files after an accident, of every kind that somebody may name: they are read, or refused in a sentence with the name.

Never anything else: an unforeseen error is a bug here, and so is a model that is read after its bytes have changed.
"""

import contextlib
import io
import random
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from support.damage import damaged, read_or_refused, variations
from support.released_runs import line_run, network_run, vote_run

from aggregator.trial.plan import TrialPlan
from scenarios.commands.predict import predict_command
from scenarios.data.files import read_rows, read_table
from scenarios.scores.prediction import find_model, predict
from scenarios.scores.results import COLUMNS, read_results

CSV = (
    b'a,b,y\n1,2,u\n3,4,v\n"5",6,u\n7,8,v\n',
    'a;b;y\r\n1,5;x;ü\r\n3;"z\r\nz";v\r\n5;x;ü\r\n'.encode(),
    b"\xef\xbb\xbfa\tb\ty\n1\t2\tu\n3\t\tv\n",
)


def parquet_bytes(**options) -> bytes:
    texts = pyarrow.array(["x", "z", "x"])
    columns = {"a": pyarrow.array([1.0, 2.0, None]), "b": texts, "c": texts.dictionary_encode(), "y": texts}
    out = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), out, **options)
    return out.getvalue()


def npz_bytes(save) -> bytes:
    out = io.BytesIO()
    save(out, X=np.arange(6.0).reshape(3, 2), y=np.array(["u", "v", "u"]), feature_names=np.array(["a", "b"]))
    return out.getvalue()


RESULTS = (",".join(COLUMNS) + "\ns,soft_vote,v,1,0.5,0,party,0,1,accuracy,0.75\n").encode()
CONTENTS = {
    "csv": CSV,
    "npz": (npz_bytes(np.savez), npz_bytes(np.savez_compressed)),
    "parquet": (parquet_bytes(compression="none"), parquet_bytes(compression="zstd", use_dictionary=False)),
}


@pytest.mark.parametrize("suffix", CONTENTS)
@given(data=st.data())
def test_data(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("damaged") / f"own.{suffix}"
    path.write_bytes(data.draw(st.sampled_from(CONTENTS[suffix]).flatmap(damaged)))
    read_or_refused(lambda: read_table(path, "y", missing=True), path)
    read_or_refused(lambda: read_rows(path, ("a", "b"), (1,), missing=True), path)


@given(damaged(RESULTS))
def test_results(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("damaged") / "results.csv"
    path.write_bytes(content)
    for row in read_or_refused(lambda: read_results(path), path) or ():
        assert set(row) >= set(COLUMNS)
        assert isinstance(row["value"], float)


@given(damaged(b'{"world": "w", "public": {"target": "a:b", "arguments": {}}, "variants": [], "classes": ["a"]}'))
def test_plans(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("damaged") / "plan.json"
    path.write_bytes(content)
    assert read_or_refused(lambda: TrialPlan.load(path), path) is None  # it lacks the rest


RUNS = {
    "linear": lambda folder: vote_run(folder, np.random.default_rng(0)),
    "classifier": network_run,
    "lines": line_run,
}


@pytest.fixture(params=RUNS)
def run(request, tmp_path):
    return RUNS[request.param](tmp_path)


def told(directory: Path, file: Path) -> str:
    """What the command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as said:
        predict_command(directory, file, "default", None, 0, 0, None, None, False)
    return out.getvalue() + said.getvalue()


@given(data=st.data(), kind=st.sampled_from([*RUNS]))
def test_models_after_an_accident(tmp_path_factory, data, kind):
    """What is read is what was written: checksums guard every array."""
    directory, file = RUNS[kind](tmp_path_factory.mktemp("damaged"))
    source, before = find_model(directory, "default", 0), told(directory, file)
    source.write_bytes(data.draw(damaged(source.read_bytes())))
    assert read_or_refused(lambda: told(directory, file), source) in (None, before)


def test_models_cut_short_at_any_byte(run):
    source = find_model(run[0], "default", 0)
    content = source.read_bytes()
    for length in [*range(0, len(content), 97), len(content) - 1]:
        source.write_bytes(content[:length])
        assert read_or_refused(lambda: predict(run[0], "default", run[1]), source) is None


def test_models_of_other_arrays_and_other_words(run):
    """Of a file that somebody else has written, which no checksum guards."""
    source = find_model(run[0], "default", 0)
    read = []
    for _, arrays in random.Random(0).sample([*variations(source)], 50):
        np.savez(source, **arrays)
        # Rows lack the columns that another model takes, so that the file of rows may be the one that is named.
        read.append(read_or_refused(lambda: told(*run), source, run[1]) is not None)
    assert 5 < sum(read) < 45
