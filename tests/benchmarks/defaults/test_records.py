"""What is kept of a benchmark that was interrupted."""

import math
from pathlib import Path

import pytest

from benchmarks.defaults.records import DONE, Record, Store
from federation.contract.errors import InputError


def _of_job(key: str, *values: float) -> list[Record]:
    place = ("party", "a set, named", "K=5", 0, key)
    found = [Record(*place, "default", "pure", 0.3, "accuracy", value) for value in values]
    return [*found, Record(*place, "job", "", math.inf, DONE, 1.0)]


def test_records_come_back_as_they_were_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "found.csv")
    store.add(_of_job("first", 0.1 + 0.2))
    store.add(_of_job("second", 0.5))
    assert Store(store.path).of(["second", "first"]) == _of_job("second", 0.5) + _of_job("first", 0.1 + 0.2)


def test_a_job_without_its_last_row_has_not_been_done_half_a_row_is_cut_off_and_others_are_not_read(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "found.csv")
    store.add(_of_job("whole", 0.5))
    store.add(_of_job("cut", 0.6, 0.7)[:-1])
    assert store.of(["whole", "cut"]) == _of_job("whole", 0.5)
    store.add(_of_job("cut", 0.8))
    assert [record.value for record in store.of(["cut"])] == [0.6, 0.7, 0.8, 1.0]
    with store.path.open("a") as file:
        file.write("party,toy,K=5,0,half,default,pu")
    again = Store(store.path)
    again.add(_of_job("half", 0.25))
    assert again.of(["whole", "half"]) == _of_job("whole", 0.5) + _of_job("half", 0.25)
    assert again.of(["asked for"]) == []


def test_another_file_and_a_place_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("scenario,value\nx,1\n")
    for place in (path, path / "found.csv"):
        with pytest.raises(InputError):
            Store(place)
    assert path.read_text() == "scenario,value\nx,1\n"
