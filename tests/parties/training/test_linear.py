from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from support.synthetic import draw

from parties.party_data.cohort import Cohort, Held
from parties.party_data.isolation import ConstantGroup
from parties.training import linear
from parties.training.classifiers import fit

REGULARISATION = 0.01
COHORT = Cohort("{}", 0, 0, seed=1)


def holdings(parties, rows=6):
    """Parties of Gaussian classes; some have seen one class, some two, some three."""
    drawn = [draw(500 + party, 1 + (party * 5) % rows) for party in range(parties)]
    return Held(
        np.arange(parties),
        np.concatenate([points for points, _ in drawn]),
        np.concatenate([labels for _, labels in drawn]),
        np.array([len(labels) for _, labels in drawn]),
    )


def train(loaded, classes=3):
    groups, failures = linear.train(COHORT, loaded, classes, REGULARISATION)
    assert failures == {}
    return groups


def by_party(groups, answer):
    return {party: one for group in groups for party, one in zip(group.parties.tolist(), answer(group), strict=True)}


def chosen(loaded, parties):
    return loaded.part(np.isin(loaded.parties, parties))


def test_a_party_votes_as_if_it_were_trained_by_itself(rng):
    loaded, fresh = holdings(40), draw(7, 300)[0]
    groups = train(loaded)
    assert sorted(group.seen.shape[-1] if group.seen.ndim == 2 else 1 for group in groups) == [1, 2, 3]
    votes = by_party(groups, lambda group: group.votes(fresh))
    assert linear.train(COHORT, chosen(loaded, []), 3, REGULARISATION) == ([], {})
    classifier = {"name": "logistic", "parameters": {"regularisation": REGULARISATION}}
    for party, (rows, labels) in enumerate(loaded.each()):
        np.testing.assert_array_equal(votes[party], fit(rows, labels, classifier, rng)(fresh))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_answers_are_the_same_bits_in_every_cohort(size):
    loaded, fresh = holdings(70), np.concatenate([draw(7, 500)[0], np.zeros((3, 4))])
    for answer in (lambda group: group.votes(fresh), lambda group: group.probabilities(fresh)):
        whole = by_party(train(loaded), answer)
        for first in range(0, 70, size):
            part = by_party(train(chosen(loaded, range(first, first + size))), answer)
            assert all(one.tobytes() == whole[party].tobytes() for party, one in part.items())


def test_probabilities_are_the_softmax_over_the_seen_classes_in_any_blocks_of_rows():
    fresh = draw(7, 200)[0]
    for group in train(holdings(40), classes=5):
        given = group.probabilities(fresh)
        assert given.shape == (len(group.parties), 200, 5)
        np.testing.assert_allclose(given.sum(axis=2), 1)
        np.testing.assert_array_equal(given.argmax(axis=2), group.votes(fresh))
        if isinstance(group, ConstantGroup):
            continue
        for party, seen in enumerate(group.seen):
            scores = fresh @ np.atleast_2d(group.weights[party]).T
            scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
            np.testing.assert_allclose(given[party][:, seen], softmax(scores, axis=1), atol=1e-12)
            assert not np.delete(given[party], seen, axis=1).any()
    fresh = draw(7, 3000)[0]
    for group in train(holdings(40)):
        pieces = np.split(fresh, [1, 1000, 1001])
        np.testing.assert_array_equal(np.concatenate([group.votes(p) for p in pieces], axis=1), group.votes(fresh))
        blocks = [group.probabilities(piece) for piece in pieces]
        np.testing.assert_array_equal(np.concatenate(blocks, axis=1), group.probabilities(fresh))


def test_when_training_together_fails_only_the_culprit_is_lost(monkeypatch):
    loaded, fresh = holdings(20), draw(7, 50)[0]
    whole = by_party(train(loaded), lambda group: group.votes(fresh))
    culprit = int(np.flatnonzero(loaded.counts > 4)[1])
    bad = list(loaded.each())[culprit][0][0]
    original = linear.fit_many

    def fit_many(rows, *arguments):
        if (rows == bad).all(axis=1).any():
            raise np.linalg.LinAlgError("cannot be minimised")
        return original(rows, *arguments)

    monkeypatch.setattr(linear, "fit_many", fit_many)
    groups, failures = linear.train(COHORT, loaded, 3, REGULARISATION)
    assert failures == {culprit: "LinAlgError: cannot be minimised"}
    votes = by_party(groups, lambda group: group.votes(fresh))
    assert sorted({*votes, culprit}) == list(range(20))
    for party, one in votes.items():
        np.testing.assert_array_equal(one, whole[party])


