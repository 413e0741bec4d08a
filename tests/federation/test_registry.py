"""Protocols and questions of other packages; a broken one fails where it is used, and nowhere else."""

import json
import subprocess
import sys

import pytest

from federation.contract.errors import InputError
from aggregator.contract.registry import protocol, protocol_names
from parties.registry import questions
from scenarios.commands.inspect import list_choices, schema
from scenarios.settings.schema import resolve

METADATA = "Metadata-Version: 2.1\nName: Broken-Pack\nVersion: 1\n"
ENTRIES = """\
[federation.protocols]
broken = broken_pack:Broken

[federation.questions]
votes_of_theirs = broken_pack:answer
"""
CAUSE = (
    r"the package 'Broken-Pack' \(federation.{}: broken_pack:{}\) cannot be imported: RuntimeError: half installed; "
    "repair or remove that package"
)
DOCUMENT = {
    "data": {"source": "breast_cancer", "auxiliary": 60},
    "parties": {"count": 3},
    "privacy": {"epsilon": 1},
    "trials": {"splits": 1, "noise": 1},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to import from, in which a package that cannot be imported is installed."""
    (tmp_path / "broken_pack.py").write_text("raise RuntimeError('half installed')\n")
    (tmp_path / "broken_pack-1.dist-info").mkdir()
    (tmp_path / "broken_pack-1.dist-info" / "METADATA").write_text(METADATA)
    (tmp_path / "broken_pack-1.dist-info" / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_what_cannot_be_imported_is_listed_and_named_when_used(folder):
    assert {"broken", "soft_vote"} <= set(protocol_names())
    with pytest.raises(InputError, match="the entry point 'broken' of " + CAUSE.format("protocols", "Broken")):
        protocol("broken")
    assert protocol("soft_vote").__name__ == "SoftVote"
    assert questions()["votes"].load()
    with pytest.raises(InputError, match="'votes_of_theirs' of " + CAUSE.format("questions", "answer")):
        questions()["votes_of_theirs"].load()


def test_it_is_listed_with_the_cause_and_left_out_of_the_schema(folder, capsys):
    list_choices()
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  broken ")]
    assert "cannot be used: the entry point 'broken' of the package 'Broken-Pack'" in line
    schema()
    declared = capsys.readouterr().out
    assert '"const": "mean_operator"' in declared
    assert '"const": "broken"' not in declared


@pytest.mark.parametrize("position", [0, 1])
def test_a_scenario_that_uses_it_is_refused_at_its_line(folder, position):
    path = folder / "bad.yaml"
    entries = ["- kind: mean_operator", "- kind: broken"]
    head = [f"{section}: {json.dumps(given)}" for section, given in DOCUMENT.items()]
    path.write_text("\n".join([*head, "protocols:", *(entries if position else entries[::-1])]))
    with pytest.raises(InputError) as refused:
        resolve(path)
    [line] = str(refused.value).splitlines()
    assert line.startswith(f"{path}:{6 + position}: protocols.{position}.kind: the entry point 'broken' of the package")


def test_parties_answer_all_other_questions(folder):
    code = f"""if True:
        import scenarios
        from flwr.app import RecordDict
        from federation.grids.launch import open_grid
        from federation.grids.nodes import Placement
        from federation.reference import Reference
        scenarios.run({DOCUMENT}, out="out")
        grid = open_grid("inline")
        grid.assign(Placement(1, 1, Reference("builtins:dict"), 1))
        sent = grid.push_messages([grid.create_message(RecordDict(), "query.votes_of_theirs", 1, "")])
        [reply] = grid.pull_messages(sent)
        print(reply.error.reason)
        """
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert "the entry point 'votes_of_theirs' of the package 'Broken-Pack'" in told.stdout, told.stderr
    assert (folder / "out" / "results.csv").exists()
