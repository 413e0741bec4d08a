"""Public rows that are set apart, and rows that are dealt with a skew: probabilities and sizes are those declared."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from federation.contract.errors import InputError
from scenarios.data.tables import Table
from scenarios.simulated.dealing import dealt_by_class, quantities, set_apart
from scenarios.simulated.partition import Cut, cut

NOBODY = np.empty(0, dtype=np.int64)
ALONG = {"by": "rate", "from": 0.1, "to": 0.9}


def table(n: int = 100, test: int = 0, public: int | None = None, **changes) -> Table:
    """Rates 0, 1, ..., n - 1 beside a constant column and one of texts; the last `test` rows are official test rows."""
    rate = np.arange(n, dtype=float)
    parts = {
        "name": "toy",
        "columns": ("rate", "same", "word"),
        "classes": ("0", "1"),
        "labels": np.arange(n) % 2,
        "blocks": (np.stack([rate, np.ones(n), rate], axis=1),),
        "text": (2,),
        "official": (np.arange(n - test), np.arange(n - test, n)) if test else None,
        "public": None if public is None else np.arange(public),
    }
    return Table(**{**parts, **changes})


def cut_of(data: Table, **changes) -> Cut:
    options = {"auxiliary": ALONG, "test": 0.2, "parties": 2, "rows": None, "partition": "iid", "seed": 1}
    return cut(data, **{**options, **changes})


def pieces_of(pieces: Cut) -> list[np.ndarray]:
    return [pieces.auxiliary, pieces.test, pieces.order]


@pytest.mark.parametrize(("start", "end"), [(0.1, 0.9), (0.8, 0.2)])
def test_rows_are_public_with_a_probability_that_is_linear_in_the_column(start, end):
    data, n, draws = table(50), 50, 400
    counts = np.zeros(n, dtype=int)
    for split in range(draws):
        public, others = set_apart(data, {"by": "rate", "from": start, "to": end}, NOBODY, 1, split)
        np.testing.assert_array_equal(np.sort(np.concatenate([public, others])), np.arange(n))
        counts[public] += 1
    expected = np.linspace(start, end, n)
    tails = np.minimum(binom.cdf(counts, draws, expected), binom.sf(counts - 1, draws, expected))
    assert tails.min() > 1e-6 / n


@settings(derandomize=True)
@given(
    n=st.integers(8, 120),
    test=st.integers(1, 20) | st.floats(0.05, 0.9),
    parties=st.integers(1, 5),
    rows=st.none() | st.integers(1, 10),
    ends=st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)),
    seed=st.integers(0, 2**40),
)
def test_cuts_along_a_column(n, test, parties, rows, ends, seed):
    assume(ends[0] != ends[1])
    along = {"by": "rate", "from": ends[0], "to": ends[1]}
    try:
        pieces = cut_of(table(n), auxiliary=along, test=test, parties=parties, rows=rows, seed=seed)
    except InputError:
        assume(False)
    assert pieces.shifted
    taken = np.concatenate(pieces_of(pieces))
    assert len(np.unique(taken)) == len(taken) <= n
    target = n - len(pieces.auxiliary)
    assert len(pieces.test) == (test if isinstance(test, int) else max(1, round(test * target)))
    assert len(pieces.order) == (target - len(pieces.test) if rows is None else parties * rows)
    other = cut_of(table(n), auxiliary=along, test=1, parties=1, seed=seed)
    np.testing.assert_array_equal(other.auxiliary, pieces.auxiliary)  # whatever else is asked for


def test_official_test_rows_are_never_public_and_everything_else_is_dealt():
    data = table(100, test=40)
    pieces = cut_of(data, test="official")
    np.testing.assert_array_equal(pieces.test, np.arange(60, 100))
    np.testing.assert_array_equal(np.sort(np.concatenate([pieces.auxiliary, pieces.order])), np.arange(60))
    # The probabilities are those of all 100 rows, so the same draws choose the same rows.
    without = set_apart(data, ALONG, NOBODY, 1, 0)[0]
    assert set(pieces.auxiliary) == set(without[without < 60])


@pytest.mark.parametrize("shifted", [False, True])
def test_the_public_rows_of_a_data_set(shifted):
    data = table(100, public=30, shifted=shifted)
    pieces = cut_of(data, auxiliary="official", test=0.5)
    np.testing.assert_array_equal(np.sort(pieces.auxiliary), np.arange(30))
    assert (pieces.auxiliary != np.arange(30)).any()  # whoever takes the first of them takes any of them
    assert [len(part) for part in pieces_of(pieces)] == [30, 35, 35]
    assert pieces.shifted is shifted


@pytest.mark.parametrize("auxiliary", [20, 0.25, ALONG])
def test_public_rows_that_are_not_asked_for_go_to_nobody(auxiliary):
    pieces = cut_of(table(100, public=30, shifted=True), auxiliary=auxiliary, test=10)
    assert np.concatenate(pieces_of(pieces)).min() == 30
    assert sum(map(len, pieces_of(pieces))) == 70
    assert pieces.shifted is (auxiliary == ALONG)


def test_other_splits_and_seeds_choose_other_rows():
    chosen = [set_apart(table(), ALONG, NOBODY, seed, split)[0].tolist() for seed, split in ((1, 0), (1, 1), (2, 0))]
    assert len({tuple(sorted(rows)) for rows in chosen}) == 3
    assert chosen[0] == set_apart(table(), ALONG, NOBODY, 1, 0)[0].tolist()


def test_groups_without_private_rows_are_no_parties_and_public_rows_are_no_test_rows():
    data = replace(table(100, public=50), groups={"site": np.arange(100) // 25})
    pieces = cut_of(data, auxiliary="official", test=4, parties=None, partition={"by": "site"})
    assert pieces.party_names == ("2", "3")
    with pytest.raises(InputError, match="toy"):
        table(10, test=5, public=6)


@pytest.mark.parametrize(
    ("data", "auxiliary", "part"),
    [
        (table(), "official", "toy"),
        (table(), {**ALONG, "by": "rte"}, r"rte.*rate"),
        (table(), {**ALONG, "by": "word"}, r"word.*toy"),
        (table(), {**ALONG, "by": "same"}, r"same.*toy"),
        (table(1000), {**ALONG, "from": 1e-9, "to": 2e-9}, r"0.*1000.*rate"),
        (table(1000), {**ALONG, "from": 1 - 1e-9, "to": 1 - 2e-9}, r"1000.*1000"),
    ],
)
def test_refusals(data, auxiliary, part):
    with pytest.raises(InputError, match=part) as caught:
        cut_of(data, auxiliary=auxiliary)
    assert "data.auxiliary" in str(caught.value)


def parts(labels, sizes, alpha, seed=1, split=0, shuffle=False):
    """The labels of each party's rows, in a list; checks that no row is dealt twice."""
    sizes = np.asarray(sizes)
    dealt = dealt_by_class(np.asarray(labels), sizes, alpha, seed, split, shuffle=shuffle)
    assert len(np.unique(dealt)) == len(dealt) == sizes.sum()
    assert dealt.size == 0 or (dealt.min() >= 0 and dealt.max() < len(labels))
    return np.split(dealt, np.cumsum(sizes)[:-1])


