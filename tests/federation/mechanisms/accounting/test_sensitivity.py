"""Sensitivities against searches over neighbouring votes: never exceeded, reached where they are tight."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, lambertw
from support.examples import every_third

from federation.contract.errors import InputError
from federation.mechanisms.accounting import sensitivity
from federation.numerics.erm import minimise
from federation.numerics.label_losses import label_loss
from federation.numerics.rows import contrasts

TOLERANCE = 1e-11
FORMS = ("published", "tight", "diameter")


def minimiser(rows, shares, regularisation):
    """The ERM's weights for label shares (N, C)."""
    mu = shares.T @ rows / len(rows)
    mu = mu[1] if shares.shape[1] == 2 else mu
    return minimise(rows, mu, regularisation, gradient_tolerance=TOLERANCE).weights


def move(rows, before, after, regularisation):
    """Distance of the two minimisers, less what the solver's tolerance may add."""
    apart = np.linalg.norm(minimiser(rows, before, regularisation) - minimiser(rows, after, regularisation))
    return apart - sensitivity.solver_slack(TOLERANCE, regularisation)


def soft_shares(votes, classes):
    """Share of each class per row, (N, C), from votes (M, N)."""
    return np.eye(classes)[votes].mean(axis=0)


def majority_shares(votes, classes):
    """One-hot majority labels, (N, C); ties go to the smallest class."""
    return np.eye(classes)[np.eye(classes)[votes].sum(axis=0).argmax(axis=1)]


def saturated_rows(long, count, length):
    """`long` rows at norm 1 and short ones that push their scores to where the loss is flat."""
    return np.r_[np.ones(long), np.full(count - long, length)][:, None]


