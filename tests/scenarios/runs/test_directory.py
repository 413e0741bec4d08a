import pytest

from federation.contract.errors import InputError
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


def test_nothing_to_resume_is_an_input_error():
    with pytest.raises(InputError, match="nothing to resume"):
        RunDirectory.open(None, "a", resume=True)


def test_a_used_directory_needs_resume(tmp_path):
    RunDirectory.open(tmp_path / "out", "a", resume=False)
    with pytest.raises(InputError, match="--resume"):
        RunDirectory.open(tmp_path / "out", "a", resume=False)
    assert not RunDirectory.open(tmp_path / "out", "a", resume=True).fresh


def test_a_directory_without_a_run_is_not_resumed(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "results.csv").write_text("mine")
    for name in ("notes", "absent"):
        with pytest.raises(InputError, match="holds no run"):
            RunDirectory.open(tmp_path / name, "a", resume=True)
    assert (tmp_path / "notes" / "results.csv").read_text() == "mine"


def test_a_run_of_another_scenario_is_not_resumed(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    run.require_same_run(["c", "d"])
    run.finish("c", [], [], {})
    run.require_same_run(["c", "d"])
    with pytest.raises(InputError, match="another scenario"):
        run.require_same_run(["d"])


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        RunDirectory.open(tmp_path / "file", "a", resume=False)


ROW = dict(zip(COLUMNS, ["s", "k", "v", 1, 1.0, 0.0, "party", 0, 0, "accuracy", 0.5], strict=True))


def test_a_cell_is_finished_only_when_everything_is_written(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    assert run.fresh
    run.scratch("c")
    assert not run.finished("c")
    run.finish("c", [ROW, ROW], [], {"failures": {}})
    assert run.finished("c")
    assert run.rows("c") == [ROW, ROW]
    assert run.summary("c")["failures"] == {}
    assert run.summary("c")["failed_variants"] == {}  # as of a run from before there were any
    assert not (run.path / ".cells" / "c.work").exists()


@pytest.mark.parametrize("name", ["c.csv", "c.json"])
def test_a_damaged_cell_is_done_again(tmp_path, name):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    run.finish("c", [ROW, ROW], [], {"failures": {}})
    path = run.path / ".cells" / name
    path.write_bytes(path.read_bytes()[:-30])
    assert not run.finished("c")
