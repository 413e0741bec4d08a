"""What a side declares of its data and roster stands against what a question takes for granted."""

from dataclasses import fields

import pytest

from federation.contract.errors import InputError
from federation.contract.query import NOTHING, Declared

# Of each fact: what a side declares, what a question may then assume, and what it may not.
RULES = {
    "most_rows": (100, (100, 101, 10**9), (99, 1, 0)),  # noise for fewer rows than there may be is too little
    "label_range": ((0.0, 10.0), ((0.0, 10.0),), ((0.0, 9.0), (-1.0, 10.0), (1.0, 11.0))),
    "classes": (3, (3,), (2, 4)),
    "bags": (5, (5, 6), (4, 0)),  # more of them are empty
    "rows_per_person": (2, (2,), (0, 1, 3)),
    "honest": (7, (7, 6, 1), (8,)),  # fewer shares than were counted on add up to too little noise
}


def test_every_fact_has_its_rule():
    assert list(RULES) == [field.name for field in fields(Declared)]


@pytest.mark.parametrize(("name", "assumed"), [(name, one) for name, rule in RULES.items() for one in rule[1]])
def test_a_question_may_assume_what_agrees(name, assumed):
    Declared(**{name: RULES[name][0]}).require(Declared(**{name: assumed}))


@pytest.mark.parametrize(("name", "assumed"), [(name, one) for name, rule in RULES.items() for one in rule[2]])
def test_what_contradicts_is_refused_with_the_numbers_of_both_sides(name, assumed):
    own = RULES[name][0]
    with pytest.raises(InputError) as refused:
        Declared(**{name: own}).require(Declared(**{name: assumed}))
    assert f"the question takes {name} to be {assumed}, this side declares {own};" in str(refused.value)
    assert "must agree on it before anything is paid" in str(refused.value)


@pytest.mark.parametrize("name", RULES)
def test_where_either_side_says_nothing_there_is_no_contradiction(name):
    own, _, (wrong, *_) = RULES[name]
    NOTHING.require(Declared(**{name: wrong}))
    Declared(**{name: own}).require(NOTHING)
    others = {other: rule[0] for other, rule in RULES.items() if other != name}
    Declared(**others).require(Declared(**others, **{name: wrong}))


@pytest.mark.parametrize("name", RULES)
def test_one_contradiction_among_agreement_is_enough(name):
    everything = {other: rule[0] for other, rule in RULES.items()}
    Declared(**everything).require(Declared(**everything))
    with pytest.raises(InputError, match=f"takes {name} to be"):
        Declared(**everything).require(Declared(**{**everything, name: RULES[name][2][0]}))


def test_zero_is_something_that_is_said():
    """No number is taken for silence: rows_per_person 0 says that every row is another person's."""
    with pytest.raises(InputError, match="rows_per_person to be 2, this side declares 0"):
        Declared(rows_per_person=0).require(Declared(rows_per_person=2))
