"""What `federation run` tells at its end.

What a run tells while it goes on, on the terminal and in a file.
"""

import io
import json
import logging
import re
import sys

import pytest

from federation.contract.errors import FederationError, InputError
from scenarios.commands.run import logged, run_command

SMALL = [
    "data.auxiliary=60", "data.features=[{whiten: 4}, unit_norm]", "parties.count=20", "trials.splits=1",
    "trials.noise=1", "privacy.epsilon=10",
]  # fmt: skip
OURS = ("federation", "parties", "aggregator", "scenarios", "flwr", "ray", "")
NAMES = ("scenarios.runs.runner", "parties.app")
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: ")


@pytest.fixture
def run(tmp_path, undrawn):
    """Runs the quickstart, small, with some settings."""

    def call(*settings, as_json=False):
        out = tmp_path / ("json" if as_json else "run")
        run_command("quickstart", out=out, settings=[*SMALL, *settings], as_json=as_json)
        return json.loads((out / "run.json").read_text())["failures"]

    return call


def test_failed_parties_are_told_with_their_causes(run, capsys):
    [(cause, count)] = run("parties.dropout=0.3").items()
    assert cause == "dropped out"
    assert f"{count} parties failed, over all worlds: {count} x dropped out" in capsys.readouterr().err
    causes = run("parties.dropout=0.3", as_json=True)
    assert json.loads(capsys.readouterr().out)["failures"] == causes


def test_without_failures_it_ends_with_the_report_and_the_next_command(run, tmp_path, capsys):
    assert run("privacy.epsilon=[1, 10]") == {}
    printed = capsys.readouterr()
    assert "failed" not in printed.err
    assert printed.out.endswith(f"report: {tmp_path}/run/report.html\nnext: federation figure {tmp_path}/run\n")


def test_with_one_epsilon_the_next_command_applies_the_model_and_without_test_rows_there_is_no_table(
    run, tmp_path, capsys
):
    run("data.test=0")
    printed = capsys.readouterr()
    assert printed.out.startswith("wrote ")
    assert "hint: There are no test rows" in printed.err
    assert printed.out.endswith(f"next: federation predict {tmp_path}/run --variant soft_vote FILE\n")


@pytest.mark.slow
def test_what_was_found_about_bags_is_told_and_stands_in_the_report(tmp_path, capsys):
    few = ["data.positive=['3', '8']", "parties.count=2", "parties.rows=60", "parties.partition={majority: 0.1}"]
    small = [setting for setting in SMALL if not setting.startswith(("data.features", "parties"))]
    settings = [*few, *small, "protocols=[{kind: class_ratio}]"]
    run_command("digits-class-ratio", out=tmp_path / "run", settings=settings)
    remark = "class_ratio: whether bags differ in more than their class ratios cannot be checked with 2 bags"
    assert f"hint: {remark}" in capsys.readouterr().err
    assert f"Remark: {remark}" in (tmp_path / "run" / "report.html").read_text()
    assert ",weight_bag_classifier,1" in (tmp_path / "run" / "results.csv").read_text()


@pytest.mark.slow
def test_quiet_prints_the_path_of_the_report_alone(typed, tmp_path):
    few = [text for setting in (*SMALL, "parties.dropout=0.3") for text in ("--set", setting)]
    told = typed("run", "quickstart", *few, "--quiet", "--out", str(tmp_path / "run"))
    assert told == (0, f"{tmp_path}/run/report.html\n", "")


def test_verbose_and_the_log_file_tell_versions_seed_phases_and_worlds(tmp_path, capsys, undrawn):
    known = {"out": tmp_path / "run", "settings": [*SMALL, "seed=77"], "log_file": tmp_path / "log"}
    run_command("quickstart", **known, verbose=True)
    told = capsys.readouterr().err
    for text in ("seed 77, engine inline; python 3.", "phase release: ", "world 1 of 1 (split 0)", "world 1 of 1 took"):
        assert text in told
        assert text in (tmp_path / "log").read_text()
    assert "━" not in told  # lines take the place of bars
    assert "messages are answered" in (tmp_path / "log").read_text()


