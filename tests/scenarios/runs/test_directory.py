import errno

import pytest

from federation.contract.errors import FederationError, InputError
from scenarios.runs import directory
from scenarios.runs.directory import RunDirectory
from scenarios.scores.results import COLUMNS


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(directory, "RUNS", tmp_path / "runs")
    return tmp_path / "runs"


def test_further_runs_get_numbers_and_resuming_takes_the_latest(runs):
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


def test_a_used_directory_needs_resume(tmp_path):
    RunDirectory.open(tmp_path / "out", "a", resume=False)
    with pytest.raises(InputError, match="--resume"):
        RunDirectory.open(tmp_path / "out", "a", resume=False)
    assert not RunDirectory.open(tmp_path / "out", "a", resume=True).fresh


def test_a_directory_without_a_run_is_not_resumed(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "results.csv").write_text("mine")
    with pytest.raises(InputError, match="holds files, but no run"):
        RunDirectory.open(tmp_path / "notes", "a", resume=True)
    assert (tmp_path / "notes" / "results.csv").read_text() == "mine"


def test_a_run_of_another_scenario_is_not_resumed(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    run.require_same_run(["c", "d"])
    finish(run, "c")
    run.require_same_run(["c", "d"])
    with pytest.raises(InputError, match="another scenario"):
        run.require_same_run(["d"])


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        RunDirectory.open(tmp_path / "file", "a", resume=False)


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


def test_a_cell_is_finished_only_when_everything_is_written(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    assert run.fresh
    with run.scratch("c") as work:
        assert list(work.iterdir()) == []
        assert not run.finished("c")
    assert not work.exists()
    finish(run, "c")
    for one in (run, again(run)):
        assert one.finished("c")
        assert one.has_results
        assert one.rows("c") == [ROW, ROW]
        assert one.summary("c") == {"failures": {}}
        one.require_unchanged(["c", "d"])
    assert run.model("v", "", 0).read_bytes() == b"learned"
    assert not work.exists()


def test_room_is_made_whatever_ends_a_world(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    kept = []

    def end():
        with run.scratch("c") as work:
            (work / "half").touch()
            kept.append(work)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end()
    assert not kept[0].exists()


FILES = [".cells/c.csv", ".cells/c.json", "models/v/split-0.npz"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", [lambda old: old.replace(b"e", b"f"), lambda old: old[:-5], lambda old: b""])
def test_a_changed_file_is_named_and_nothing_is_lost(run, name, change):
    path = run.path / name
    changed = change(path.read_bytes())
    path.write_bytes(changed)
    before = {one: one.read_bytes() for one in run.path.rglob("*") if one.is_file()}
    advice = rf"^{path} has changed since its world was finished; delete {run.path}/\.cells/c\.json to compute this "
    with pytest.raises(InputError, match=advice):
        again(run).require_unchanged(["c"])
    again(run).require_unchanged(["d"])
    assert {one: one.read_bytes() for one in run.path.rglob("*") if one.is_file()} == before


@pytest.mark.parametrize("name", [FILES[0], FILES[2]])
def test_a_missing_file_is_named(run, name):
    (run.path / name).unlink()
    with pytest.raises(InputError, match=rf"^{run.path / name} is missing since its world was finished; delete"):
        again(run).require_unchanged(["c"])


def test_every_damaged_world_is_told_in_a_line_of_its_own(run):
    finish(run, "d", model=b"another")  # of the same split, in place of that of c
    (run.path / ".cells" / "d.csv").unlink()
    with pytest.raises(InputError) as refused:
        again(run).require_unchanged(["c", "d"])
    assert [line.split(" since ")[0] for line in str(refused.value).splitlines()] == [
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
    with pytest.raises(InputError, match=r"checksums\.json is missing, .*; restore it, or start again in another"):
        again(run)
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


def test_a_disk_that_is_full_is_told_and_other_errors_are_as_they_are(run):
    told = rf"^cannot write to {run.path}: No space left on device; .*: make room, and --resume goes on with them$"
    with pytest.raises(FederationError, match=told) as caught, run.writing():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.exit_code == 1
    with pytest.raises(FileNotFoundError), run.writing():
        raise FileNotFoundError(errno.ENOENT, "gone")
