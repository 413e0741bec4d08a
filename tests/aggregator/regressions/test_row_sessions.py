"""Sessions of row-private regressions: what is asked, what is learned, and worlds that they cannot work in.

Sessions that learn from one X'y over all parties, who share its noise: what is asked, learned, and promised. Weights
from noisy sums over private rows: exact without noise, mixed by variances with it, and useful. The public map behind
which private rows are summed: its norms, what it keeps, and what it cannot be fitted on.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import linear_labels
from support.examples import examples
from support.synthetic import Table

from aggregator.protocols.label_sums import NoisyLabelSums
from aggregator.regressions.row_sessions import LEAST_PUBLIC_ROWS, PublicMoment, estimate, public_share, unit_rows
from aggregator.trial.feature_fitting import fit
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee, Unit
from federation.contract.plugins import Reference
from federation.features.feature_map import FeatureMap
from federation.features.steps import UnitNorm
from federation.mechanisms.sums.row_sums import RowStatistic
from federation.numerics.rows import within_norm
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from scenarios.testing import small_trials as small

HELD = Reference("support.linear_labels:Parties").to_json()
PARTIES, MOST = 6, 87


def few_public_rows() -> Table:
    return Table(linear_labels.draw(99, 9)[0], ("p", "q", "r"))


def near_public_rows() -> Table:
    """So near to each other that most private rows lie beyond them."""
    return Table(0.3 * linear_labels.draw(99, 200)[0], ("p", "q", "r"))


@pytest.fixture
def trial_world(tmp_path):
    def make(options, public="support.linear_labels:public_table", **changes):
        fields = {
            "table": Reference(public),
            "label_range": linear_labels.RANGE,
            "largest_bag": MOST,
            "smallest_bag": 80,
            "rows": 501,
            "draws": 1,
            "quorum": 2 / 3,
            **changes,
        }
        plan = small.plan(NoisyLabelSums, "label_sums", options, tmp_path, **fields)
        return World(plan, Views(plan)).of(plan.variants[0])

    return make


@pytest.fixture
def world(trial_world):
    return lambda options, *public, **changes: trial_world({"protect": "row", **options}, *public, **changes)


@pytest.fixture
def label_world(trial_world):
    return lambda options, *public, **changes: trial_world({"trust": "secure", **options}, *public, **changes)


def begun(world, epsilon=5.0):
    return NoisyLabelSums(**world.own.options).begin(world, epsilon, world.plan.public.draws)


def learned(session, parties=range(PARTIES)):
    """Its model, from the answers of some parties."""
    [asked] = session.questions()
    for party in parties:
        assert asked.collector.add(answered(Cohort(HELD, party, 1, 1), asked.question)) == {}
    session.take([asked.collector])
    return session.learn(0)


def errors(session, described):
    """Mean squared errors on new rows."""
    rows, labels = linear_labels.draw(1000, 500)
    description, arrays = described
    predicted = np.clip(session.feature_map.transform(rows) @ arrays["weights"], *description["range"])
    return float(np.square(predicted - labels).mean())


def test_with_noise_it_learns_what_is_least_squares_without(world):
    session = begun(world({"noise": "off"}))
    description, arrays = learned(session)
    assert (description["learner"], description["range"]) == ("linear", [-10.0, 10.0])
    held = [linear_labels.draw(party, 80 + 7 * (party % 2)) for party in range(PARTIES)]
    rows, labels = (np.concatenate(parts) for parts in zip(*held, strict=True))
    features = session.feature_map.transform(rows)[:, :-1]
    assert np.linalg.norm(features, axis=1).max() <= 1 + 1e-12
    expected = np.linalg.lstsq(features, labels, rcond=None)[0]  # the middle of the range is 0
    np.testing.assert_allclose(arrays["weights"], np.append(expected, 0.0), atol=1e-4)
    assert isinstance(session.guarantee, NoGuarantee)
    shifted = learned(begun(world({}, label_range=(-10.0, 30.0))))
    assert shifted[1]["weights"][-1] == 10.0  # the middle of the range is an intercept
    found = {}
    for trust in ("none", "secure"):
        session = begun(world({"trust": trust}, draws=20), 30.0)
        learned(session)
        found[trust] = np.mean([errors(session, session.learn(draw)) for draw in range(20)])
        assert 0 < session.diagnostics()["public_share"] < 0.8
    labels = linear_labels.draw(1000, 500)[1]
    assert found["secure"] < found["none"] < labels.var() / 2
    kept, off = (learned(begun(world({"shrink": shrink}), 1.0))[1]["weights"] for shrink in (True, False))
    assert np.linalg.norm(kept) < np.linalg.norm(off)


@pytest.mark.parametrize(("epsilon", "rows", "second"), [
    (0.1, 501, False), (30.0, 501, True), (0.1, 10**6, True), (30.0, 0, True),  # 0: not known
])  # fmt: skip
def test_x_x_is_asked_for_where_public_numbers_say_that_it_is_worth_it(world, epsilon, rows, second):
    [asked] = begun(world({}, rows=rows), epsilon).questions()
    assert asked.question.second == second


def test_what_is_asked_names_the_release_and_shares_count_on_a_quorum_less_those_that_may_collude(world):
    names = {begun(world(options), epsilon).source for options in ({}, {"trust": "secure"}) for epsilon in (0.1, 30.0)}
    assert len(names) == 4
    assert begun(world({})).source == begun(world({"shrink": False})).source
    made = world({})
    first, second = (begun(made, epsilon).questions()[0].question.rows.feature_map for epsilon in (1.0, 2.0))
    assert first is second
    for colluding, enough, most in ((0.1, 3, 1), (0.0, 4, 0), (0.4, 1, 3)):
        session = begun(world({"trust": "secure"}, colluding=colluding))
        [asked] = session.questions()
        assert asked.question.contributors == enough
        said = f"at least 4 of 6 answer, and at most {most} of them collude"
        assert any(said in assumption.text for assumption in session.guarantee.assumptions)
    with pytest.raises(InputError):
        begun(world({"trust": "secure"}, colluding=0.6))


def test_its_guarantee_is_for_one_replaced_row_and_its_noise_that_of_the_parties_that_answered(world):
    for trust, words in (("none", "trusts nobody"), ("secure", "secure summation")):
        promised = begun(world({"trust": trust})).guarantee
        assert isinstance(promised, Guarantee)
        assert (promised.unit, promised.epsilon, promised.delta) == (Unit.ROW, 5.0, 1e-3)
        assert any(words in assumption.text for assumption in promised.assumptions)
    session = begun(world({}))
    learned(session, parties=range(4))
    [asked] = [session.answers[0]]
    assert asked.variance == pytest.approx(4 * asked.question.mechanism().variance())
    shared = begun(world({"trust": "secure"}))
    learned(shared)
    assert shared.answers[0].variance == pytest.approx(6 / 3 * shared.answers[0].question.mechanism().variance())


def test_features_that_bound_norms_are_taken_as_they_are_one_row_each_is_asked_for_and_classes_are_refused(world):
    session = begun(world({}, stages=("standardise", "constant", "unit_norm")))
    assert session.feature_map.dimension == 5
    assert [step.kind for step in session.feature_map.steps] == ["affine", "append", "unit_norm", "append"]
    made = world({}, largest_bag=1, smallest_bag=1, rows=6)
    [asked] = begun(made).questions()
    assert asked.question.rows.most == 1
    assert replace(asked.question, draws=2).fields()["sums"].shape[0] == 2
    with pytest.raises(InputError):
        begun(world({}, label_range=None, classes=("a", "b")))


@pytest.mark.parametrize("public", ["support.linear_labels:public_table", f"{__name__}:near_public_rows"])
@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
@pytest.mark.parametrize("shrink", [True, False])
def test_with_next_to_no_noise_it_is_least_squares_wherever_public_rows_lie(label_world, public, shape, shrink):
    session = begun(label_world({"shape": shape, "shrink": shrink, "noise": "pure"}, public), 1000.0)
    learned(session)
    at = session.feature_map.transform(np.vstack([np.zeros(3), np.eye(3)])) @ session.learn(0)[1]["weights"]
    raw = np.append(at[1:] - at[0], at[0])  # weights for raw rows and a constant
    np.testing.assert_allclose(raw, [*linear_labels.WEIGHTS, 0.0], atol=0.06)
    beyond = session.diagnostics()["mean_weight"]
    assert (beyond < 0.8) == ("near_public" in public)
    assert beyond <= 1.0


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_the_spread_of_weights_is_that_of_the_shares_that_came(label_world, noise):
    """Least squares without shrinkage: covariance of the noise between the inverses of X'X."""
    draws = 600
    session = begun(label_world({"noise": noise, "shrink": False}, draws=draws), 5.0)
    learned(session, parties=(0, 2, 3, 5))
    [answers] = session.answers
    assert answers.wholes == 4 / 3
    inverse = np.linalg.inv(answers.total("gram"))
    learned_weights = np.array([session.learn(draw)[1]["weights"] for draw in range(draws)])
    spread = np.cov(learned_weights, rowvar=False)
    expected = 10.0**2 * answers.variance * inverse @ inverse
    assert np.trace(spread) == pytest.approx(np.trace(expected), rel=6 / draws**0.5)


