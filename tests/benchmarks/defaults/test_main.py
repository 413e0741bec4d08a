"""The command line of the benchmark: what it takes and refuses, and a small run through all of it."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.defaults import __main__ as command
from benchmarks.defaults.records import Store


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--parts", "parties"], r"parties.*known.*party"),
        (["--sets", "digit"], r"digit.*digits"),
        (["--splits", "0"], r"--splits.*1.*0"),
        (["--data-dir", "nowhere"], "--data-dir"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["defaults", "--out", str(tmp_path / "found.csv"), *arguments])
    with pytest.raises(SystemExit, match=text):
        command.main()


def test_a_name_picks_its_set_in_every_part_that_has_it_and_all_parts_have_their_quick_sets() -> None:
    found = command.known_sets(["party", "mean_operator", "regressions"], ["adult", "digits"], None, quick=False)
    assert {part: list(sets) for part, sets in found.items()} == {
        "party": ["adult", "digits"],
        "mean_operator": ["adult"],
        "regressions": [],
    }
    for name, part in command.PARTS.items():
        assert list(command.known_sets([name], [], None, quick=True)[name]) == list(part.quick_sets)


def test_sets_of_a_folder_go_to_the_parts_that_can_use_them(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 2))
    np.savez(tmp_path / "two.npz", X=rows, y=rows[:, 0] > 0, groups=np.arange(300) % 6)
    np.savez(tmp_path / "three.npz", X=rows, y=np.arange(300) % 3)
    np.savez(tmp_path / "real.npz", X=rows, y=rows[:, 0])
    parts = ["party", "natural", "mean_operator", "regressions", "class_ratio", "speed"]
    known = command.known_sets(parts, [], tmp_path, quick=False)
    place = tmp_path / "written"
    place.mkdir()
    usable = {
        part: [one.name for one in command.written(command.PARTS[part], known[part], False, place)] for part in parts
    }
    assert usable == {
        "party": ["three", "two"],
        "natural": ["two"],
        "mean_operator": ["two"],
        "regressions": ["real"],
        "class_ratio": ["three", "two"],
        "speed": [],
    }


def test_a_run_is_kept_and_only_shown_again_the_second_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    (tmp_path / "own").mkdir()
    np.savez(tmp_path / "own" / "two.npz", X=rows, y=(rows[:, 0] > 0).astype(int))
    out = tmp_path / "found.csv"
    wanted = ["--parts", "mean_operator", "--quick", "--jobs", "1", "--data-dir", str(tmp_path / "own")]
    monkeypatch.setattr(sys, "argv", ["defaults", *wanted, "--out", str(out)])
    fewer = [one for one in command.mean_operator.VARIANTS if one.name in ("response", "pure")]
    monkeypatch.setattr(command.mean_operator, "VARIANTS", fewer)
    monkeypatch.setattr(command.mean_operator, "NAMES", ("response", "pure"))
    monkeypatch.setattr(command.mean_operator, "DEFAULT", "pure")
    command.main()
    first = capsys.readouterr()
    assert "2 of 2 worlds to run" in first.err
    assert "mean_operator, largest regret" in first.out
    kept = out.read_bytes()
    command.main()
    again = capsys.readouterr()
    assert (again.out, again.err) == (first.out, "")
    assert out.read_bytes() == kept
    assert Store(out).of([]) == []
