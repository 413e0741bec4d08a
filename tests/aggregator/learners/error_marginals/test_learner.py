"""The learner's exchange with an oracle: what it asks, when it stops, and what it learns.

Bins and strengths from public numbers, against published bins and simulated noise.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.learners.error_marginals.estimation import ExchangeSettings
from aggregator.learners.error_marginals.learner import (
    ErrorMarginalsLearner,
    bins_per_feature,
    importance_strength,
    label_strength,
    published_bins,
)
from federation.contract.errors import InputError


class Oracle:
    """Counts of its target rows, with Gaussian noise of a standard deviation."""

    def __init__(self, rows, labels, deviation=0.0, seed=0):
        self.rows, self.labels, self.deviation = rows, labels, deviation
        self.rng = np.random.default_rng(seed)

    def noise(self, cells):
        return self.rng.normal(0, 1, cells) * self.deviation

    def __call__(self, query):
        indicators = query.bins.indicators(self.rows)
        totals = indicators @ np.ones(len(self.rows))
        if query.hypothesis is None:
            return None, totals + self.noise(len(totals))
        errors = indicators @ (query.hypothesis.predict(self.rows) != self.labels).astype(float)
        noisy = errors + self.noise(len(totals))
        return noisy, noisy + totals - errors + self.noise(len(totals))


def started(source, *, deviation=0.0, rows=None, seed=0, **options):
    settings = ExchangeSettings(**{"hidden": (8,), "epochs": 100, **options})
    return ErrorMarginalsLearner(source, settings, deviation=deviation, rows=rows, seed=seed)


def exchanged(learner, oracle):
    asked = []
    while (query := learner.query()) is not None:
        assert learner.query() is query
        asked.append(query)
        learner.take(*oracle(query))
    return asked


def line(n=400, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(shift, 1, (n, 2))
    return rows, (rows.sum(axis=1) > 0.4).astype(int)


def accuracy(hypothesis, world):
    return (hypothesis.predict(world[0]) == world[1]).mean()


@pytest.mark.parametrize("importance", [False, True])
@pytest.mark.parametrize("memory", ["cumulative", "instantaneous"])
def test_queries_come_in_their_order_and_end(importance, memory):
    source, _ = line()
    learner = started(source, rounds=3, importance=importance, memory=memory, rows=400, epochs=20)
    asked = exchanged(learner, Oracle(*line(seed=1)))
    assert len(asked) == learner.queries == 3 + importance
    assert not learner.repeated
    assert [query.hypothesis is None for query in asked] == [True] * importance + [False] * 3
    about = [query.hypothesis for query in asked[importance:]]
    assert np.all(about[0].predict(source) == 1)
    assert about[1:] == learner.hypotheses[:2]
    assert learner.chosen is learner.hypotheses[2]
    with pytest.raises(InputError):
        learner.take(np.zeros(5), np.zeros(5))
    assert learner.query() is None


@pytest.mark.parametrize("options", [{}, {"labels": "least_squares", "rounding": "hard"}, {"learner": "linear"}])
def test_without_noise_the_line_is_found(options):
    learner = started(line()[0], rows=400, **options)
    exchanged(learner, Oracle(*line(seed=1)))
    assert accuracy(learner.chosen, line(2000, seed=2)) > 0.93


@pytest.mark.slow
def test_a_second_round_learns_what_marginals_do_not_tell_and_weights_move_the_source_to_the_target():
    def exclusive(seed):
        rows = np.random.default_rng(seed).uniform(-1, 1, (500, 2))
        return rows, ((rows[:, 0] > 0.3) ^ (rows[:, 1] > -0.3)).astype(int)

    learner = started(exclusive(0)[0], rounds=3, rows=500, epochs=80)
    exchanged(learner, Oracle(*exclusive(1)))
    found = [accuracy(hypothesis, exclusive(2)) for hypothesis in learner.hypotheses]
    assert found[-1] > found[0] + 0.05
    assert found[-1] > 0.85
    # Labels depend on the target: under the source's distribution the marginals would be misread.
    source, target = line(2000), line(2000, seed=1, shift=0.8)
    learner = started(source[0], importance=True, rows=2000)
    first, second, *_ = exchanged(learner, Oracle(*target))
    wanted = np.quantile(target[0], 0.5, axis=0)
    middles = [query.bins.edges.reshape(2, -1)[:, query.bins.sizes[0] // 2 - 1] for query in (first, second)]
    assert np.all(np.abs(middles[1] - wanted) < 0.1)
    assert np.all(np.abs(middles[0] - wanted) > 0.5)
    assert accuracy(learner.chosen, line(2000, seed=2, shift=0.8)) > 0.93
    pairs = [started(line()[0], deviation=3.0, rows=400, seed=seed, epochs=20) for seed in (5, 5, 6)]
    for learner in pairs:
        exchanged(learner, Oracle(*line(seed=1), deviation=3.0, seed=9))
    one, two, other = ([h.parameters for h in learner.hypotheses] for learner in pairs)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize("label", [0, 1])
def test_a_constant_is_not_asked_about_twice_and_one_class_stays_one_whatever_is_asked(label):
    source, _ = line()
    for options in ({"rounding": "hard"}, {}):
        learner = started(source, rounds=3, rows=400, epochs=40, **options)
        asked = exchanged(learner, Oracle(line(seed=1)[0], np.full(400, label)))
        assert np.all(learner.chosen.predict(source) == label)
        assert learner.queries == 3
        if options:
            assert learner.repeated
            assert len(asked) == 1


def test_a_rare_class_is_asked_about_at_its_share_when_noise_hides_it():
    """Labels that are shrunk towards a mean of .15 make the constant class 0, and yet tell the rows apart."""

    def rare(seed):
        rows = np.random.default_rng(seed).uniform(-1, 1, (1000, 2))
        return rows, (rows[:, 0] > 0.7).astype(int)

    source = rare(0)[0]
    learner = started(source, rounds=2, rows=1000, deviation=120.0, learner="linear", epochs=None)
    asked = exchanged(learner, Oracle(*rare(1)))
    assert np.all(learner.hypotheses[0].predict(source) == 0)
    assert len(asked) == 2
    second = asked[1].hypothesis
    assert second.predict(source).mean() == pytest.approx(0.15, abs=0.05)
    assert accuracy(second, rare(2)) > 0.95
    assert accuracy(learner.chosen, rare(2)) > 0.93
    assert accuracy(learner.hypotheses[0], rare(2)) < 0.87


@pytest.mark.parametrize("deviation", [0.5, 1e4])
@pytest.mark.parametrize("answer", [-1e6, -1.0, 0.0, 1e6])
@pytest.mark.parametrize("rows", [None, 50])
def test_no_answer_leads_to_a_hypothesis_that_is_no_number(answer, rows, deviation):
    source, _ = line(60)
    learner = started(source, importance=True, rows=rows, deviation=deviation, epochs=2, noisy_totals=deviation > 1)
    while (query := learner.query()) is not None:
        assert query.bins.sizes.min() >= 1
        cells = np.full(query.bins.total, answer)
        learner.take(None if query.hypothesis is None else cells, -cells if answer == -1.0 else cells)
    assert np.isfinite(learner.chosen.scores(source)).all()


@pytest.mark.parametrize(("first", "second", "guard", "constant"), [
    ((20.0, 180.0), 150.0, True, 0), ((20.0, 180.0), 150.0, False, None), ((20.0, 180.0), 20.0, True, None),
    ((70.0, 190.0), 100.0, True, 0), ((10.0, 130.0), 100.0, True, 1),
])  # fmt: skip
def test_the_guard_takes_the_better_of_two_constants_where_it_errs_less(first, second, guard, constant):
    source, _ = line()
    learner = started(source, guard=guard, rows=400, bins=2, epochs=40)
    assert learner.query().bins.total == 4
    learner.take(np.array([*first, *first]), np.full(4, 200.0))  # the constant 1 errs on so many of 400 rows
    assert learner.query() is not None
    learner.take(np.full(4, second), np.full(4, 200.0))  # and h_1 on twice the second
    assert (learner.chosen is learner.hypotheses[-1]) == (constant is None)
    if constant is not None:
        assert (learner.chosen.predict(source) == constant).all()


def test_bins_of_private_rows_come_from_the_source_and_are_four_deviations_of_noise():
    source = np.random.default_rng(0).normal(size=(400, 2))
    learner = started(source, importance=True, deviation=10.0, bins="four_deviations")
    assert learner.query().bins.sizes.tolist() == [10, 10]
    learner.take(None, np.full(20, 80.0))  # 800 rows
    assert learner.query().bins.sizes.tolist() == [20, 20]
    public = started(source, importance=True, deviation=10.0, rows=120)
    assert public.query().bins.sizes.tolist() == [3, 3]
    # Noise makes bins fewer than published.
    assert started(source, deviation=10.0).query().bins.sizes.tolist() == [4, 4]
    assert started(source, deviation=0.0).query().bins.sizes.tolist() == [30, 30]
    assert started(source, deviation=10.0, bins=7).query().bins.sizes.tolist() == [7, 7]
    for rows, features, scale, bins in (
        (700, 22, 44, 3), (700, 22, 66, 2), (5000, 10, 30, 20), (2500, 2, 4, 30), (40, 3, 1e9, 2), (5000, 9, 30, 29),
    ):  # fmt: skip
        assert published_bins(rows, features, 2**0.5 * scale) == bins
    for rule in (bins_per_feature, published_bins):
        assert [rule(10, d, 0.0) for d in (2, 9, 10, 25)] == [30, 30, 20, 20]


@pytest.mark.parametrize(("errors", "totals", "words"), [
    (None, np.zeros(4), "errors"), (np.zeros(3), np.zeros(4), None), (np.zeros(4), np.zeros((4, 1)), "totals"),
    (np.array([0, 0, 0, np.nan]), np.zeros(4), "errors"), (np.zeros(4), np.array([0, 0, 0, np.inf]), "totals"),
])  # fmt: skip
def test_answers_that_fit_no_query_are_refused_and_nothing_is_released_before_one(errors, totals, words):
    learner = started(line()[0], rows=400, bins=2)
    query = learner.query()
    with pytest.raises(InputError, match=words):
        learner.take(errors, totals)
    assert learner.query() is query
    with pytest.raises(InputError):
        _ = learner.chosen


@pytest.mark.parametrize(("source", "options", "words"), [
    (np.zeros(4), {}, "source"), (np.zeros((0, 2)), {}, "source"), (np.array([[np.nan]]), {}, "source"),
    (np.zeros((4, 2)), {"deviation": -1.0}, "deviation"), (np.zeros((4, 2)), {"deviation": np.inf}, "deviation"),
    (np.zeros((4, 2)), {"rows": 0}, None),
])  # fmt: skip
def test_what_a_learner_cannot_start_from_is_refused(source, options, words):
    with pytest.raises(InputError, match=words):
        started(source, **options)


@given(st.integers(10, 100_000), st.integers(1, 200), st.floats(0.01, 1e4))
def test_bins_are_those_beside_the_greatest_ratio_of_signal_to_noise(rows, features, deviation):
    noise, most = deviation**2 / rows, published_bins(rows, features, deviation)
    roots = np.roots([noise, 0.0, -12 * noise, -1.6])  # where the derivative of the ratio by q vanishes
    best = min(max(float(roots[np.isreal(roots)].real.max()), 2.0), most)
    chosen = bins_per_feature(rows, features, deviation)
    assert 2 <= chosen <= most
    assert abs(chosen - best) < 1


@pytest.mark.parametrize(("rows", "deviation"), [(4000, 60.0), (2500, 5.7), (5000, 2.0), (20_000, 1.0)])
def test_bins_tell_most_of_errors_that_rise_and_fall(rows, deviation):
    tent = np.abs(np.linspace(-1, 1, rows)) - 0.5

    def told(count):
        bins = np.array_split(tent, count)
        return sum(part.sum() ** 2 / (deviation**2 + 0.2 * len(part)) for part in bins)

    best = max(range(2, 21), key=told)
    assert abs(bins_per_feature(rows, 10, deviation) - best) <= 1


def test_strengths_follow_the_noise_of_the_answers():
    rng, rows, features, bins, share, deviation = np.random.default_rng(0), 400, 3, 5, 0.276, 6.0
    assert share * (1 - share) == pytest.approx(0.2, rel=1e-2)
    cells = features * bins
    errors = rng.binomial(rows // bins, share, (20_000, cells)) + rng.normal(0, deviation, (20_000, cells))
    squared = np.square((errors - share * rows / bins) / rows).sum(axis=1).mean()
    assert label_strength(rows, cells, features, deviation) == pytest.approx(squared / 2, rel=0.02)
    quiet, loud = (importance_strength(1000, 30, 3, 500, deviation) for deviation in (0.0, 10.0))
    assert loud - quiet == pytest.approx(500 / 4 * 30 * (10 / 1000) ** 2)
    assert importance_strength(2000, 30, 3, 500, 0.0) == pytest.approx(quiet / 2)
