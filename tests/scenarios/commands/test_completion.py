"""What the shell completes, and that it does not wait for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.contract.registry import protocol_names
from federation.mechanisms.audits import audited_mechanisms
from scenarios.commands import options as completion
from scenarios.commands.audit import _family
from scenarios.settings.loader import library

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


def test_names_are_those_that_there_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert completion.scenarios("") == list(library())
    assert completion.scenarios_and_protocols("") == [*library(), *protocol_names()]
    assert completion.scenarios_and_mechanisms("") == [*library(), *completion.MECHANISMS]
    assert tuple(dict.fromkeys(map(_family, audited_mechanisms()))) == completion.MECHANISMS


def test_scenario_files_and_the_folders_on_the_way_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for name in ("my.yaml", "mine/a.yml", "mine/a.csv"):
        (tmp_path / name).touch()
    assert completion.scenarios("m") == ["million-parties", "mnist-class-ratio", "my.yaml", "mine/"]
    assert completion.scenarios("mine/") == ["mine/a.yml"]
    assert completion.scenarios(f"{tmp_path}/mine/a") == [f"{tmp_path}/mine/a.yml"]
    assert completion.scenarios("absent/") == []
