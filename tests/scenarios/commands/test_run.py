"""What `federation run` tells at its end."""

import json

import pytest

from scenarios.commands.run import run_command

SMALL = ["data.auxiliary=60", "data.features=[{whiten: 4}, unit_norm]", "parties.count=20", "trials.splits=1"]


@pytest.fixture
def run(tmp_path):
    """Runs the quickstart, small, with some settings."""

    def call(*settings, as_json=False):
        run_command(
            "quickstart",
            out=tmp_path / "run",
            settings=[*SMALL, *settings],
            as_json=as_json,
        )
        return json.loads((tmp_path / "run" / "run.json").read_text())["failures"]

    return call


def test_failed_parties_are_told_with_their_causes(run, capsys, undrawn):
    [(cause, count)] = run("parties.dropout=0.3").items()
    assert cause == "dropped out"
    assert f"{count} parties failed, over all worlds: {count} x dropped out" in capsys.readouterr().err


def test_without_failures_it_ends_with_the_report_and_the_next_command(run, tmp_path, capsys):
    assert run() == {}
    printed = capsys.readouterr()
    assert "failed" not in printed.err
    assert printed.out.endswith(f"report: {tmp_path}/run/report.html\nnext: federation figure {tmp_path}/run\n")


def test_without_test_rows_there_is_a_hint_and_no_table(run, capsys, undrawn):
    run("data.test=0", "trials.noise=1", "privacy.epsilon=10")
    printed = capsys.readouterr()
    assert printed.out.startswith("wrote ")
    assert "hint: There are no test rows" in printed.err


def test_json_has_the_causes_too(run, capsys, undrawn):
    causes = run("parties.dropout=0.3", as_json=True)
    assert json.loads(capsys.readouterr().out)["failures"] == causes


def test_what_was_found_about_bags_is_told_and_stands_in_the_report(tmp_path, capsys):
    few = ["data.positive=['3', '8']", "parties.count=2", "parties.rows=60", "parties.partition={majority: 0.1}"]
    small = [
        "data.auxiliary=60",
        "privacy.epsilon=10",
        "trials.splits=1",
        "trials.noise=1",
        "protocols=[{kind: class_ratio}]",
    ]
    run_command("digits-class-ratio", out=tmp_path / "run", settings=[*few, *small])
    remark = "class_ratio: whether bags differ in more than their class ratios cannot be checked with 2 bags"
    assert f"hint: {remark}" in capsys.readouterr().err
    assert f"Remark: {remark}" in (tmp_path / "run" / "report.html").read_text()
    assert ",weight_bag_classifier,1" in (tmp_path / "run" / "results.csv").read_text()


def test_with_one_epsilon_the_next_command_applies_the_model(run, tmp_path, capsys, undrawn):
    run("privacy.epsilon=10", "trials.noise=1")
    assert capsys.readouterr().out.endswith(f"next: federation predict {tmp_path}/run --variant soft_vote FILE\n")


def test_quiet_prints_the_path_of_the_report_alone(done, tmp_path, capsys):
    few = [
        text
        for setting in (*SMALL, "trials.noise=1", "privacy.epsilon=10", "parties.dropout=0.3")
        for text in ("--set", setting)
    ]
    assert done("run", "quickstart", *few, "--quiet", "--out", str(tmp_path / "run")) == f"{tmp_path}/run/report.html\n"
    assert capsys.readouterr().err == ""


def test_verbose_and_the_log_file_tell_versions_seed_phases_and_worlds(tmp_path, capsys, undrawn):
    run_command("quickstart", out=tmp_path / "run", settings=[*SMALL, "seed=77", "trials.noise=1"], verbose=True,
                log_file=tmp_path / "log")  # fmt: skip
    told = capsys.readouterr().err
    for text in ("seed 77, engine inline; python 3.", "phase release: ", "world 1 of 1 (split 0)", "world 1 of 1 took"):
        assert text in told
        assert text in (tmp_path / "log").read_text()
    assert "━" not in told  # lines take the place of bars
    assert "messages are answered" in (tmp_path / "log").read_text()
