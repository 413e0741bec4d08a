import re
import sys

import pytest
from support.fuzz_targets import Endings, seed_with_all_endings

from benchmarks.fuzz import __main__ as fuzz
from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.worker import TRACEBACK, Limits, Outcome


@pytest.fixture
def command(monkeypatch, tmp_path):
    monkeypatch.setattr(fuzz, "TARGETS", {"endings": Endings})
    monkeypatch.setattr(fuzz, "Limits", lambda: Limits(0.2, 512))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["fuzz", *arguments])
        return fuzz.main()

    return run


def test_findings_are_kept_told_and_found_again(command, tmp_path, capsys):
    seed = str(seed_with_all_endings(tmp_path, 11))
    assert command("endings", "--count", "11", "--seed", seed, "--jobs", "1", "--out", str(tmp_path / "found")) == 1
    told = capsys.readouterr().out
    assert "endings: 11 inputs, " in told
    kept = sorted((tmp_path / "found").glob("*.bin"))
    raised = next(file for file in kept if file.read_bytes() == b"raised")
    assert fuzz.kept(raised)[0] is Endings
    assert "KeyError" in raised.with_name(f"{raised.name}.txt").read_text()
    assert command("--again", str(raised)) == 1
    assert "nobody foresaw this" in capsys.readouterr().out


def test_without_a_finding_it_ends_well(command, tmp_path, capsys):
    file = tmp_path / "endings-1-0-by+name.bin"
    file.write_bytes(b"refused")
    assert command("--again", str(file)) == 0
    assert re.search(r"1.*0.*findings.*tracebacks.*0.*0.*0", capsys.readouterr().out)


def test_of_one_place_a_few_findings_are_kept_and_a_file_that_was_not_kept_is_refused(tmp_path):
    findings = fuzz.Findings(tmp_path, Endings, 1)
    for number in range(100):
        findings.keep(number, Input("a", b""), Outcome(TRACEBACK, "here", "text"))
    assert len(list(tmp_path.glob("*.bin"))) == 20
    with pytest.raises(SystemExit, match="no file of a finding"):
        fuzz.kept(tmp_path / "scenario.yaml")
