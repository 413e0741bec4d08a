"""Files of finished worlds are told from what has become of them since."""

import errno
import hashlib
import json
import resource
import shutil
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused
from support.small_runs import document

import scenarios
from federation.contract.errors import FederationError, InputError
from scenarios.runs import directory
from scenarios.runs.directory import Checksums, RunDirectory, replaced, sha256
from scenarios.runs.progress import Progress
from scenarios.runs.trial import World
from scenarios.scores.results import COLUMNS, read_results


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(directory, "RUNS", tmp_path / "runs")
    return tmp_path / "runs"


def test_further_runs_get_numbers_and_resuming_takes_the_latest():
    paths = [RunDirectory.open(None, "a", resume=False).path for _ in range(3)]
    assert [path.name for path in paths] == ["a", "a-2", "a-3"]
    assert RunDirectory.open(None, "a", resume=True).path == paths[-1]


def test_where_there_is_nothing_to_resume_a_run_begins(runs, tmp_path):
    """As after one that was interrupted before it had anything to keep."""
    (tmp_path / "empty").mkdir()
    for out, path in ((None, runs / "a"), (tmp_path / "empty",) * 2, (tmp_path / "absent",) * 2):
        begun = RunDirectory.open(out, "a", resume=True)
        assert begun.path == path
        assert begun.fresh
        assert not begun.has_results
        assert not RunDirectory.open(out, "a", resume=True).fresh


def test_used_directories_need_resume_and_files_and_directories_without_a_run_are_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "results.csv").write_text("mine")
    RunDirectory.open(tmp_path / "out", "a", resume=False)
    for name, resume, named in (("out", False, "--resume"), ("file", False, None), ("notes", True, None)):
        refused(named, RunDirectory.open, tmp_path / name, "a", resume=resume)
    assert not RunDirectory.open(tmp_path / "out", "a", resume=True).fresh
    assert (tmp_path / "notes" / "results.csv").read_text() == "mine"


