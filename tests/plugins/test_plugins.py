"""Protocols of other packages, really installed: a complete one does all that our own do, others are found out."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

HERE = Path(__file__).parent
COMMANDS = """\
import json
import sys
from scenarios.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    print(end=f"\\0{code}\\0", flush=True)
"""
UNDRAWN = f"from scenarios.runs import runner; runner._draw = lambda *arguments: None\n{COMMANDS}"
SCENARIO = """\
name: theirs
data: {source: breast_cancer, auxiliary: 100}
parties: {count: 6}
protocols:
  - {kind: class_sums}
  - {kind: class_sums, noise: gaussian, shrinkage: [0, 5]}
  - {kind: class_sums, noise: off}
  - {kind: noisy_steps}
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
    "half_noise": "one party moves the value of a round by 0.5, and 0.25 was planned",
    "extra_round": "planned with round 2 at most, and its session comes with round 3",
    "louder_round": "planned with sensitivity 0.333333 at most, and its session comes with sensitivity 0.666667",
    "other_dimension": "planned with values of 4 numbers, and its session comes with 1",
    "exact_query": "equal releases are followed by different queries 'gradient'",
    "exact_model": "equal releases lead to different models",
}
COMPLETE = ("class_sums", "noisy_steps")
CHECK = """\
import json
import sys
from federation.contract.plugins import find
from scenarios.testing import check_protocol
found = {}
for kind in sys.argv[1:]:
    try:
        check_protocol(find("federation.protocols", "protocol", kind).load())
    except Exception as error:
        found[kind] = str(error)
    else:
        found[kind] = "kept"
print(json.dumps(found))
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


@pytest.fixture(scope="module")
def python(installed):
    """Runs Python code with both packages installed; returns the exit code and all that was printed."""

    def run(code, *arguments, folder=installed):
        paths = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
        one = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        ended = subprocess.run(command, env=environment, text=True, check=False, cwd=folder, **one)
        return ended.returncode, ended.stdout

    return run


@pytest.fixture
def commands(python, tmp_path):
    """Runs commands one after another in a process; returns the exit code of each, and what it printed."""

    def run(*several, code=COMMANDS):
        ended, told = python(code, json.dumps([list(map(str, words)) for words in several]), folder=tmp_path)
        parts = told.split("\0")
        assert ended == 0, told
        assert len(parts) == 2 * len(several) + 1, told
        return [(int(code), text) for text, code in zip(parts[:-1:2], parts[1::2], strict=True)]

    (tmp_path / "theirs.yaml").write_text(SCENARIO)
    return run


@pytest.fixture(scope="module")
def checked(python):
    """What is found out about each protocol."""
    code, told = python(CHECK, *COMPLETE, *FAULTS)
    assert code == 0, told
    return json.loads(told.splitlines()[-1])


@pytest.mark.parametrize(("kind", "found"), [*((kind, "kept") for kind in COMPLETE), *FAULTS.items()])
def test_a_complete_protocol_keeps_to_the_contract_and_what_is_wrong_with_others_is_found_out(checked, kind, found):
    assert found in checked[kind]


def test_a_complete_protocol_is_listed_shown_and_validated(commands):
    (listing, listed), (showing, shown), (validating, valid) = commands(
        ["list"], ["show", "theirs.yaml"], ["validate", "theirs.yaml"]
    )
    assert (listing, showing, validating) == (0, 0, 0)
    assert "class_sums          Parties send noisy numbers and sums" in listed
    assert "# Default noise: pure; rule: it needs no delta" in shown
    assert "features: [standardise, unit_norm]" in shown
    assert "class_sums: epsilon 1 or 50, delta 0 for one row (replace); noise is added by each party" in valid
    assert "noisy_steps: epsilon 1 or 50, delta 0.001 for one party (replace); " in valid


def test_a_complete_protocol_is_run_swept_reported_and_applied(commands, tmp_path):
    data = load_breast_cancer()
    lines = [",".join(data.feature_names), *(",".join(map(repr, map(float, row))) for row in data.data[:20])]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    privacy = ["--sensitivity", "2.000002", "--dimension", "62", "--epsilon", "1", "--json"]
    ended = commands(
        ["run", "theirs.yaml", "--out", "inline"],
        ["privacy", "l2-gamma", *privacy],
        ["report", "inline"],
        ["predict", "inline", "--variant", "class_sums", "new.csv"],
    )
    for code, told in ended:
        assert code == 0, told
    rows = [line.split(",") for line in (tmp_path / "inline" / "results.csv").read_text().splitlines()]
    names, values = {row[2] for row in rows[1:]}, dict.fromkeys(rows[0])
    assert "class_sums-gaussian-shrinkage=5" in names
    assert "protocols.shrinkage" in values
    value = rows[0].index("value")
    [exact] = [float(row[value]) for row in rows if row[2] == "class_sums-off" and "accuracy" in row]
    assert exact > 0.85
    [world] = json.loads((tmp_path / "inline" / "ledger.json").read_text())["worlds"]
    guarantees = {release["variant"]: release["guarantee"] for release in world["releases"]}
    assert guarantees["noisy_steps"]["parameters"]["rounds"] == 3
    guarantee = next(one["guarantee"] for one in world["releases"] if one["variant"] == "class_sums")
    assert guarantee["unit"] == "row"
    assert json.loads(ended[1][1])["scale"] == guarantee["parameters"]["scale"]
    predicted = [line.split(",")[1] for line in ended[3][1].splitlines() if line[:1].isdigit()]
    assert len(predicted) == 20
    assert sum(name == data.target_names[label] for name, label in zip(predicted, data.target[:20], strict=True)) > 15


def test_workers_of_ray_find_the_protocols_of_other_packages(commands, tmp_path):
    engines = ("inline", "ray")
    ended = commands(*(["run", "theirs.yaml", "--engine", one, "--out", one] for one in engines), code=UNDRAWN)
    assert [code for code, _ in ended] == [0, 0], ended
    inline, ray = ((tmp_path / one / "results.csv").read_bytes() for one in engines)
    assert inline == ray


def test_a_complete_protocol_is_audited(commands):
    [(code, told)] = commands(["audit", "theirs.yaml", "--json"])
    assert code == 0, told
    found = {record["variant"]: record for record in json.loads(told)}
    for kind in COMPLETE:
        assert found[kind]["verdict"] == "stands"
        assert found[kind]["half_the_noise_caught"]
    assert found["class_sums-off"]["verdict"] == "NON-PRIVATE"


def test_incomplete_protocols_are_refused_in_one_sentence(commands, tmp_path):
    kinds = ("missing_member", "broken_import")
    for kind in kinds:
        (tmp_path / f"{kind}.yaml").write_text(SCENARIO.replace("{kind: class_sums}", f"{{kind: {kind}}}"))
    tried = [(command, kind) for kind in kinds for command in ("validate", "run")]
    (_, listed), *ended = commands(["list"], *([command, f"{kind}.yaml"] for command, kind in tried))
    for (_, kind), (code, said) in zip(tried, ended, strict=True):
        [line] = [line for line in listed.splitlines() if line.startswith(f"  {kind} ")]
        assert FAULTS[kind] in line
        assert code == 2
        assert re.search(rf"{kind}\.yaml.*5.*protocols\.0\.kind", said)
        assert FAULTS[kind] in said
        assert "Traceback" not in said