def neighbouring_votes(rng, classes):
    """(rows, votes, votes') differing in one party: random, all-flip, single-row and structured ones."""
    for _ in range(12):
        n, d, parties = rng.integers(1, 6), rng.integers(1, 4), rng.integers(1, 6)
        rows = rng.normal(size=(n, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) / rng.choice([1.0, rng.random()])
        votes = rng.integers(0, classes, (parties, n))
        yield rows, votes, np.vstack([votes[:-1], rng.integers(0, classes, (1, n))])
        shifted = votes.copy()
        shifted[0] = (shifted[0] + rng.integers(1, classes)) % classes
        yield rows, votes, shifted
        agreeing = np.where(rows[:, 0] > 0, 1, 0) * np.ones((parties, 1), dtype=int)
        turned = agreeing.copy()
        turned[0] = 1 - turned[0]
        yield rows, agreeing, turned
    for parties, party_vote in itertools.product((1, 2, 3, 10), range(classes)):
        votes = np.arange(parties)[:, None] % classes
        changed = votes.copy()
        changed[0] = party_vote
        yield np.array([[1.0]]), votes, changed
    for length in (0.01, 0.1, 0.5):
        votes = np.ones((3, 20), dtype=int)
        yield saturated_rows(17, 20, length), votes, votes * np.array([[0], [1], [1]])


@pytest.mark.parametrize(
    ("classes", "regularisation"), every_third(itertools.product((2, 3, 5), (1e-4, 1e-2, 0.2, 1.0, 100.0)))
)
def test_no_neighbouring_votes_exceed_any_form(classes, regularisation):
    rng = np.random.default_rng(classes)
    for rows, votes, changed in neighbouring_votes(rng, classes):
        arguments = {"regularisation": regularisation, "parties": len(votes), "classes": classes}
        soft = move(rows, soft_shares(votes, classes), soft_shares(changed, classes), regularisation)
        majority = move(rows, majority_shares(votes, classes), majority_shares(changed, classes), regularisation)
        for form in FORMS:
            assert soft <= sensitivity.soft_vote(form, **arguments)
            assert majority <= sensitivity.majority_vote(form, **arguments)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("parties", [10, 1000])
def test_soft_bound_is_reached_by_a_single_row(classes, parties):
    """The largest move over one row's votes is within 1% of the bound, so 2% less would be unsafe."""
    lam, moves = 100.0, []
    bound = sensitivity.soft_vote("tight", regularisation=lam, parties=parties, classes=classes)
    split = np.arange(parties) % classes  # undecided votes, where the loss is most curved, cost the most
    sure = np.r_[0, np.ones(parties - 1, dtype=int)]
    for votes in (split, sure):
        changed = np.r_[1, votes[1:]]
        shares = (soft_shares(one[:, None], classes) for one in (votes, changed))
        moves.append(move(np.array([[1.0]]), *shares, lam))
    assert 0.99 * bound <= max(moves) <= bound


@pytest.mark.parametrize(
    ("regularisation", "long", "length", "share"), [(1e-4, 34, 0.01955, 0.73), (1e-3, 27, 0.0665, 0.45)]
)
def test_weak_regularisation_leaves_little_of_the_binary_soft_bound_unused(regularisation, long, length, share):
    """Unanimous parties, one of which turns: no bound that ignores the rows can be below `share` of ours."""
    rows, parties = saturated_rows(long, 40, length), 100_000
    before = np.tile([0.0, 1.0], (40, 1))
    after = np.tile([1.0, parties - 1.0], (40, 1)) / parties
    bound = sensitivity.soft_vote("tight", regularisation=regularisation, parties=parties, classes=2)
    moved = move(rows, before, after, regularisation)
    assert share * bound <= moved <= bound


def binary_extreme_rows(regularisation):
    """Two rows of norm 1 whose minimiser for equal labels is longest: both scores sit at the peak."""
    radius = sensitivity.radius(regularisation, 2)
    peak = 1 + float(lambertw(1 / math.e).real)
    cosine = min(1.0, peak / radius)
    sine = math.sqrt(1 - cosine**2)
    return np.array([[cosine, sine], [cosine, -sine]])


@pytest.mark.parametrize("regularisation", [1e-5, 1e-4, 1e-2, 0.17, 0.171, 0.5, 3.0])
def test_binary_diameter_is_attained_by_turning_two_labels(regularisation):
    rows = binary_extreme_rows(regularisation)
    labels = np.array([1, 1])
    apart = move(rows, np.eye(2)[labels], np.eye(2)[1 - labels], regularisation)
    bound = sensitivity.majority_vote("diameter", regularisation=regularisation, parties=3, classes=2)
    assert bound == pytest.approx(2 * sensitivity.radius(regularisation, 2))
    assert apart <= bound
    assert apart == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("classes", [3, 6])
@pytest.mark.parametrize("regularisation", [1e-4, 1e-2])
def test_softmax_radius_is_attained_and_its_diameter_by_turning_the_row(classes, regularisation):
    radius = sensitivity.radius(regularisation, classes)
    peak = 1 + float(lambertw((classes - 1) / math.e).real)
    # One row whose winning class leads the others, which tie, by the peak: |W| |x| = peak sqrt(1 - 1/C).
    row = np.array([[peak * math.sqrt(1 - 1 / classes) / radius]])
    assert row[0, 0] <= 1
    label = np.eye(classes)[[0]]
    weights = minimiser(row, label, regularisation)
    assert np.linalg.norm(weights) == pytest.approx(radius, rel=1e-6)
    assert np.linalg.norm(weights - minimiser(-row, label, regularisation)) == pytest.approx(2 * radius, rel=1e-6)
    # With public rows the label can only change to another class, at an angle below 180 degrees.
    changed = move(row, label, np.eye(classes)[[1]], regularisation)
    assert changed == pytest.approx(radius * math.sqrt(2 * classes / (classes - 1)), rel=1e-6)


@pytest.mark.parametrize("classes", [3, 6])
def test_strongly_regularised_softmax_radius_is_nearly_attained(classes):
    lam = 1000.0
    norm = np.linalg.norm(minimiser(np.array([[1.0]]), np.eye(classes)[[0]], lam))
    assert 0.99 * sensitivity.radius(lam, classes) <= norm <= sensitivity.radius(lam, classes)


@pytest.mark.parametrize("regularisation", [0.18, 1.0, 50.0])
def test_binary_radius_is_the_exact_root_when_strongly_regularised_and_continuous_where_that_begins(regularisation):
    root = sensitivity.radius(regularisation, 2)
    assert regularisation * root == pytest.approx(expit(-root), rel=1e-12)
    single = np.linalg.norm(minimiser(np.array([[1.0]]), np.array([[0.0, 1.0]]), regularisation))
    assert single == pytest.approx(root, rel=1e-9)
    peak = float(lambertw(1 / math.e).real)
    below, above = (sensitivity.radius(peak / (1 + peak) ** 2 * (1 + t), 2) for t in (-1e-9, 1e-9))
    assert below == pytest.approx(above, rel=1e-8)
    assert below > above


@pytest.mark.parametrize("classes", [2, 3, 6, pytest.param(20, marks=pytest.mark.slow)])
def test_lambert_bound_against_maximisation(classes):
    """max over scores z of z_y - sum_k p_k z_k is W0((C-1)/e)."""

    def gap(z):
        p = np.exp(z - z.max())
        p /= p.sum()
        return p @ z - z[0]

    rng = np.random.default_rng(classes)
    found = max(-minimize(gap, rng.normal(size=classes) * 2, tol=1e-12).fun for _ in range(10))
    exact = sensitivity.radius(1e-6, classes) ** 2 * 1e-6
    assert found == pytest.approx(exact, rel=1e-9)
    assert found == pytest.approx(float(lambertw((classes - 1) / math.e).real), rel=1e-9)


@settings(derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 5),
    n=st.integers(1, 6),
    d=st.integers(1, 3),
    log_regularisation=st.floats(-5, 2),
    hard=st.booleans(),
)
def test_no_minimiser_leaves_the_ball(seed, classes, n, d, log_regularisation, hard):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) / rng.random((n, 1)) ** rng.choice([0.0, 1.0, 3.0])
    shares = rng.dirichlet(np.ones(classes), size=n)
    if hard:
        shares = np.eye(classes)[np.where(rows[:, 0] > 0, 1, 0)]  # separable: the longest weights
    lam = 10**log_regularisation
    norm = np.linalg.norm(minimiser(rows, shares, lam))
    assert norm <= sensitivity.radius(lam, classes) + TOLERANCE / lam


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0, 100.0])
def test_two_class_softmax_is_the_binary_risk_at_half_the_regularisation(lam):
    """Softmax weights (-w/2, w/2) have norm |w|/sqrt(2): sqrt(2)/(M lam) maps to the tight binary rule."""
    softmax_rule = math.sqrt(2) / (7 * lam)
    tight = sensitivity.soft_vote("tight", regularisation=lam / 2, parties=7, classes=2)
    assert math.sqrt(2) * softmax_rule == pytest.approx(tight)
    rows, shares = np.array([[0.8, 0.1], [-0.3, 0.9]]), np.array([[0.3, 0.7], [0.9, 0.1]])
    softmax = minimise(rows, shares.T @ rows / 2, lam, gradient_tolerance=TOLERANCE).weights
    binary = np.linalg.norm(minimiser(rows, shares, lam / 2))
    assert binary == pytest.approx(math.sqrt(2) * np.linalg.norm(softmax), rel=1e-8)


