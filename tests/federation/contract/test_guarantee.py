"""What every guarantee for single rows or labels rests on: whose bits the noise takes, and what is declared of rows."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.two_class_questions import marginals, moment

from federation.contract.errors import InputError
from federation.contract.guarantee import (
    DIFFERENT_PEOPLE,
    HELD_ONCE,
    SEEDED,
    UNTIMED,
    Adjacency,
    Assumption,
    Check,
    Guarantee,
    Keeper,
    Unit,
    holding,
    protected,
)


@pytest.mark.parametrize(
    ("epsilon", "delta", "told"),
    [
        *((epsilon, 0.0, "epsilon") for epsilon in (0, -1, float("inf"), float("nan"))),
        *((1.0, delta, "delta") for delta in (-1e-9, 1.0, float("nan"))),
    ],
)
def test_epsilon_is_positive_and_finite_and_delta_a_probability_below_one(epsilon, delta, told):
    with pytest.raises(InputError, match=told):
        Guarantee(epsilon, delta, Unit.PARTY, Adjacency.REPLACE, "m")


@settings(derandomize=True)
@given(
    epsilon=st.floats(1e-6, 1e6),
    delta=st.floats(0, 0.5),
    unit=st.sampled_from(Unit),
    adjacency=st.sampled_from(Adjacency),
    texts=st.lists(st.text(), max_size=3),
)
def test_json_round_trip(epsilon, delta, unit, adjacency, texts):
    assumptions = tuple(Assumption(text, Check.ENFORCED) for text in texts)
    guarantee = Guarantee(epsilon, delta, unit, adjacency, "m", {"scale": 1.5, "name": "x"}, assumptions, 0.25)
    record = json.loads(json.dumps(guarantee.to_dict()))
    assert Guarantee.from_dict(record) == guarantee
    assert [one["number"] for one in record["assumptions"]] == list(range(1, len(texts) + 1))


KNOWN = Guarantee(1.0, 1e-6, Unit.ROW, Adjacency.REPLACE, "gaussian").to_dict()


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"epsilon": 1},
        {"unit": "planet", "adjacency": "replace", "assumptions": []},
        [],
        *(KNOWN | {"epsilon": epsilon} for epsilon in (10**400, "1")),
        *(KNOWN | change for change in ({"delta": None}, {"unit": []}, {"assumptions": [1]}, {"further": 1})),
    ],
)
def test_damaged_records_are_input_errors(record):
    with pytest.raises(InputError):
        Guarantee.from_dict(record)


def test_assumptions_say_who_must_see_to_them():
    kept = [Assumption("a", check).keeper for check in Check]
    assert kept == [Keeper.SOFTWARE, Keeper.SOFTWARE, Keeper.COORDINATOR]
    premises = (Assumption("a", Check.DECLARED, Keeper.HOLDER), Assumption("b", Check.CHECKED))
    record = Guarantee(1.0, 0.0, Unit.ROW, Adjacency.REPLACE, "m", {}, premises).to_dict()
    assert [one["keeper"] for one in record["assumptions"]] == ["holder", "software"]
    assert Guarantee.from_dict(record).assumptions == premises
    for one in record["assumptions"]:
        del one["keeper"]  # as records of earlier releases
    assert [one.keeper for one in Guarantee.from_dict(record).assumptions] == [Keeper.COORDINATOR, Keeper.SOFTWARE]
    record["assumptions"][0]["keeper"] = "nobody"
    with pytest.raises(InputError):
        Guarantee.from_dict(record)


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


@pytest.mark.parametrize("protect", ["person", "party", "", "Row"])
def test_every_premise_is_declared_only_rows_take_time_and_other_units_are_refused(protect):
    for unit in (Unit.LABEL, Unit.ROW):
        assert protected(unit.value) == unit
        assert {premise.check for premise in holding(unit)} == {Check.DECLARED}
        assert (UNTIMED in holding(unit)) == (unit is Unit.ROW)
    with pytest.raises(InputError, match=rf"protect.*'{protect}'"):
        protected(protect)
