"""`federation report`: what it writes, draws again and prints of one run and of several."""

import json

import pytest
from support.finished_runs import renamed

from federation.contract.errors import InputError
from scenarios.commands.report import report_command
from scenarios.scores.results import read_results


def test_the_command_reads_the_results_once(make_run, monkeypatch, capsys):
    directories, asked = [make_run(), make_run("again")], []
    for module in ("scenarios.scores.results", "scenarios.reports.report"):
        monkeypatch.setattr(f"{module}.read_results", lambda path: asked.append(path) or read_results(path))
    report_command(directories, directories[0] / "both.html", True)
    assert asked == [directory / "results.csv" for directory in directories]


def test_the_command_draws_again(make_run, capsys):
    directory = make_run()
    (directory / "figures").mkdir()
    (directory / "figures/accuracy.svg").write_text("of another time")
    report_command([directory], None, True)
    assert {path.name for path in (directory / "figures").iterdir()} == {"accuracy.png", "accuracy.svg"}
    assert "</svg>" in (directory / "figures/accuracy.svg").read_text()


def test_command_prints_the_table_and_the_path(make_run, capsys):
    directory = make_run()
    report_command([directory], None, False)
    out = capsys.readouterr().out
    assert "soft_vote (default)" in out
    assert out.endswith(f"wrote {directory / 'report.html'}\n")
    assert (directory / "report.html").exists()


def test_command_compares_several_here_or_elsewhere(make_run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directories = [make_run(), make_run("again")]
    report_command(directories, None, True)
    record = json.loads(capsys.readouterr().out)
    assert record["report"] == "report.html"
    assert [run["directory"] for run in record["runs"]] == [str(directory) for directory in directories]
    first = record["runs"][0]["variants"][0]
    assert (first["variant"], first["default"]) == ("soft_vote", True)
    assert first["values"][1]["mean"] == pytest.approx(0.7)
    assert (tmp_path / "report.html").exists()
    with pytest.raises(InputError, match="name another --out"):
        report_command(directories, tmp_path / "no" / "report.html", False)


def test_the_command_prints_errors_as_such(make_run, capsys):
    directory = renamed(make_run(), "l1")
    report_command([directory], None, False)
    assert "L1 error" in capsys.readouterr().out
    report_command([directory], None, True)
    variant = json.loads(capsys.readouterr().out)["runs"][0]["variants"][0]
    assert (variant["metric"], variant["values"][1]["mean"]) == ("l1", pytest.approx(0.7))