@pytest.mark.parametrize(
    ("rule", "form", "binary", "softmax"),
    [
        (sensitivity.soft_vote, "published", 20, 14.142),
        (sensitivity.soft_vote, "tight", 10, 14.142),
        (sensitivity.majority_vote, "published", 20_000, 14_142),
        (sensitivity.majority_vote, "diameter", 105.54, 180.5),
    ],
)
def test_published_values(rule, form, binary, softmax):
    """The constants of Hamm et al. 2016, Theorems 1 and 3 and Appendix B, for two and for six classes."""
    two, six = (rule(form, regularisation=1e-4, parties=1000, classes=classes) for classes in (2, 6))
    assert two == pytest.approx(binary, rel=1e-4 if form == "diameter" else 1e-6)
    assert six == pytest.approx(softmax, rel=1e-3 if form == "diameter" else 1e-4)


@pytest.mark.parametrize("classes", [2, 3, 9])
@pytest.mark.parametrize("lam", [1e-6, 1e-3, 1.0, 1e3])
def test_better_forms_are_never_larger(classes, lam):
    for rule, parties in itertools.product((sensitivity.soft_vote, sensitivity.majority_vote), (1, 50)):
        published, tight, diameter = (
            rule(form, regularisation=lam, parties=parties, classes=classes) for form in FORMS
        )
        assert diameter <= tight <= published
        assert diameter <= 2 * sensitivity.radius(lam, classes)


