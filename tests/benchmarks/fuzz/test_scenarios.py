"""A sample of what `python -m benchmarks.fuzz` tries by the hundred thousand; and that its seeds are taken."""

import random

import pytest

from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.scenarios import Scenarios
from benchmarks.fuzz.worker import KINDS, TAKEN, made, tried


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    target = Scenarios(tmp_path_factory.mktemp("scenarios"))
    return target, target.seeds()


def test_no_mutated_scenario_ends_unexpectedly(target):
    target, seeds = target
    outcomes = [tried(target, made(target, seeds, len(seeds), 0, number)) for number in range(60)]
    assert [one.text for one in outcomes if one.kind in KINDS] == []
    assert 5 < sum(one.kind == TAKEN for one in outcomes) < 55


def test_small_scenarios_are_planned_up_to_the_first_questions(target):
    target, seeds = target
    small = dict.fromkeys(one for one in seeds if b"rows.csv" in one.content)
    told = [target.attempt(one) for one in small]
    assert any(one.endswith(": planned label_sums") for one in told)
    assert all(": planned" in one for one in told)


def test_settings_of_the_command_line_are_lines_of_the_file(target):
    target, seeds = target
    text = b"# --set trials.splits=50\n" + next(one for one in seeds if b"rows.csv" in one.content).content
    assert target.attempt(Input("text", text)).endswith("previewed")
    refused = tried(target, Input("text", text.replace(b"splits=50", b"splits=x")))
    assert "--set trials.splits=x" in refused.text


def test_mutations_are_the_same_in_every_process(target, tmp_path):
    first, seeds = target
    second = Scenarios(tmp_path)
    again = second.seeds()
    assert [one.content for one in again] == [one.content for one in seeds]
    for number in range(20):
        assert first.mutated(random.Random(number), seeds) == second.mutated(random.Random(number), again)
