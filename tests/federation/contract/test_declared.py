"""What a side declares of its data and roster stands against what a question takes for granted."""

from dataclasses import fields

import pytest

from federation.contract.declared import NOTHING, Declared
from federation.contract.errors import InputError

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


def test_facts_are_read_from_a_configuration():
    text = '{"most_rows": 9, "label_range": [0, 10.5], "classes": null, "honest": 0}'
    assert Declared.from_json(text) == Declared(most_rows=9, label_range=(0.0, 10.5), honest=0)
    assert Declared.from_json("{}") == NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "9",
        '{"rows": 9}',
        '{"most_rows": "9"}',
        '{"most_rows": 9.0}',
        '{"most_rows": true}',
        '{"most_rows": -1}',
        '{"honest": [3]}',
        '{"label_range": 10}',
        '{"label_range": [0]}',
        '{"label_range": [0, 5, 10]}',
        '{"label_range": ["low", "high"]}',
    ],
)
def test_facts_out_of_form_are_refused(text):
    """What is not understood must not be left out: a node would then answer what its site wants refused."""
    with pytest.raises(InputError, match='the node\'s "declared" must be JSON with some of most_rows, label_range, '):
        Declared.from_json(text)


def test_a_site_counts_honest_parties_on_its_own_roster():
    site = Declared.from_json('{"roster": {"parties": 100, "quorum": 0.9, "colluding": 0.2}}')
    assert site == Declared(honest=70)
    assert Declared.from_json('{"roster": {"parties": 100, "quorum": 0.9}}') == Declared(honest=80)
    site.require(Declared(honest=70))
    with pytest.raises(InputError, match="takes honest to be 71, this side declares 70"):
        site.require(Declared(honest=71))


@pytest.mark.parametrize(
    "roster",
    [
        '{"parties": 0, "quorum": 1.0}', '{"parties": 2.5, "quorum": 1.0}', '{"parties": 9, "quorum": 1.5}',
        '{"parties": 9, "quorum": 1.0, "colluding": -0.1}', '{"quorum": 1.0}', '[]', '{"parties": 9, "quorum": null}',
    ],
)  # fmt: skip
def test_a_roster_out_of_form_is_refused(roster):
    with pytest.raises(InputError, match='"declared" must be JSON'):
        Declared.from_json(f'{{"roster": {roster}}}')


def test_a_roster_that_leaves_nobody_or_beside_another_count_is_refused():
    with pytest.raises(InputError, match="colludes with nobody"):
        Declared.from_json('{"roster": {"parties": 1, "quorum": 1.0}}')
    with pytest.raises(InputError, match="leave one of them out"):
        Declared.from_json('{"honest": 2, "roster": {"parties": 9, "quorum": 1.0}}')