def whitening(rows):
    """L^+ (r, d) for X'X/N = L L' with the numerically null directions dropped."""
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    kept = values > 1e-12 * values[-1]
    return (vectors[:, kept] / np.sqrt(values[kept])).T


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), d=st.integers(1, 6), classes=st.integers(2, 5))
def test_whitened_statistic_moves_by_at_most_its_sensitivity(seed, n, d, classes):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * np.exp(2 * rng.normal(size=(n, 1)))  # no bound on the norms is needed
    if d > 1:
        rows[:, -1] = rows[:, 0]  # a collinear column: rank below d
    whiten = whitening(rows)
    change = rng.uniform(-1, 1, n)
    assert np.linalg.norm(whiten @ rows.T @ change) / n <= 1 + 1e-9
    parties = int(rng.integers(1, 6))
    votes = rng.integers(0, classes, (parties, n))
    changed = votes.copy()
    changed[0] = rng.integers(0, classes, n)
    difference = (soft_shares(votes, classes) - soft_shares(changed, classes)).T @ rows / n
    moved = np.linalg.norm(contrasts(classes).T @ difference @ whiten.T)
    assert moved == pytest.approx(np.linalg.norm(difference @ whiten.T), abs=1e-12)  # contrasts lose nothing
    assert moved <= sensitivity.statistic(parties) + 1e-9


@pytest.mark.parametrize("classes", [2, 5])
def test_whitened_statistic_sensitivity_is_attained(classes):
    """A constant feature and a party that turns every vote from one class to another."""
    rows = np.full((4, 1), 0.3)
    votes = np.zeros((3, 4), dtype=int)
    changed = np.array([[1], [0], [0]]) + votes
    difference = (soft_shares(votes, classes) - soft_shares(changed, classes)).T @ rows / 4
    moved = np.linalg.norm(contrasts(classes).T @ difference @ whitening(rows).T)
    assert moved == pytest.approx(sensitivity.statistic(3), rel=1e-12)


def test_solver_slack_is_attained_where_the_risk_is_only_the_regulariser():
    lam, g = 0.01, 1e-3
    loss = label_loss(np.zeros((1, 2)), np.zeros(2), lam)
    near, far = np.array([g / lam, 0.0]), np.array([-g / lam, 0.0])
    assert [np.linalg.norm(loss.gradient(w)[0]) for w in (near, far)] == pytest.approx([g, g])
    assert np.linalg.norm(near - far) == pytest.approx(sensitivity.solver_slack(g, lam))