def test_large_features_of_one_party_leave_the_others_their_tolerance():
    loaded, fresh = holdings(12), draw(7, 50)[0]
    large = loaded.rows.copy()
    large[: loaded.counts[0]] *= 1e6
    spoilt = by_party(
        train(Held(loaded.parties, large, loaded.labels, loaded.counts)), lambda g: g.probabilities(fresh)
    )
    for party, shares in by_party(train(loaded), lambda group: group.probabilities(fresh)).items():
        if party > 0:
            assert spoilt[party].tobytes() == shares.tobytes()


def cast(weights, seen, rows):
    out = np.full((len(weights), len(rows)), 99, dtype=np.uint8)
    linear.votes(weights, seen, rows, out)
    return out


def defined(weights, seen, rows):
    """The votes by definition, in plain Python floats."""
    result = []
    for one, classes in zip(linear.normalised(weights)[0].tolist(), seen, strict=True):
        result.append([])
        for row in rows.tolist():
            totals = []
            for vector in one:
                total = vector[0] * row[0]
                for w, x in zip(vector[1:], row[1:], strict=True):
                    total += w * x
                totals.append(total)
            winner = int(totals[0] > 0) if len(totals) == 1 else totals.index(max(totals))
            result[-1].append(classes[winner])
    return np.array(result, dtype=np.uint8)


def tied(random, parties, planes, width, rows):
    """Integer weights and rows, every third row a tie of the top two scores of some party, every third nearly one."""
    weights = random.integers(-8, 9, (parties, planes, width)).astype(float)
    points = random.integers(-8, 9, (rows, width)).astype(float)
    for i in range(rows - rows % 3):
        party = weights[i % parties]
        between = party[0] if planes == 1 else party[0] - party[1]
        if i % 3 < 2 and between[0] != 0:
            points[i] *= between[0]
            points[i, 0] = -(between[1:] @ points[i, 1:]) / between[0]
        if i % 3 == 1:
            points[i, 0] = np.nextafter(points[i, 0], random.choice([-np.inf, np.inf]))
    return weights, points


def labels(random, parties, planes, classes=9):
    size = 2 if planes == 1 else planes
    return np.array([np.sort(random.choice(classes, size, replace=False)) for _ in range(parties)])


@pytest.mark.parametrize(("planes", "width"), [(1, 1), (1, 11), (1, 60), (2, 5), (3, 11), (6, 40)])
def test_votes_are_the_defined_ones_in_every_cohort(rng, planes, width):
    weights, rows = tied(rng, 70, planes, width, 90)
    seen = labels(rng, 70, planes)
    whole = cast(weights, seen, rows)
    np.testing.assert_array_equal(whole, defined(weights, seen, rows))
    for size in (1, 7, 64):
        parts = [cast(weights[i : i + size], seen[i : i + size], rows) for i in range(0, 70, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("planes", [1, 3])
def test_votes_do_not_depend_on_tiles(rng, monkeypatch, planes):
    weights, rows = tied(rng, 33, planes, 7, 500)
    seen = labels(rng, 33, planes)
    whole = cast(weights, seen, rows)
    sizes = {"_UNPACKED": 1, "_TILE_SCORES": 97, "_TILE_PLANES": 5, "_CONVERTED_ROWS": 1, "_MOST_DOUBTS": 3}
    for name, value in sizes.items():
        monkeypatch.setattr(linear, name, value)
        np.testing.assert_array_equal(cast(weights, seen, rows), whole)


@pytest.mark.parametrize("planes", [1, 3])
def test_float32_alone_would_get_ties_wrong(rng, monkeypatch, planes):
    weights, rows = (exact / odd for exact, odd in zip(tied(rng, 70, planes, 11, 90), (7, 3), strict=True))
    seen = labels(rng, 70, planes)
    monkeypatch.setattr(linear, "rounding_bound", lambda width: np.float32(0))
    assert (cast(weights, seen, rows) != defined(weights, seen, rows)).any()


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 300), spread=st.integers(0, 12))
def test_no_float32_sum_leaves_the_rounding_bound(seed, width, spread):
    random = np.random.default_rng(seed)
    weights, rows = random.normal(size=(2, 8, width)) * np.exp2(random.integers(-spread, spread + 1, (2, 8, width)))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = np.arange(8)
    exact = linear.scores_in_order(weights[:, None], rows, index[:, None], index[None])[0]
    single, columns = weights.astype(np.float32), rows.astype(np.float32).T
    in_order, backwards = np.zeros((2, 8, 8), dtype=np.float32)
    for j in range(width):
        in_order += single[:, [j]] * columns[j]
        backwards += single[:, [-1 - j]] * columns[-1 - j]
    for total in (single @ columns, in_order, backwards):
        assert np.abs(total - exact).max() <= linear.rounding_bound(width)