@pytest.fixture(autouse=True)
def _as_before():
    """All loggers are afterwards as they were."""
    before = [(logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in OURS]
    yield
    assert before == [(logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in OURS]


def speak():
    for name in NAMES:
        for level in ("debug", "info", "warning"):
            getattr(logging.getLogger(name), level)(f"{level} of {name}")


@pytest.mark.parametrize(
    ("how", "heard"), [({"quiet": True}, []), ({}, ["warning"]), ({"verbose": True}, ["info", "warning"])]
)
def test_the_terminal_hears_as_much_as_was_asked_for(how, heard, capsys):
    with logged(**{"quiet": False, "verbose": False, "file": None} | how):
        speak()
    assert capsys.readouterr() == ("", "".join(f"{level} of {name}\n" for name in NAMES for level in heard))


def test_lines_of_the_terminal_may_have_their_times_and_go_to_whatever_standard_error_is_by_then(monkeypatch, capsys):
    with logged(quiet=False, verbose=False, file=None, times=True):
        logging.getLogger("parties.site").warning("a letter came")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d a letter came\n", capsys.readouterr().err)
    with logged(quiet=False, verbose=False, file=None):
        monkeypatch.setattr(sys, "stderr", changed := io.StringIO())
        logging.getLogger("scenarios").warning("now")
    assert changed.getvalue() == "now\n"


@pytest.mark.parametrize("quiet", [True, False])
def test_a_file_hears_everything_once_with_its_time_even_of_others(tmp_path, quiet):
    others = {name: logging.getLogger(name) for name in ("flwr", "ray.worker", "elsewhere")}
    with logged(quiet=quiet, verbose=False, file=tmp_path / "log"):
        speak()
        others["flwr"].info("Flower starts")
        others["ray.worker"].info("Ray starts")
        others["elsewhere"].info("not of interest")
        others["elsewhere"].warning("of interest")
    lines = (tmp_path / "log").read_text().splitlines()
    assert all(LINE.match(line) for line in lines)
    assert [LINE.sub("", line) for line in lines] == [
        *(f"{level} of {name}" for name in NAMES for level in ("debug", "info", "warning")),
        "Flower starts",
        "Ray starts",
        "of interest",
    ]  # fmt: skip


def test_loggers_that_keep_to_themselves_are_heard_too_in_the_format_of_the_file(tmp_path):
    ray = logging.getLogger("ray")
    before = ray.propagate
    ray.propagate = False
    try:
        with logged(quiet=False, verbose=False, file=tmp_path / "log"):
            for handler in ray.handlers:
                handler.setFormatter(logging.Formatter("theirs: %(message)s"))  # as Ray does
            ray.info("Ray starts")
    finally:
        ray.propagate = before
    assert LINE.sub("", (tmp_path / "log").read_text()) == "Ray starts\n"


def test_errors_are_in_the_file_and_left_to_the_command_line_on_the_terminal(tmp_path, capsys):
    with pytest.raises(FederationError), logged(quiet=False, verbose=True, file=tmp_path / "log"):
        raise FederationError("no party answers")
    with pytest.raises(ZeroDivisionError), logged(quiet=False, verbose=True, file=tmp_path / "log"):
        _ = 1 / 0
    with pytest.raises(KeyboardInterrupt), logged(quiet=True, verbose=False, file=tmp_path / "log"):
        raise KeyboardInterrupt
    text = (tmp_path / "log").read_text()
    assert "ERROR scenarios.commands.run: no party answers\n" in text
    assert text.count("Traceback") == 1
    assert text.endswith("CRITICAL scenarios.commands.run: interrupted\n")
    assert capsys.readouterr() == ("", "")


def test_what_contradicts_itself_or_cannot_be_written_is_refused(tmp_path):
    file = tmp_path / "no" / "log"
    for how, words in (({"quiet": True, "verbose": True}, r"--quiet.*--verbose"), ({"file": file}, "--log-file")):
        options = {"quiet": False, "verbose": False, "file": None} | how
        with pytest.raises(InputError, match=words), logged(**options):
            pass