@pytest.mark.parametrize("rule", [sensitivity.soft_vote, sensitivity.majority_vote])
@pytest.mark.parametrize(
    ("changed", "match"),
    [
        *(({"regularisation": lam}, "regularisation") for lam in (0.0, -1.0, math.nan, math.inf)),
        ({"parties": 0}, "parties"),
        ({"classes": 1}, "classes"),
        *(({"reach": reach}, "reach") for reach in (0.0, math.inf)),
        *(({"auxiliary_rows": rows}, None) for rows in (0, 2.5)),
        ({"form": "publishd"}, "published"),
    ],
)
def test_refuses_what_no_theorem_covers(rule, changed, match):
    with pytest.raises(InputError, match=match):
        rule(**{"form": "tight", "regularisation": 0.1, "parties": 3, "classes": 2} | changed)


@pytest.mark.parametrize(
    ("function", "arguments", "match"),
    [
        (sensitivity.statistic, (0,), "parties"),
        *((sensitivity.statistic, (3, reach), "reach") for reach in (0.0, -1.0, math.nan)),
        *((sensitivity.vote_shares, (3, rows), None) for rows in (0, -1, 2.5)),
        (sensitivity.solver_slack, (-1.0, 0.1), "gradient_tolerance"),
        (sensitivity.solver_slack, (1e-9, 0.0), "regularisation"),
        *((sensitivity.radius, (lam, 2), r"regularisation.*1e-100.*1e15") for lam in (0.0, 1e-320, 1e16, math.nan)),
        (sensitivity.radius, (0.1, 1), "classes"),
    ],
)
def test_other_refusals(function, arguments, match):
    with pytest.raises(InputError, match=match):
        function(*arguments)
    known = {"parties": 1, "classes": 2, "auxiliary_rows": 9}
    at_the_ends = [sensitivity.majority_vote("tight", regularisation=lam, **known) for lam in (1e-100, 1e15)]
    assert np.isfinite(at_the_ends).all()


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 5))
def test_the_reach_is_the_smaller_of_mean_norm_and_spectral_norm_and_never_below_a_sum(seed, n, d):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 3, d)
    reach = sensitivity.reach(rows)
    exact = min(np.linalg.norm(rows, axis=1).mean(), np.linalg.norm(rows, 2) / math.sqrt(n))
    assert reach == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("rows", [np.eye(4), np.array([[0.0, 2.0]]), np.ones((9, 1)), np.full((2, 4), 0.5)])
def test_rounding_is_on_the_safe_side_of_reach(rows):
    """Of these the norms are doubles."""
    exact = min(np.linalg.norm(rows, axis=1).mean(), np.linalg.norm(rows, 2) / math.sqrt(len(rows)))
    assert round(exact, 15) < sensitivity.reach(rows) < round(exact, 15) * (1 + 1e-11)


@pytest.mark.parametrize("norm", [0.0, 1e-3, 0.3, 1.0, 7.0, 100.0, 1e4])
def test_the_turn_of_a_row_is_never_below_what_many_digits_give(norm):
    with mpmath.workdps(40):

        def turn(c):
            return 2 * mpmath.sqrt(1 - c * c) / (1 + mpmath.exp(-norm * c))

        start = minimize(lambda c: -float(turn(mpmath.mpf(c[0]))), [0.5], bounds=[(0.0, 1.0)], tol=1e-12).x[0]
        peak = mpmath.findroot(lambda c: norm * (1 - c * c) / (1 + mpmath.exp(norm * c)) - c, start)
        exact = turn(peak)
        found = mpmath.mpf(sensitivity.row_turn(norm))
        assert exact <= found <= exact * (1 + mpmath.mpf("1e-11"))


@pytest.mark.parametrize("regularisation", [0.01, 0.1, 1.0, 10.0])
def test_no_replaced_row_of_one_party_moves_the_tight_bound_above_one(regularisation):
    """Where a whole row is replaced its gradient may turn by nearly 2, and the minimiser by the diameter at most."""
    known = {"regularisation": regularisation, "parties": 1, "classes": 2, "auxiliary_rows": 1}
    assert sensitivity.soft_vote("tight", **known) == pytest.approx(1 / regularisation, rel=1e-12)