def test_a_run_of_another_scenario_is_not_resumed(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    run.require_same_run(["c", "d"])
    finish(run, "c")
    run.require_same_run(["c", "d"])
    refused(None, run.require_same_run, ["d"])


ROW = dict(zip(COLUMNS, ["s", "k", "v", 1, 1.0, 0.0, "party", 0, 0, "accuracy", 0.5], strict=True))


def finish(run, cell, rows=(ROW, ROW), model=b"learned"):
    with run.scratch(cell) as work:
        (work / "v.npz").write_bytes(model)
        run.finish(cell, rows, [], {"failures": {}}, work, {work / "v.npz": run.model("v", "", 0)})


@pytest.fixture
def run(tmp_path):
    """A run with a finished world."""
    made = RunDirectory.open(tmp_path / "out", "a", resume=False)
    finish(made, "c")
    return made


def again(run):
    return RunDirectory.open(run.path, "a", resume=True)


def interrupt(path):
    path.touch()
    raise KeyboardInterrupt


def files(folder):
    """The content of every file."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_cell_is_finished_only_when_everything_is_written_and_room_is_made_whatever_ends_it(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    assert run.fresh
    with run.scratch("c") as work:
        assert list(work.iterdir()) == []
        assert not run.finished("c")
    assert not work.exists()
    with pytest.raises(KeyboardInterrupt), run.scratch("c") as work:
        interrupt(work / "half")
    assert not work.exists()
    finish(run, "c")
    for one in (run, again(run)):
        assert one.finished("c")
        assert one.has_results
        assert one.rows("c") == [ROW, ROW]
        assert one.summary("c") == {"failures": {}}
        one.require_unchanged(["c", "d"])
    assert run.model("v", "", 0).read_bytes() == b"learned"


FILES = [".cells/c.csv", ".cells/c.json", "models/v/split-0.npz"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", [lambda old: old.replace(b"e", b"f"), lambda old: old[:-5], lambda old: b""])
def test_a_changed_file_is_named_and_nothing_is_lost(run, name, change):
    path = run.path / name
    path.write_bytes(change(path.read_bytes()))
    before = files(run.path)
    refused(rf"{path}.*{run.path}/\.cells/c\.json", again(run).require_unchanged, ["c"])
    again(run).require_unchanged(["d"])
    assert files(run.path) == before


@pytest.mark.parametrize("name", [FILES[0], FILES[2]])
def test_a_missing_file_is_named(run, name):
    (run.path / name).unlink()
    refused(f"{run.path / name}", again(run).require_unchanged, ["c"])


def test_every_damaged_world_is_told_in_a_line_of_its_own(run):
    finish(run, "d", model=b"another")  # of the same split, in place of that of c
    (run.path / ".cells" / "d.csv").unlink()
    with pytest.raises(InputError) as caught:
        again(run).require_unchanged(["c", "d"])
    assert [line.split(" since ")[0] for line in str(caught.value).splitlines()] == [
        f"{run.path}/models/v/split-0.npz has changed", f"{run.path}/.cells/d.csv is missing",
    ]  # fmt: skip


def test_a_world_without_its_record_is_computed_again(run):
    (run.path / ".cells" / "c.json").unlink()
    (run.path / ".cells" / "c.csv").write_text("edited")
    found = again(run)
    found.require_unchanged(["c"])
    found.require_same_run(["d"])
    assert not found.finished("c")
    assert not found.has_results
    finish(found, "c", [ROW])
    assert again(run).rows("c") == [ROW]
    again(run).require_unchanged(["c"])


def test_worlds_without_checksums_are_not_resumed(run):
    (run.path / ".cells" / "checksums.json").unlink()
    refused(r"checksums\.json", again, run)
    assert run.rows("c") == [ROW, ROW]


def test_a_world_whose_files_are_being_replaced_is_not_finished(run, monkeypatch):
    """An end in the midst of it, even by a power failure, leaves nothing that passes for a result."""

    def interrupted(self, target):
        if target.name == "c.json":
            raise KeyboardInterrupt
        return replace(self, target)

    replace = type(run.path).replace
    monkeypatch.setattr(type(run.path), "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finish(run, "c", [ROW])
    monkeypatch.undo()
    found = again(run)
    found.require_unchanged(["c"])
    assert not found.finished("c")


def test_a_disk_that_is_full_and_a_file_that_cannot_be_written_are_told_and_other_errors_are_as_they_are(run):
    with pytest.raises(FederationError, match=rf"{run.path}.*--resume") as caught, run.writing():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.exit_code == 1
    for elsewhere in ((), ("/data.csv",)):
        with pytest.raises(FileNotFoundError), run.writing():
            raise FileNotFoundError(errno.ENOENT, "gone", *elsewhere)
    (run.path / "ledger.json").mkdir()
    with pytest.raises(FederationError, match=rf"{run.path}/ledger\.json.*--resume"), run.writing():
        run.write_json("ledger.json", {})


def test_an_interrupted_run_keeps_its_worlds_and_resumes_to_the_same_files(finished, tmp_path, monkeypatch, undrawn):
    original, calls = World.run, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(World, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scenarios.run(document(), out=tmp_path / "out")
    partial = read_results(tmp_path / "out" / "results.csv")
    assert {row["split"] for row in partial} == {0}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"
    resumed = scenarios.run(document(), out=tmp_path / "out", resume=True)
    assert len(calls) == 3  # the finished world was not run again
    assert (resumed.directory / "results.csv").read_bytes() == (finished.directory / "results.csv").read_bytes()


def test_a_changed_file_stops_a_resumed_run_before_it_writes(finished, tmp_path):
    shutil.copytree(finished.directory, tmp_path / "out")
    table = next((tmp_path / "out" / ".cells").glob("*.csv"))
    table.write_text(table.read_text().replace("accuracy", "auc"))
    before = files(tmp_path / "out")
    refused(f"{table}", scenarios.run, document(), out=tmp_path / "out", resume=True)
    assert files(tmp_path / "out") == before


def test_what_is_made_of_finished_worlds_is_made_again(finished, tmp_path, undrawn):
    out = shutil.copytree(finished.directory, tmp_path / "out")
    names = ("results.csv", "ledger.json", "scenario.yaml")
    for name in names:
        (out / name).write_text("edited")
    (out / "run.json").unlink()
    assert scenarios.run(document(), out=out, resume=True).rows == finished.rows
    for name in names:
        assert (out / name).read_bytes() == (finished.directory / name).read_bytes()
    assert json.loads((out / "run.json").read_text())["status"] == "done"


def test_a_full_disk_keeps_finished_worlds_and_resumes_to_the_same_files(finished, tmp_path, monkeypatch, undrawn):
    """Files may grow to 4,000 bytes from the second world on, which is too few for a model and for all results."""
    original, (soft, hard) = World.run, resource.getrlimit(resource.RLIMIT_FSIZE)

    def cramped(self, *arguments):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000 if self.spec.split == 1 else soft, hard))
        return original(self, *arguments)

    monkeypatch.setattr(World, "run", cramped)
    try:
        with pytest.raises(FederationError, match=f"{tmp_path / 'out'}"):
            scenarios.run(document(), out=tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "out").rglob("*.work"))
    calls = []
    monkeypatch.setattr(World, "run", lambda self, *known: calls.append(self.spec.split) or original(self, *known))
    resumed = scenarios.run(document(), out=tmp_path / "out", resume=True)
    assert calls == [1]
    assert (resumed.directory / "results.csv").read_bytes() == (finished.directory / "results.csv").read_bytes()


SMALL = {"protocols": [{"kind": "soft_vote"}], "trials": {"splits": 1, "noise": 1}}


def test_resuming_starts_a_run_that_was_ended_before_its_first_world(tmp_path, monkeypatch, undrawn):
    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(World, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scenarios.run(document(**SMALL), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    notes = []
    monkeypatch.setattr(Progress, "note", lambda self, text: notes.append(text))
    assert scenarios.run(document(**SMALL), out=tmp_path / "out", resume=True).rows
    assert notes[1:] == [f"nothing to resume in {tmp_path / 'out'}: the run starts"]


def test_models_asked_for_later_are_made_later(tmp_path, undrawn):
    one = SMALL | {"protocols": document()["protocols"][:2]}
    first = scenarios.run(document(**one), out=tmp_path / "out")
    assert len(list(first.directory.rglob("*.npz"))) == 1
    before = (first.directory / "results.csv").read_bytes()
    scenarios.run(document(**one), out=tmp_path / "out", resume=True, keep_models=True)
    assert len(list(first.directory.rglob("*.npz"))) == 3
    assert (first.directory / "results.csv").read_bytes() == before


def test_a_sweep_enlarged_on_resuming_names_its_old_worlds(tmp_path, undrawn):
    scenarios.run(document(**SMALL), out=tmp_path / "out")
    swept = document(**SMALL, parties={"count": [60, 40], "rows": 5})
    resumed = scenarios.run(swept, out=tmp_path / "out", resume=True)
    assert {row["parties.count"] for row in resumed.rows} == {"60", "40"}


NAMES = ("table", "models/a")


def opened(root: Path) -> Checksums:
    return Checksums(root, root / "checksums.json")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A run with two finished worlds of two files each."""
    sums = opened(tmp_path)
    for world in ("one", "two"):
        files = [tmp_path / world / name for name in NAMES]
        for path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{world} {path.name}")
        sums.keep(world, {str(path.relative_to(tmp_path)): sha256(path) for path in files})
    return tmp_path


def test_the_first_broken_file_of_each_world_is_told_and_a_forgotten_world_is_not_finished(kept):
    found = opened(kept)
    assert found.worlds == ["one", "two"]
    assert "one" in found
    assert "three" not in found
    assert found.broken(["one", "two", "three"]) == []
    (kept / "one" / "table").unlink()
    (kept / "one" / "models" / "a").unlink()
    (kept / "two" / "models" / "a").write_text("two A")
    one, two = ("one", kept / "one" / "table", "is missing"), ("two", kept / "two" / "models" / "a", "has changed")
    assert opened(kept).broken(["one", "two"]) == [one, two]
    assert opened(kept).broken(["two"]) == [two]
    sums = opened(kept)
    sums.forget("one")
    sums.forget("three")
    assert sums.worlds == opened(kept).worlds == ["two"]
    sums.keep("one", {})
    assert sums.worlds == opened(kept).worlds == ["two", "one"]


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"one": []}', '{"one": {"table": 1}}'])
def test_a_damaged_file_of_checksums_or_a_folder_in_its_place_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "checksums.json"
    path.mkdir() if text is None else path.write_text(text)
    refused(r"checksums\.json", opened, tmp_path)


@given(st.binary(max_size=40), st.integers(0, 39), st.integers(1, 255))
def test_any_byte_that_changes_is_noticed(tmp_path_factory, content, at, by):
    root = tmp_path_factory.mktemp("any")
    (root / "file").write_bytes(content)
    assert sha256(root / "file") == hashlib.sha256(content).hexdigest()
    sums = opened(root)
    sums.keep("world", {"file": sha256(root / "file")})
    assert sums.broken(["world"]) == []
    for other in (content + b"\0", content[:-1], content[:at] + bytes(b ^ by for b in content[at : at + 1])):
        (root / "file").write_bytes(other)
        assert bool(sums.broken(["world"])) == (other != content)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replaced(path, "before")
    with pytest.raises(UnicodeEncodeError):
        replaced(path, string.ascii_letters * 10_000 + "\ud800")
    assert path.read_text() == "before"
    replaced(path, json.dumps("after"))
    assert path.read_text() == '"after"'
