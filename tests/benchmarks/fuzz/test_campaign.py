"""Inputs that end in every way, tried in processes of their own."""

from collections import Counter

from support.fuzz_targets import Drawn, Endings, seed_with_all_endings

from benchmarks.fuzz.campaign import Campaign
from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.worker import HANG, MEMORY, REFUSED, TAKEN, TRACEBACK, Limits, made

KINDS = {
    b"taken": TAKEN, b"refused": REFUSED, b"raised": TRACEBACK, b"large": MEMORY, b"hidden": MEMORY, b"endless": HANG,
    b"asleep": HANG, b"ended": TRACEBACK,
}  # fmt: skip
COUNT = 11
SHORT = Limits(seconds=0.2, mebibytes=512)


def campaign(target, jobs=1, seed=1):
    found = []
    whole = Campaign(target, seed, SHORT, jobs, lambda number, given, outcome: found.append((number, given, outcome)))
    return whole, found


def test_every_end_is_told_and_the_inputs_after_it_are_tried_all_the_same(tmp_path):
    whole, found = campaign(Endings, seed=seed_with_all_endings(tmp_path, COUNT))
    tally = whole.run(COUNT)
    assert tally.outcomes.total() == COUNT
    assert {given.content: outcome.kind for _, given, outcome in found} == {
        content: kind for content, kind in KINDS.items() if kind not in (TAKEN, REFUSED)
    }
    assert all(outcome.kind == KINDS[given.content] for _, given, outcome in found)
    assert tally.findings == len(found) == COUNT - tally.outcomes[TAKEN] - tally.outcomes[REFUSED]
    assert str(tally).startswith(
        f"{COUNT} inputs, {len(found)} findings: tracebacks {tally.outcomes[TRACEBACK]}, hangs "
    )
    stacks = Counter("attempt" in outcome.text for _, given, outcome in found if given.content == b"endless")
    assert stacks[True] > 0
    assert all("Traceback" in outcome.text for _, given, outcome in found if given.content == b"raised")


def test_an_input_that_was_kept_is_tried_again():
    again, found = campaign(Endings)
    assert again.again(Input("by+name", b"ended")).findings == 1
    assert found[0][2].kind == TRACEBACK


def test_inputs_start_from_those_found_before_whatever_the_number_of_jobs_and_parts():
    alone, found = campaign(Drawn)
    alone.run(700)
    assert found  # 3^5 is out of reach of a seed
    shared, again = campaign(Drawn, jobs=2)
    shared.run(700)
    assert sorted(found, key=lambda one: one[0]) == sorted(again, key=lambda one: one[0])
    first, before = campaign(Drawn)
    first.run(500)
    rest, after = campaign(Drawn)
    assert rest.run(700, first=500).outcomes.total() == 200
    assert before + after == found


def test_an_input_follows_from_the_seed_its_number_and_what_is_known(tmp_path):
    target, known = Drawn(tmp_path), [Input("number", b"1"), Input("number", b"50")]
    numbers = [made(target, known, 1, seed, number) for seed in (1, 2) for number in range(40)]
    assert numbers == [made(target, known, 1, seed, number) for seed in (1, 2) for number in range(40)]
    assert numbers[:40] != numbers[40:]
    assert {int(one.content) >= 50 for one in numbers} == {True, False}
