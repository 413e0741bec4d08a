"""Shares of one noise on counts: sums that are exact, the law of the whole noise, and what is promised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused

from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.marginals import noise as own_noise
from federation.mechanisms.marginals.shared_noise import calibrate

ROW = {"unit": Unit.ROW, "adjacency": Adjacency.ADD_REMOVE}
KINDS = ("pure", "gaussian")


def shared(kind, contributors=4, features=3, queries=2, epsilon=1.0, delta=1e-5, **unit):
    size = {"features": features, "queries": queries, "epsilon": epsilon, "delta": delta}
    return calibrate(kind, **size, **(unit or ROW), contributors=contributors)


@given(
    kind=st.sampled_from(KINDS),
    contributors=st.integers(1, 50),
    parties=st.integers(1, 60),
    counts=st.lists(st.integers(0, 10**9), min_size=1, max_size=5),
    seed=st.integers(0, 2**20),
)
def test_the_sum_is_that_of_counts_and_of_shares_exactly(kind, contributors, parties, counts, seed):
    noise, cells = shared(kind, contributors), np.array(counts)

    def sent(of):
        return [noise.release(of, NoiseBits(seed, "sum", party)) for party in range(parties)]

    words = [(one / noise.step).astype(np.int64) for one in sent(cells)]
    drawn = [(one / noise.step).astype(np.int64) for one in sent(np.zeros_like(cells))]
    for word, one in zip(words, sent(cells), strict=True):
        np.testing.assert_array_equal(word * noise.step, one)  # whole steps
    np.testing.assert_array_equal(sum(words) - sum(drawn), parties * cells * int(1 / noise.step))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("colluders", [0, 1, 2])
def test_without_the_shares_of_colluders_the_variance_is_what_is_left_of_the_whole(kind, colluders):
    parties, contributors, size = 6, 4, 6000
    noise = shared(kind, contributors)
    drawn = [noise.release(np.zeros(size, dtype=int), NoiseBits(7, "law", party)) for party in range(parties)]
    left = np.sum(drawn[colluders:], axis=0)
    expected = noise.deviation**2 * (parties - colluders) / contributors
    kurtosis = 2.0 if kind == "gaussian" else 5.0
    assert np.square(left).mean() / expected == pytest.approx(1, abs=4 * math.sqrt(kurtosis / size))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("unit", "adjacency"), [("row", "add_remove"), ("row", "replace"), ("label", "replace")])
def test_the_whole_is_the_noise_of_one_party_on_a_finer_grid(kind, unit, adjacency):
    known = {"unit": Unit(unit), "adjacency": Adjacency(adjacency)}
    alone = own_noise.calibrate(kind, features=3, queries=2, epsilon=1.0, delta=1e-5, **known)
    assert shared(kind, **known).deviation == pytest.approx(alone.deviation, rel=2e-3)
    assert shared(kind, **known).cells == alone.cells


def test_auto_is_the_kind_of_less_noise():
    assert shared("auto").name == "marginal_shares_discrete_laplace"
    assert shared("auto", queries=20).name == "marginal_shares_discrete_gaussian"
    assert shared("auto", queries=20, delta=0.0).name == "marginal_shares_discrete_laplace"


@pytest.mark.parametrize("kind", KINDS)
def test_what_queries_promise_by_themselves_composes_to_what_all_do(kind):
    noise = shared(kind, queries=8)
    promised, each = noise.guarantee(), noise.per_query()
    assert (promised.epsilon, promised.adjacency, promised.parameters["contributors"]) == (1.0, "add_remove", 4)
    assert each.epsilon < 0.6
    assert 1.0 - 1e-6 <= compose([each] * 8, delta=noise.delta)[0] < 1.05
    told = " ".join(one.text for one in promised.assumptions)
    assert "at least 4 parties add their shares" in told
    assert "8 queries, agreed on before the first" in told


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"contributors": 0}, r"contributors.*1"),
        *(({"epsilon": epsilon}, None) for epsilon in (1e5, 1e-9)),
        ({"queries": 2**19}, r"2.*20"),
        ({"delta": 0.0, "kind": "gaussian"}, "delta"),
    ],
)
def test_numbers_that_no_grid_serves_are_refused(arguments, match):
    refused(match, shared, **{"kind": "pure"} | arguments)
    for count in (0.5, -1, 10**9 + 1):
        refused("0", shared("pure").release, np.array([count]), NoiseBits(1, "x"))