def concentration(labels, dealt, classes):
    """Mean over parties of the sum of their squared class shares: 1/C without skew, 1 for one class each."""
    shares = np.array([np.bincount(labels[rows], minlength=classes) / len(rows) for rows in dealt])
    squares = (shares**2).sum(axis=1)
    return squares.mean(), squares.std() / np.sqrt(len(squares))


@settings(derandomize=True)
@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    cuts=st.lists(st.integers(1, 8), min_size=1, max_size=20),
    alpha=st.sampled_from([1e-6, 0.01, 0.3, 1.0, 50.0, 1e6]),
    seed=st.integers(0, 2**40),
    shuffle=st.booleans(),
)
def test_every_row_is_dealt_at_most_once_and_sizes_are_exact(labels, cuts, alpha, seed, shuffle):
    sizes = []
    for size in cuts:  # as many parties as there are rows for, often all rows
        if sum(sizes) + size <= len(labels):
            sizes.append(size)
    if not sizes:
        return
    first = parts(labels, sizes, alpha, seed, shuffle=shuffle)
    again = parts(labels, sizes, alpha, seed, shuffle=shuffle)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    if not shuffle:  # more parties change nothing for the first ones
        fewer = parts(labels, sizes[:1], alpha, seed)
        np.testing.assert_array_equal(fewer[0], first[0])


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1.0, 10.0, 1e6])
def test_skew_is_that_of_dirichlet_proportions(alpha):
    """Rows drawn by Dirichlet(alpha * 1) proportions q: E sum (n_c/n)^2 = 1/n + (1 - 1/n) E sum q_c^2."""
    classes, rows, count = 5, 8, 3000
    labels = np.arange(classes * count * rows) % classes  # more than enough of every class
    mean, error = concentration(labels, parts(labels, np.full(count, rows), alpha), classes)
    expected = 1 / rows + (1 - 1 / rows) * (alpha + 1) / (classes * alpha + 1)
    assert abs(mean - expected) < 5 * max(error, 1e-4)


