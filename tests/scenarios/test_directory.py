import pytest

from federation.errors import InputError
from scenarios import directory
from scenarios.directory import RunDirectory


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
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    with pytest.raises(InputError, match="--resume"):
        RunDirectory.open(tmp_path / "out", "a", resume=False)
    RunDirectory.open(tmp_path / "out", "a", resume=True)


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


def test_a_cell_is_finished_only_when_everything_is_written(tmp_path):
    run = RunDirectory.open(tmp_path / "out", "a", resume=False)
    run.scratch("c")
    assert not run.finished("c")
    run.finish("c", [], [], {"failures": {}})
    assert run.finished("c")
    assert run.rows("c") == []
    assert run.summary("c") == {"failures": {}}
    assert not (run.path / ".cells" / "c.work").exists()
