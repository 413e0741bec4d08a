"""What several commands take: ranges that are refused in a sentence, and options that are the same everywhere.

What the shell completes, and that it does not wait for it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer
from support.refusals import refused
from typer.testing import CliRunner

from aggregator.contract.registry import protocol_names
from federation.mechanisms.audits import audited_mechanisms
from scenarios.commands import options as completion
from scenarios.commands.audit import _family
from scenarios.commands.options import AsJson, DataDirectory, ScenarioName, Settings, parsed_range
from scenarios.settings.loader import library


def test_a_range_is_two_numbers_in_order_and_what_is_none_is_quoted():
    for text, ends in (("0,1", (0, 1)), (" -3 , -2.5", (-3, -2.5)), ("0,1e3", (0, 1000))):
        assert parsed_range(text) == ends
    for text in ("", "1", "0,1,2", "0;1", "low,high", "0,", "1,0", "2,2", "nan,1", "0,nan"):
        refused(f"'{re.escape(text)}'", parsed_range, text)


@pytest.fixture
def told():
    """What a command with these options is called with, or how it ends."""
    app, seen = typer.Typer(), []

    @app.command()
    def command(
        scenario: ScenarioName,
        settings: Settings = [],  # noqa: B006 - typer copies it
        data_dir: DataDirectory = None,
        as_json: AsJson = False,
    ) -> None:
        seen.append((scenario, settings, data_dir and str(data_dir), as_json))

    def run(*arguments):
        seen.clear()
        done = CliRunner().invoke(app, arguments)
        return seen[0] if done.exit_code == 0 else click.unstyle(done.output)

    return run


def test_settings_are_repeated_in_order_and_nothing_is_set_by_itself(told):
    assert told("quickstart") == ("quickstart", [], None, False)
    given = ("--set", "seed=2", "quickstart", "--set", "seed=3", "--data-dir", "d", "--json")
    assert told(*given) == ("quickstart", ["seed=2", "seed=3"], "d", True)
    assert "Missing argument 'SCENARIO'" in told("--json")


ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("numpy", "scipy", "flwr", "ray", "sklearn", "matplotlib", "pydantic", "jinja2", "pyarrow")
CODE = f"""
import atexit, sys
atexit.register(lambda: print("HEAVY", [name for name in {HEAVY} if name in sys.modules]))
from scenarios.cli import main
main()
"""


def completed(words, folder, shell="bash"):
    """What a shell is told of the last of these words, and the heavy packages that were imported for it."""
    environment = {
        **os.environ,
        "_FEDERATION_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    *lines, heavy = done.stdout.splitlines()
    return lines, heavy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("federation run quick", ["quickstart"]),
        ("federation show soft", ["soft_vote"]),
        ("federation audit lattice", ["lattice_laplace"]),
        ("federation privacy mean", ["mean-operator"]),
        ("federation run --engine ", ["inline", "ray", "flower"]),
    ],
)
def test_names_are_completed_without_anything_heavy(words, wanted, tmp_path):
    assert completed(words, tmp_path) == (wanted, "HEAVY []")


def test_names_are_those_that_there_are_and_scenario_files_with_the_folders_on_the_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert completion.scenarios("") == list(library())
    assert completion.scenarios_and_protocols("") == [*library(), *protocol_names()]
    assert completion.scenarios_and_mechanisms("") == [*library(), *completion.MECHANISMS]
    assert tuple(dict.fromkeys(map(_family, audited_mechanisms()))) == completion.MECHANISMS
    (tmp_path / "mine").mkdir()
    for name in ("my.yaml", "mine/a.yml", "mine/a.csv"):
        (tmp_path / name).touch()
    assert completion.scenarios("m") == ["million-parties", "mnist-class-ratio", "my.yaml", "mine/"]
    assert completion.scenarios("mine/") == ["mine/a.yml"]
    assert completion.scenarios(f"{tmp_path}/mine/a") == [f"{tmp_path}/mine/a.yml"]
    assert completion.scenarios("absent/") == []