def test_all_rows_dealt_out_are_as_skewed_and_without_skew_parties_are_like_the_whole():
    classes, rows, count, alphas = 5, 10, 2000, np.array([0.05, 0.5, 5.0, 1e6])
    labels = np.random.default_rng(0).permutation(np.arange(rows * count) % classes)
    dealt = [parts(labels, np.full(count, rows), alpha, shuffle=True) for alpha in alphas]
    found = [concentration(labels, each, classes)[0] for each in dealt]
    expected = 1 / rows + (1 - 1 / rows) * (alphas + 1) / (classes * alphas + 1)
    np.testing.assert_allclose(found, expected, rtol=0.03)  # leftovers of used-up classes meet the last ones to choose
    assert found == sorted(found, reverse=True)
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [60_000, 3_000, 1_000]))
    dealt = parts(labels, np.full(3000, 10), 1e6)
    shares = np.array([60, 3, 1]) / 64
    mean, error = concentration(labels, dealt, 3)
    assert abs(mean - (0.1 + 0.9 * (shares**2).sum())) < 5 * error
    held = np.bincount(labels[np.concatenate(dealt)]) / 30_000
    assert np.abs(held - shares).max() < 5 * np.sqrt(0.25 / 30_000)


def test_left_over_classes_meet_no_party_in_particular_and_a_class_without_rows_is_none():
    """With a shuffled order the first and the last parties are equally concentrated on average."""
    labels = np.arange(6000) % 3
    differences = []
    for split in range(20):
        dealt = parts(labels, np.full(1000, 6), 0.3, split=split, shuffle=True)
        differences.append(concentration(labels, dealt[:100], 3)[0] - concentration(labels, dealt[-100:], 3)[0])
    assert abs(np.mean(differences)) < 5 * np.std(differences) / np.sqrt(20)
    dealt = parts([0, 2, 2, 0, 2, 2], [2, 2, 2], 0.1)
    assert sorted(np.concatenate(dealt)) == list(range(6))


@settings(derandomize=True)
@given(
    parties=st.integers(1, 50),
    more=st.integers(0, 500),
    sigma=st.sampled_from([1e-6, 0.1, 1.3, 5.0, 1e6]),
    seed=st.integers(0, 2**40),
)
def test_quantities_sum_up_and_leave_nobody_empty(parties, more, sigma, seed):
    sizes = quantities(parties + more, parties, sigma, seed, 0)
    assert sizes.dtype == np.int64
    assert len(sizes) == parties
    assert sizes.sum() == parties + more
    assert sizes.min() >= 1
    np.testing.assert_array_equal(sizes, quantities(parties + more, parties, sigma, seed, 0))
    if sigma == 1e-6 and more % parties == 0:
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("sigma", [0.3, 1.3])
def test_logarithms_of_quantities_have_the_deviation_asked_for(sigma):
    logarithms = np.log(quantities(5_000_000, 2000, sigma, 3, 0) - 1)
    assert abs(logarithms.std() - sigma) < 5 * sigma / np.sqrt(2 * 2000)


def test_fifty_thousand_parties():
    labels = np.arange(300_000) % 10
    dealt = dealt_by_class(labels, np.full(50_000, 6), 0.3, 1, 0, shuffle=True)
    assert len(np.unique(dealt)) == 300_000
    assert quantities(300_000, 50_000, 1.3, 1, 0).sum() == 300_000
