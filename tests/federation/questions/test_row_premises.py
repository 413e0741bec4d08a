"""What every guarantee for single rows or labels rests on: whose bits the noise takes, and what is declared of rows."""

from dataclasses import replace

import pytest
from support.two_class_questions import marginals, moment

from federation.contract.errors import InputError
from federation.contract.guarantee import DIFFERENT_PEOPLE, HELD_ONCE, SEEDED, UNTIMED, Check, Unit, holding, protected


@pytest.mark.parametrize(
    "question",
    [
        moment(),
        moment(protect="row"),
        marginals(),
        marginals(adjacency="replace"),
        marginals("published", "label", "replace"),
    ],
)
def test_guarantees_say_whose_bits_the_noise_takes_and_what_is_declared_of_rows(question):
    unseeded = replace(question, seeded=False)
    for seeded, system in ((question.promise(), unseeded.promise()), (question.payment(), unseeded.payment())):
        assert seeded.parameters["entropy"] == "seed"
        assert SEEDED in seeded.assumptions
        assert system.parameters["entropy"] == "system"
        assert SEEDED not in system.assumptions
        assert {HELD_ONCE, DIFFERENT_PEOPLE} < set(system.assumptions)
        assert (UNTIMED in system.assumptions) == (question.protect == "row")


@pytest.mark.parametrize("unit", [Unit.LABEL, Unit.ROW])
def test_every_premise_is_declared_and_only_rows_take_time(unit):
    assert {premise.check for premise in holding(unit)} == {Check.DECLARED}
    assert (UNTIMED in holding(unit)) == (unit is Unit.ROW)


@pytest.mark.parametrize("protect", ["person", "party", "", "Row"])
def test_other_units_are_refused(protect):
    assert [protected(known) for known in ("label", "row")] == [Unit.LABEL, Unit.ROW]
    with pytest.raises(InputError, match=f"protect must be label or row, got '{protect}'"):
        protected(protect)
