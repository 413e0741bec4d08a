"""A sample of what `python -m benchmarks.fuzz files` tries by the ten thousand."""

import pytest

from benchmarks.fuzz.files import Files
from benchmarks.fuzz.worker import KINDS, REFUSED, TAKEN, made, tried


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    target = Files(tmp_path_factory.mktemp("files"))
    return target, target.seeds()


def test_every_seed_can_be_read_or_applied(target):
    target, seeds = target
    assert {tried(target, one).kind for one in dict.fromkeys(seeds)} == {TAKEN}


def test_no_mutated_file_ends_unexpectedly(target):
    target, seeds = target
    outcomes = [tried(target, made(target, seeds, len(seeds), 0, number)) for number in range(80)]
    assert [one.text for one in outcomes if one.kind in KINDS] == []
    assert {one.kind for one in outcomes} == {TAKEN, REFUSED}


def test_a_kept_file_has_the_ending_of_its_format(target):
    target, seeds = target
    assert {target.suffix(one) for one in seeds} == {".csv", ".npz", ".parquet"}


def test_seeds_are_the_same_in_every_process(target, tmp_path):
    assert Files(tmp_path).seeds() == target[1]