def test_the_rounding_bound_is_of_the_size_of_the_worst_case():
    # Every product and every partial sum rounds down: 1 + u/2 + u/2 + ... stays 1 in float32.
    width = 4096
    lost = np.full(width, 2.0**-25)
    lost[0] = 1.0
    total = np.float32(0)
    for entry in lost.astype(np.float32):
        total += entry
    assert 0.2 * linear.rounding_bound(width) < lost.sum() - total <= linear.rounding_bound(width) * np.sum(lost)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 20), planes=st.integers(1, 4))
def test_clear_votes_are_those_of_exact_arithmetic(seed, width, planes):
    random = np.random.default_rng(seed)
    weights, rows = random.normal(size=(2, planes, width)), random.normal(size=(5, width))
    seen = labels(random, 2, planes)
    for party, votes in enumerate(cast(weights, seen, rows)):
        for row, vote in enumerate(votes):
            exact = [
                sum(Fraction(w) * Fraction(x) for w, x in zip(vector, rows[row].tolist(), strict=True))
                for vector in weights[party].tolist()
            ]
            winner = int(exact[0] > 0) if planes == 1 else exact.index(max(exact))
            assert vote == seen[party, winner]


@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300, 1e-30, 1e30, 1e200])
@pytest.mark.parametrize("planes", [1, 3])
def test_rows_of_any_size_are_served(rng, scale, planes):
    weights, rows = tied(rng, 5, planes, 4, 60)
    seen = labels(rng, 5, planes)
    mixed = np.concatenate([rows, scale * rows])
    np.testing.assert_array_equal(cast(2.0**500 * weights, seen, rows), cast(weights, seen, rows))
    np.testing.assert_array_equal(cast(weights, seen, mixed), defined(weights, seen, mixed))


def test_parties_without_weights_many_classes_and_norms_are_served_exactly(rng):
    seen, rows = labels(rng, 4, 3), rng.normal(size=(20, 5))
    first = np.repeat(seen[:, :1], 20, axis=1)
    np.testing.assert_array_equal(cast(np.zeros((4, 3, 5)), seen, rows), first)
    np.testing.assert_array_equal(cast(np.zeros((4, 1, 5)), seen[:, :2], rows), first)
    weights, rows = rng.normal(size=(3, 300, 4)), rng.normal(size=(50, 4))
    seen = np.tile(np.arange(0, 600, 2), (3, 1))
    out = np.empty((3, 50), dtype=np.uint16)
    linear.votes(weights, seen, rows, out)
    np.testing.assert_array_equal(out, 2 * np.einsum("pkd,nd->pnk", weights, rows).argmax(axis=2))
    weights = rng.normal(size=(6, 2, 5)) * 10.0 ** np.arange(-150, 150, 50)[:, None, None]
    quotients, exponents = linear.normalised(weights)
    np.testing.assert_array_equal(np.ldexp(quotients, exponents[:, None, None]), weights)
    norms = np.linalg.norm(quotients, axis=2).max(axis=1)
    assert norms.min() >= 0.5
    assert norms.max() <= 1
