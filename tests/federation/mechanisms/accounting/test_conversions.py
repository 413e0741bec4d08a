"""What guarantees are worth for other units, against all small tables and against exact divergences."""

import math
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.accounting.composition import converted, group_delta, steps_between

REPLACE, ADD_REMOVE = Adjacency.REPLACE, Adjacency.ADD_REMOVE
ROWS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # a feature and a label
PARTIES = [tuple(rows) for size in range(3) for rows in combinations_with_replacement(ROWS, size)]


def tables(most):
    """All of up to so many parties of up to two rows each, as multisets of multisets."""
    return [tuple(sorted(found)) for size in range(most + 1) for found in combinations_with_replacement(PARTIES, size)]


def without(parties, i):
    return parties[:i] + parties[i + 1 :]


def row_changes(rows, relation):
    """What one party's rows may become."""
    for i, (feature, label) in enumerate(rows):
        rest = without(rows, i)
        if relation == (Unit.LABEL, REPLACE):
            yield (*rest, (feature, 1 - label))
        if relation == (Unit.ROW, REPLACE):
            yield from ((*rest, other) for other in ROWS)
        if relation == (Unit.ROW, ADD_REMOVE):
            yield rest
    if relation == (Unit.ROW, ADD_REMOVE) and len(rows) < 2:
        yield from ((*rows, other) for other in ROWS)


def neighbours(table, relation, most):
    for i, rows in enumerate(table):
        rest = without(table, i)
        if relation == (Unit.PARTY, REPLACE):
            yield from ((*rest, other) for other in PARTIES if len(other) == len(rows))
        if relation == (Unit.PARTY, ADD_REMOVE):
            yield rest
        yield from ((*rest, tuple(sorted(changed))) for changed in row_changes(rows, relation))
    if relation == (Unit.PARTY, ADD_REMOVE) and len(table) < most:
        yield from ((*table, other) for other in PARTIES)


RELATIONS = [
    (unit, adjacency)
    for unit, adjacency in product((Unit.LABEL, Unit.ROW, Unit.PARTY), Adjacency)
    if (unit, adjacency) != (Unit.LABEL, ADD_REMOVE)
]


def graph(relation, most=2):
    known = tables(most)
    return {table: {tuple(sorted(other)) for other in neighbours(table, relation, most)} for table in known}


GRAPHS = {relation: graph(relation) for relation in RELATIONS}


def furthest(held, wanted):
    """The longest of all shortest walks, by changes of one kind, between tables that differ by one of the other."""
    longest = 0
    for start, ends in GRAPHS[wanted].items():
        missing, reached, edge, walked = set(ends) - {start}, {start}, {start}, 0
        while missing and edge and walked < 3:
            walked += 1
            edge = {other for table in edge for other in GRAPHS[held][table]} - reached
            reached |= edge
            if missing & edge:
                longest = max(longest, walked)
                missing -= edge
        if missing:
            return math.inf
    return longest


@pytest.mark.parametrize("held", RELATIONS, ids=str)
@pytest.mark.parametrize("wanted", RELATIONS, ids=str)
def test_steps_are_the_longest_walk_between_neighbours(held, wanted):
    promise = Guarantee(1.0, 0.0, *held, "any")
    try:
        steps = steps_between(promise, *wanted)
    except InputError:
        assert furthest(held, wanted) >= 2  # as many as a party here has rows, or without end
    else:
        assert furthest(held, wanted) == steps


@pytest.mark.parametrize(
    ("unit", "adjacency", "steps"),
    [(Unit.LABEL, REPLACE, 3), (Unit.ROW, REPLACE, 3), (Unit.ROW, ADD_REMOVE, 6)],
)
def test_all_labels_of_a_person_are_so_many_changes(unit, adjacency, steps):
    promise = Guarantee(1.0, 0.0, unit, adjacency, "any")
    assert steps_between(promise, Unit.PERSON, REPLACE, rows_per_person=3) == steps
    with pytest.raises(InputError, match="declare rows_per_person"):
        steps_between(promise, Unit.PERSON, REPLACE)


def test_a_guarantee_that_protects_nobody_is_refused():
    promise = Guarantee(7.0, 0.0, Unit.LABEL, REPLACE, "any")
    assert converted(promise, Unit.LABEL, REPLACE) == promise
    assert converted(promise, Unit.PERSON, REPLACE, 2).epsilon == 14.0
    with pytest.raises(InputError, match="epsilon 7 for label/replace is 21 for person/replace"):
        converted(promise, Unit.PERSON, REPLACE, 3)


laws = st.lists(st.integers(1, 1000), min_size=3, max_size=3).map(lambda weights: np.array(weights) / sum(weights))


def divergence(one, other, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


@given(st.lists(laws, min_size=2, max_size=5), st.floats(0.01, 1.5))
def test_no_law_is_further_away_than_a_chain_of_neighbours_allows(chain, epsilon):
    delta = max(max(divergence(one, other, epsilon), divergence(other, one, epsilon)) for one, other in pairwise(chain))
    steps = len(chain) - 1
    assert divergence(chain[0], chain[-1], steps * epsilon) <= group_delta(epsilon, delta, steps) + 1e-12


def test_the_delta_of_a_chain_is_attained():
    """Each law puts delta on an outcome that the one before lacks, and the rest e^epsilon apart."""
    epsilon, delta = 0.5, 1e-3
    promise = Guarantee(epsilon, delta, Unit.ROW, ADD_REMOVE, "any")
    found = converted(promise, Unit.ROW, REPLACE)
    assert (found.epsilon, found.delta) == (1.0, pytest.approx((1 + math.exp(epsilon)) * delta, rel=1e-12))
    # masses m of one outcome with m -> e^epsilon m + delta at each step
    first = 0.01
    last = math.exp(epsilon) * (math.exp(epsilon) * first + delta) + delta
    assert last - math.exp(found.epsilon) * first == pytest.approx(found.delta, rel=1e-12)