def test_the_promise_is_for_the_sum_over_parties_and_too_few_public_rows_are_refused(label_world):
    session = begun(label_world({"noise": "gaussian"}), 1.0)
    learned(session)
    guarantee = session.guarantee
    assert (guarantee.epsilon, guarantee.unit, guarantee.parameters["contributors"]) == (1.0, "label", 3)
    told = " ".join(one.text for one in guarantee.assumptions)
    assert "at least 4 of 6 answer, and at most 1 of them collude" in told
    assert "features are public: only labels are protected" in told
    assert session.checks[0].startswith("nobody saw a party's answer")
    with pytest.raises(InputError, match=r"trust.*secure.*10"):
        begun(label_world({}, f"{__name__}:few_public_rows"), 1.0)


WEIGHTS = np.array([0.6, -0.3, 0.1])


def row_estimate_world(seed=0, count=2000):
    random = np.random.default_rng(seed)
    rows = within_norm(np.column_stack([random.normal(scale=0.4, size=(count, 2)), np.full(count, 0.6)]))
    return rows, np.clip(rows @ WEIGHTS + 0.1 * random.normal(size=count), -1, 1)


ROWS, LABELS = row_estimate_world()
PUBLIC = PublicMoment(row_estimate_world(1, 100)[0])


def test_without_noise_it_is_least_squares_and_the_mixture_is_by_variances():
    statistic = RowStatistic(3)
    found = estimate(statistic, PUBLIC, statistic.of(ROWS, LABELS), len(ROWS), 0.0)
    np.testing.assert_allclose(found, np.linalg.lstsq(ROWS, LABELS, rcond=None)[0], atol=1e-9)
    statistic = RowStatistic(3, second=False)
    found = estimate(statistic, PUBLIC, statistic.of(ROWS, LABELS), 2000, 1.0, shrunk=False)
    expected = np.linalg.solve(20 * PUBLIC.rows.T @ PUBLIC.rows, LABELS @ ROWS)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    random, statistic = np.random.default_rng(4), RowStatistic(3)
    shares = [public_share(statistic, PUBLIC, 2000, variance) for variance in (0.0, 1.0, 1e4, 1e12)]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] > 0.999
    sampled = [PublicMoment(PUBLIC.rows[random.choice(100, 100)]).gram(2000) for _ in range(1000)]
    assert PUBLIC.variance(2000) == pytest.approx(np.var(sampled, axis=0).mean(), rel=0.1)
    private, known = statistic.gram_variance(700.0), PUBLIC.variance(2000)
    assert public_share(statistic, PUBLIC, 2000, 700.0) == pytest.approx(private / (private + known))
    same = PublicMoment(np.tile([0.6, 0.8], (10, 1)))
    assert same.variance(100) == pytest.approx(0, abs=1e-12)
    assert public_share(RowStatistic(2, second=False), PUBLIC, 2000, 1.0) == 1


