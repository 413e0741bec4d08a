"""Whole runs of a scenario, without their figures, and their files on another engine."""

import json

import pytest

import scenarios
from scenarios.runs import runner


def finished_run(document, folder):
    """A run of a scenario without its figures and its report, whose models are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_draw", lambda *arguments: None)
        return scenarios.run(document, out=folder / "out", keep_models=True)


def require_same_files(finished, document, folder, engine, models=None):
    """Run the scenario once more on an engine: its results, its ledger and its models have the same bytes."""
    run = scenarios.run(document, out=folder / "out", keep_models=True)
    found = [str(path.relative_to(finished.directory)) for path in finished.directory.rglob("*.npz")]
    assert found if models is None else len(found) == models
    for name in ("results.csv", "ledger.json", *found):
        assert (run.directory / name).read_bytes() == (finished.directory / name).read_bytes()
    assert json.loads((run.directory / "run.json").read_text())["engine"] == engine


def require_refusals(run):
    """Some parties of a run dropped out, and others were refused for what they sent."""
    failures = json.loads((run.directory / "run.json").read_text())["failures"]
    assert failures.pop("dropped out") > 0
    [(cause, refused)] = failures.items()
    assert "outside the declared range" in cause
    assert refused > 0
