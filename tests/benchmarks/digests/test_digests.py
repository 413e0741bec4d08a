"""What `benchmarks.digests` compares, and what it sees."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.digests.__main__ import HERE, ROOT, compared, main
from benchmarks.digests.artefacts import artefacts_in, artefacts_of
from benchmarks.digests.tables import write_tables
from benchmarks.digests.trees import FailedError, Job, Tree, jobs_in, unpack

PAGE = '<p class="soft">Run of {day}, of one party.</p><td data-head="seconds">{seconds}</td><td>{error}</td>'
PLAN = {"closing": 1, "root": "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----", "epsilon": 1.0}


def _write(folder: Path, *, day: str = "2026-01-01", error: float = 0.25, promise: str = "for one row") -> None:
    folder.mkdir()
    np.savez(folder / "model.npz", weights=np.array([error]), description=json.dumps({"promise": promise}))
    (folder / "report.html").write_text(PAGE.format(day=day, seconds=len(str(folder)), error=error))
    (folder / "plan.json").write_text(json.dumps({**PLAN, "closing": day, "rows": 5}))
    (folder / "results.csv").write_text(f"error\n{error}\n")
    (folder / "site.toml").write_text(f"epsilon = {error}  # {promise}\n")


def _changed(tmp_path: Path, **changes: object) -> list[str]:
    before, after = tmp_path / "before", tmp_path / "changed"
    _write(before)
    _write(after, **changes)  # type: ignore[arg-type]
    lines = compared(artefacts_in(before, before), artefacts_in(after, after))
    return [line.strip() for line in lines if not line.startswith("    ")]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"day": "2027-12-31"}, []),  # days, seconds and certificates are left out
        (
            {"error": 0.250001},
            [f"{name} values" for name in ("model.npz", "report.html", "results.csv", "site.toml")],
        ),
        ({"promise": "for a row"}, ["model.npz texts", "site.toml texts"]),
    ],
)
def test_a_number_changes_values_alone_and_a_new_wording_texts(tmp_path, changes, lines):
    assert _changed(tmp_path, **changes) == lines


def test_keys_and_their_digests_are_left_out_and_digests_of_arrays_kept():
    digest = "0" * 64
    text = f"key ssh-ed25519 AAAA+/= has {digest}\nsha256:{digest}"
    assert artefacts_of("plan", text, Path("/none")) == {
        "plan values": [f"sha256:{digest}"],
        "plan texts": ["key ~ has ~"],
    }


def test_what_is_on_one_side_alone_differs():
    assert list(compared({}, {"answer values": ["1"]})) == ["  answer values", "    +1"]


def test_every_protocol_has_a_scenario_and_jobs_have_names_of_their_own():
    scenarios = [yaml.safe_load(path.read_text()) for path in HERE.glob("*.yaml")]
    asked = {entry["kind"] for scenario in scenarios for entry in scenario["protocols"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert asked >= {*project["entry-points"]["federation.protocols"]}
    jobs = jobs_in(sorted(HERE.glob("*.yaml")), HERE / "commands.txt")
    assert len({job.name for job in jobs}) == len(jobs)
    assert all(job.commands for job in jobs)


def test_a_tree_does_a_job_by_its_command_line(tmp_path):
    tree = Tree.prepared(ROOT, tmp_path)
    write_tables(tree.folder)
    found = tree.artefacts(Job("one", ("cp ../numbers.csv .", "privacy gaussian --json")))
    assert found["$ privacy gaussian --json values"][-1] == "exit code 0"
    assert len(found["numbers.csv values"]) == 481
    with pytest.raises(FailedError, match="2"):
        tree.artefacts(Job("two", ("privacy gaussian --epsilon -1",)))


def test_nothing_to_compare_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["digests", "no_such_job"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    with pytest.raises(SystemExit, match="--against"):
        unpack("no-such-revision", ROOT, tmp_path)
