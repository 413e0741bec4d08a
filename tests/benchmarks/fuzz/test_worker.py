import pytest
from support.fuzz_targets import Drawn, Endings

from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.worker import MEMORY, REFUSED, TAKEN, TRACEBACK, made, tried
from federation.contract.errors import InputError


@pytest.mark.parametrize(("content", "kind"), [(b"taken", TAKEN), (b"refused", REFUSED), (b"raised", TRACEBACK)])
def test_what_came_of_an_input_is_told_by_what_it_raised(tmp_path, content, kind):
    outcome = tried(Endings(tmp_path), Input("by+name", content))
    assert outcome.kind == kind
    assert ("Traceback" in outcome.text) == (kind == TRACEBACK)


def test_a_refusal_for_want_of_memory_is_a_finding(tmp_path):
    class Short(Endings):
        def attempt(self, given):
            try:
                raise MemoryError
            except MemoryError as error:
                raise InputError("use fewer rows") from error

    assert tried(Short(tmp_path), Input("a", b"")).kind == MEMORY


def test_an_input_follows_from_the_seed_its_number_and_what_is_known(tmp_path):
    target, known = Drawn(tmp_path), [Input("number", b"1"), Input("number", b"50")]
    numbers = [made(target, known, 1, seed, number) for seed in (1, 2) for number in range(40)]
    assert numbers == [made(target, known, 1, seed, number) for seed in (1, 2) for number in range(40)]
    assert numbers[:40] != numbers[40:]
    tens = {int(one.content) >= 50 for one in numbers}
    assert tens == {True, False}