@pytest.mark.parametrize("second", [True, False])
def test_noise_alone_gives_the_middle_of_the_range(second):
    statistic = RowStatistic(3, second)
    noise = 1e6 * np.random.default_rng(3).normal(size=statistic.dimension)
    found = estimate(statistic, PUBLIC, noise, len(ROWS), 1e12)
    assert np.abs(ROWS @ found).max() < 0.02


def test_the_sum_of_squares_tells_how_far_predictions_may_go_and_the_constant_answer_needs_no_column():
    """Labels of a tenth of the range, and noise in X'y that would take predictions ten times further."""
    statistic, random = RowStatistic(3), np.random.default_rng(6)
    total, found = statistic.of(ROWS, 0.1 * LABELS), {}
    for known in (True, False):
        noisy = total + 300.0 * random.normal(size=statistic.dimension)
        noisy[-1] = total[-1] if known else 4000.0  # as of labels at both ends
        found[known] = np.abs(ROWS @ estimate(statistic, PUBLIC, noisy, 2000, 300.0**2)).mean()
    assert found[True] < found[False] / 1.5
    rows = row_estimate_world(5, 500)[0][:, :2] + 0.5
    assert np.square(rows @ PublicMoment(rows).constant - 1).mean() < 1
    np.testing.assert_allclose(PUBLIC.constant, np.linalg.lstsq(PUBLIC.rows, np.ones(100), rcond=None)[0], atol=1e-9)
    statistic = RowStatistic(1)
    found = estimate(statistic, PublicMoment(np.ones((10, 1))), statistic.of(np.ones((1, 1)), np.ones(1)), 1.0, 50.0)
    assert 0 < found[0] < 1
    for rows, words in ((UNBOUNDED[: LEAST_PUBLIC_ROWS - 1], r"10.*9.*data\.auxiliary"), (np.ones((50, 4)), "50")):
        with pytest.raises(InputError, match=words):
            unit_rows(FeatureMap(4, ()), rows)


