"""Protocols of other packages, really installed: a complete one does all that our own do, others are found out."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

HERE = Path(__file__).parent
CLI = "from scenarios.cli import main; main()"
UNDRAWN = f"from scenarios.runs import runner; runner._draw = lambda *arguments: None; {CLI}"
SCENARIO = """\
name: theirs
data: {source: breast_cancer, auxiliary: 100}
parties: {count: 6}
protocols:
  - {kind: class_sums}
  - {kind: class_sums, noise: gaussian, shrinkage: [0, 5]}
  - {kind: class_sums, noise: off}
  - {kind: constant}
privacy: {epsilon: [1, 50], delta: 1.0e-3}
trials: {splits: 1, noise: 2}
"""
FAULTS = {
    "missing_member": r"lacks requires, model, begin(), noise_at(), promise(), worst_case()",
    "unchecked_options": "groups=0 is taken, and then fails with ZeroDivisionError",
    "uncapped": "'uncapped_sums' with cells=20000000 is taken, says that it takes 8 numbers, and took",
    "half_promise": "0.500 is claimed",
    "cohort_dependent": "the release depends on which parties share a node",
    "broken_import": "cannot be imported: RuntimeError: half installed",
}
CHECK = """\
import sys
from federation.contract.installed import find
from scenarios.testing import check_protocol
check_protocol(find("federation.protocols", "protocol", sys.argv[1]).load())
print("kept")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder in which pip has installed both packages."""
    sources, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("installed")
    for name in ("complete", "incomplete"):  # copied, as building leaves files beside the sources
        shutil.copytree(HERE / name, sources / name)
    offline = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target)]
    subprocess.run([*command, str(sources / "complete"), str(sources / "incomplete")], check=True)
    return target


@pytest.fixture
def python(installed, tmp_path):
    """Runs Python code with both packages installed; returns the exit code and all that was printed."""

    def run(code, *arguments):
        paths = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}
        command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
        return ended.returncode, ended.stdout + ended.stderr

    (tmp_path / "theirs.yaml").write_text(SCENARIO)
    return run


def test_a_complete_protocol_keeps_to_the_contract(python):
    code, told = python(CHECK, "class_sums")
    assert (code, told.strip()) == (0, "kept"), told


@pytest.mark.parametrize("kind", FAULTS)
def test_what_is_wrong_with_others_is_found_out(python, kind):
    code, told = python(CHECK, kind)
    assert code == 1
    assert FAULTS[kind] in told, told


def test_a_complete_protocol_is_listed_shown_and_validated(python):
    code, told = python(CLI, "list")
    assert code == 0
    assert "class_sums          Parties send noisy numbers and sums" in told
    code, told = python(CLI, "show", "theirs.yaml")
    assert code == 0
    assert "# Default noise: pure; rule: it needs no delta" in told
    assert "features: [standardise, unit_norm]" in told
    code, told = python(CLI, "validate", "theirs.yaml")
    assert code == 0, told
    assert "class_sums: epsilon 1 or 50, delta 0 for one row (replace); every party adds the noise itself" in told


def test_a_complete_protocol_is_run_swept_reported_and_applied(python, tmp_path):
    found = {}
    for engine, command in (("inline", CLI), ("ray", UNDRAWN)):
        code, told = python(command, "run", "theirs.yaml", "--engine", engine, "--out", engine)
        assert code == 0, told
        found[engine] = (tmp_path / engine / "results.csv").read_bytes()
    assert found["inline"] == found["ray"]
    rows = [line.split(",") for line in found["inline"].decode().splitlines()]
    names, values = {row[2] for row in rows[1:]}, dict.fromkeys(rows[0])
    assert "class_sums-gaussian-shrinkage=5" in names
    assert "protocols.shrinkage" in values
    value = rows[0].index("value")
    [exact] = [float(row[value]) for row in rows if row[2] == "class_sums-off" and "accuracy" in row]
    assert exact > 0.85
    [world] = json.loads((tmp_path / "inline" / "ledger.json").read_text())["worlds"]
    guarantee = world["releases"][0]["guarantee"]
    assert guarantee["unit"] == "row"
    arguments = ["--sensitivity", "2.000002", "--dimension", "62", "--epsilon", "1", "--json"]
    code, told = python(CLI, "privacy", "l2-gamma", *arguments)
    assert json.loads(told)["scale"] == guarantee["parameters"]["scale"]
    code, told = python(CLI, "report", "inline")
    assert code == 0, told
    data = load_breast_cancer()
    lines = [",".join(data.feature_names), *(",".join(map(repr, map(float, row))) for row in data.data[:20])]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    code, told = python(CLI, "predict", "inline", "--variant", "class_sums", "new.csv")
    assert code == 0, told
    predicted = [line.split(",")[1] for line in told.splitlines() if line[:1].isdigit()]
    assert len(predicted) == 20
    assert sum(name == data.target_names[label] for name, label in zip(predicted, data.target[:20], strict=True)) > 15


def test_a_complete_protocol_is_audited(python):
    code, told = python(CLI, "audit", "theirs.yaml", "--json")
    assert code == 0, told
    found = {record["variant"]: record for record in json.loads(told)}
    assert found["class_sums"]["verdict"] == "stands"
    assert found["class_sums"]["half_the_noise_caught"]
    assert found["class_sums-off"]["verdict"] == "NON-PRIVATE"


def test_incomplete_protocols_are_refused_in_one_sentence(python, tmp_path):
    told = python(CLI, "list")[1]
    for kind, fault in (("missing_member", FAULTS["missing_member"]), ("broken_import", FAULTS["broken_import"])):
        [line] = [line for line in told.splitlines() if line.startswith(f"  {kind} ")]
        assert fault in line
        (tmp_path / "bad.yaml").write_text(SCENARIO.replace("{kind: class_sums}", f"{{kind: {kind}}}"))
        for command in ("validate", "run"):
            code, said = python(CLI, command, "bad.yaml")
            assert code == 2
            assert "bad.yaml:5: protocols.0.kind: the entry point" in said
            assert fault in said
            assert "Traceback" not in said
