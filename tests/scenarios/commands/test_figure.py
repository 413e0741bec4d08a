"""`federation figure`: what it takes, writes and refuses."""

import json

import pytest

from federation.contract.errors import InputError
from scenarios.commands.report import _labels


def test_a_figure_of_a_run_with_its_caption(make_run, done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run()
    out = done(
        "figure", str(run), "--x", "inverse_epsilon", "--metric", "accuracy", "--only", "soft_vote,pooled",
        "--label", "soft_vote=Our method", "--size", "column", "--format", "pdf,svg",
    )  # fmt: skip
    assert out.startswith("caption: Mean accuracy over 3 to 6 releases of 3 splits; bars:")
    assert out.endswith("wrote accuracy-inverse_epsilon.pdf, accuracy-inverse_epsilon.svg\n")
    assert (tmp_path / "accuracy-inverse_epsilon.pdf").read_bytes().startswith(b"%PDF")


def test_several_runs_make_one_curve(make_run, done, tmp_path):
    runs = []
    for count in (100, 200):
        run = make_run(f"run-{count}")
        (run / "scenario.yaml").write_text(f"name: run\nparties: {{count: {count}}}\n")
        runs.append(str(run))
    record = json.loads(
        done("figure", *runs, "--x", "parties", "--at", "epsilon=10", "--json", "--out", str(tmp_path / "a.pdf"))
    )
    assert record["files"] == [str(tmp_path / "a.pdf")]
    assert (record["x"], record["remarks"]) == ("parties", [])
    assert record["variants"] == ["soft_vote", "soft_vote-gaussian", "pooled", "individual"]


REFUSED = {
    ("--format", "pfd"): "--format 'pfd' is none of pdf, svg, png; did you mean 'pdf'?",
    ("--metric", "f1"): "which have accuracy, bytes_per_party",
    ("--only", "softvote"): "did you mean 'soft_vote'?",
    ("--at", "epsilon"): "--at expects KEY=VALUE",
    ("--label", "soft=x"): "one of the variants soft_vote, gaussian",
    ("--size", "9"): "--size must be",
}


def test_bad_input_is_one_line_that_asks_once(make_run, refused):
    run = str(make_run())
    for arguments, message in REFUSED.items():
        line = refused("figure", run, *arguments)
        assert message in line
        assert line.lower().count("did you mean") <= 1


def test_labels_belong_to_the_longest_name():
    names = {"soft_vote": "soft_vote", "soft_vote-k=1": "k=1", "soft_vote-k=1=2": "k=1=2"}
    found = _labels(["soft_vote-k=1=A = B", "soft_vote=", "soft_vote=x"][::2], names)
    assert found == {"k=1": "A = B", "soft_vote": "x"}
    assert _labels(["k=1=2=C"], names) == {"k=1=2": "C"}
    with pytest.raises(InputError, match="--label expects VARIANT=TEXT"):
        _labels(["soft_vote="], names)