@settings(max_examples=examples(20))
@given(st.sampled_from([0.3, 1.0, 3.0]), st.integers(0, 30))
def test_weights_are_finite_and_better_than_the_middle_on_average(epsilon, seed):
    statistic, random = RowStatistic(3), np.random.default_rng(seed)
    variance = statistic.noise(epsilon=epsilon, delta=1e-6, rows=2000).variance()
    noise = variance**0.5 * random.normal(size=(8, statistic.dimension))
    found = [estimate(statistic, PUBLIC, statistic.of(ROWS, LABELS) + one, 2000, variance) for one in noise]
    assert np.isfinite(found).all()
    errors = [np.square(np.clip(ROWS @ weights, -1, 1) - LABELS).mean() for weights in found]
    assert np.mean(errors) < np.square(LABELS).mean()


UNBOUNDED = np.random.default_rng(2).normal(size=(200, 4)) @ np.diag([1.0, 50.0, 2.0, 0.3]) + 3.0


def test_directions_are_white_few_and_vary_and_a_row_in_twenty_is_cut():
    features = unit_rows(FeatureMap(4, ()), UNBOUNDED[:, :3] @ np.eye(3, 4)).transform(UNBOUNDED)
    longest = np.linalg.norm(features, axis=1)
    assert longest.max() <= 1 + 1e-12
    features = unit_rows(fit(["standardise"], UNBOUNDED), UNBOUNDED).transform(UNBOUNDED)
    cut = np.linalg.norm(features, axis=1) > 1 - 1e-9
    assert np.mean(cut) == pytest.approx(0.05, abs=0.01)
    scale = features[~cut][0, -1]  # of the constant
    np.testing.assert_allclose(features[~cut][:, -1], scale)
    assert features.shape[1] == 5
    whole = features[:, :-1] / features[:, -1:]  # before the cut
    np.testing.assert_allclose(whole.T @ whole / len(whole), np.eye(4), atol=1e-9)
    assert unit_rows(fit(["standardise"], UNBOUNDED[:15]), UNBOUNDED[:15]).dimension == 3 + 1
    assert unit_rows(fit(["standardise"], UNBOUNDED[:10]), UNBOUNDED[:10]).dimension == 2 + 1
    rows = np.column_stack([UNBOUNDED[:, 0], 1e-3 * UNBOUNDED[:, 2], np.ones(200)])
    assert unit_rows(FeatureMap(3, ()), rows).dimension == 2
    assert unit_rows(FeatureMap(1, ()), UNBOUNDED[:, :1]).dimension == 2
    bounded = FeatureMap(4, (UnitNorm(),))
    assert unit_rows(bounded, UNBOUNDED) is bounded


@given(st.integers(10, 40), st.integers(1, 6), st.integers(0, 100))
def test_no_row_is_longer_than_one_however_far_it_is(count, columns, seed):
    random = np.random.default_rng(seed)
    found = unit_rows(FeatureMap(columns, ()), random.standard_t(2, size=(count, columns)))
    far = found.transform(10.0 ** random.uniform(-3, 9, size=(50, columns)))
    assert np.linalg.norm(far, axis=1).max() <= 1 + 1e-12
