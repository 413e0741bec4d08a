"""`federation report`: what it writes, draws again and prints of one run and of several.

`federation figure`: what it takes, writes and refuses.
"""

import json
import math

import numpy as np
import pytest
import yaml
from support.finished_runs import renamed

from federation.contract.errors import InputError
from scenarios.commands.report import _labels, report_command
from scenarios.scores.results import read_results


@pytest.mark.slow
def test_command_compares_several_here_or_elsewhere_and_reads_the_results_once(make_run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directories, asked = [make_run(), make_run("again")], []
    for module in ("scenarios.scores.results", "scenarios.reports.report"):
        monkeypatch.setattr(f"{module}.read_results", lambda path: asked.append(path) or read_results(path))
    report_command(directories, None, True)
    assert asked == [directory / "results.csv" for directory in directories]
    record = json.loads(capsys.readouterr().out)
    assert record["report"] == "report.html"
    assert [run["directory"] for run in record["runs"]] == [str(directory) for directory in directories]
    first = record["runs"][0]["variants"][0]
    assert (first["variant"], first["default"]) == ("soft_vote", True)
    assert first["values"][1]["mean"] == pytest.approx(0.7)
    assert (tmp_path / "report.html").exists()
    with pytest.raises(InputError, match="--out"):
        report_command(directories, tmp_path / "no" / "report.html", False)


@pytest.mark.slow
def test_the_command_draws_again_and_prints_the_table_and_the_path(make_run, capsys):
    directory = make_run()
    (directory / "figures").mkdir()
    (directory / "figures/accuracy.svg").write_text("of another time")
    report_command([directory], None, False)
    out = capsys.readouterr().out
    assert "soft_vote (default)" in out
    assert out.endswith(f"wrote {directory / 'report.html'}\n")
    assert (directory / "report.html").exists()
    assert {path.name for path in (directory / "figures").iterdir()} == {"accuracy.png", "accuracy.svg"}
    assert "</svg>" in (directory / "figures/accuracy.svg").read_text()


def test_the_command_prints_errors_as_such(make_run, capsys, monkeypatch):
    monkeypatch.setattr("scenarios.reports.figures.draw", lambda *_: None)
    directory = renamed(make_run(), "l1")
    report_command([directory], None, False)
    assert "L1 error" in capsys.readouterr().out
    report_command([directory], None, True)
    variant = json.loads(capsys.readouterr().out)["runs"][0]["variants"][0]
    assert (variant["metric"], variant["values"][1]["mean"]) == ("l1", pytest.approx(0.7))


@pytest.mark.slow
def test_guarantee_pages_are_made_again_and_entries_where_they_are_asked_for(make_run, capsys, monkeypatch):
    monkeypatch.setattr("scenarios.reports.figures.draw", lambda *_: None)
    directories = [make_run(), make_run("again")]
    report_command(directories, directories[0] / "both.html", True)
    record = json.loads(capsys.readouterr().out)
    assert record["written"] == [str(directory / "guarantee.html") for directory in directories]
    assert not (directories[0] / "registry.yaml").exists()
    report_command(directories[:1], None, True, registry=True)
    written = [str(directories[0] / name) for name in ("guarantee.html", "registry.yaml", "sp800-226.yaml")]
    assert json.loads(capsys.readouterr().out)["written"] == written
    assert yaml.safe_load((directories[0] / "registry.yaml").read_text())["tier"] == 3


def test_a_deployed_aggregators_directory_has_a_guarantee_page_and_no_report(tmp_path, capsys):
    ledger = {"budget": None, "releases": [], "published_together": []}
    disclosure = {"world": "w", "simulation": False, "parties": 3, "quorum": 1.0, "private_rows": 0, "public_rows": 5}
    world = {"ledger": ledger, "bytes_per_party": {}, "disclosure": {**disclosure, "draws": 1, "variants": {}}}
    (tmp_path / "world.json").write_text(json.dumps(world))
    report_command([tmp_path], None, False)
    assert capsys.readouterr().out == f"wrote {tmp_path / 'guarantee.html'}\n"
    assert ">REAL<" in (tmp_path / "guarantee.html").read_text()
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_three_commands_lead_from_a_table_to_the_officers_page(tmp_path, monkeypatch, done):
    """In an empty folder, without that anybody edits a file."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(160, 2))
    lines = [f"{one:.3f},{other:.3f},{'ill' if one > 0 else 'well'}" for one, other in rows]
    (tmp_path / "people.csv").write_text("\n".join(["age,pulse,found", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    for command in (
        "init people.csv --label found --protect label --trust none --parties 4 --epsilon 2",
        "run my-scenario.yaml",
        "report runs/my-scenario --registry",
    ):
        done(*command.split())
    page = (tmp_path / "runs/my-scenario/guarantee.html").read_text()
    assert "SIMULATION" in page
    assert "<strong>the label of one row</strong>" in page
    assert "Each of the 4 parties" in page
    assert 'href="guarantee.html"' in (tmp_path / "runs/my-scenario/report.html").read_text()
    entry = yaml.safe_load((tmp_path / "runs/my-scenario/registry.yaml").read_text())
    assert entry["deployment"]["privacy_loss"]["privacy_unit"] == "the label of one row"
    known = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert known["epsilon"] == 2.0
    # Whoever knows all else and tosses a coin about one label is right so often at most, by hand.
    assert f"{math.ceil(1000 * (math.exp(2) + known.get('delta', 0)) / (1 + math.exp(2))) / 10:.1f} %" in page


@pytest.mark.slow
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
    file = str(tmp_path / "a.pdf")
    record = json.loads(done("figure", *runs, "--x", "parties", "--at", "epsilon=10", "--json", "--out", file))
    assert record["files"] == [file]
    assert (record["x"], record["remarks"]) == ("parties", [])
    assert record["variants"] == ["soft_vote", "soft_vote-gaussian", "pooled", "individual"]


def test_bad_input_is_one_line_that_asks_once(make_run, refused):
    run = str(make_run())
    for arguments, message in {
        ("--format", "pfd"): "--format 'pfd' is none of pdf, svg, png; did you mean 'pdf'?",
        ("--metric", "f1"): "which have accuracy, bytes_per_party",
        ("--only", "softvote"): "did you mean 'soft_vote'?",
        ("--at", "epsilon"): "--at expects KEY=VALUE",
        ("--label", "soft=x"): "one of the variants soft_vote, gaussian",
        ("--size", "9"): "--size must be",
    }.items():
        line = refused("figure", run, *arguments)
        assert message in line
        assert line.lower().count("did you mean") <= 1


def test_labels_belong_to_the_longest_name():
    names = {"soft_vote": "soft_vote", "soft_vote-k=1": "k=1", "soft_vote-k=1=2": "k=1=2"}
    found = _labels(["soft_vote-k=1=A = B", "soft_vote=", "soft_vote=x"][::2], names)
    assert found == {"k=1": "A = B", "soft_vote": "x"}
    assert _labels(["k=1=2=C"], names) == {"k=1=2": "C"}
    with pytest.raises(InputError, match=r"--label.*VARIANT.*TEXT"):
        _labels(["soft_vote="], names)
