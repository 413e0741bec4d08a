"""Many certified local regressions at once: against scikit-learn, their certificate, their bits, and their limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from federation.contract.errors import FederationError, InputError
from federation.numerics.erm import attainable_tolerance, fit_labels, minimise
from federation.numerics.label_losses import Logistic, Softmax
from parties.training import batched
from parties.training.batched import attainable_tolerances, fit_many, minimise_many


def exact_gradient_norm(rows, labels, classes, regularisation, weights):
    """The gradient of one party's risk from its definition, in extended precision."""
    rows, weights = rows.astype(np.longdouble), np.atleast_2d(weights).astype(np.longdouble)
    z = rows @ weights.T
    members = labels[:, None] == np.arange(classes)
    if classes == 2:
        z, members = np.hstack([np.zeros_like(z), z]), members[:, 1:]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    residuals = (p[:, 1:] if classes == 2 else p) - members
    return float(np.sqrt(((residuals.T @ rows / len(rows) + regularisation * weights) ** 2).sum()))


def each_party(rows, labels, counts, *others):
    """The rows and labels of each party, and what else there is of each."""
    cuts = np.cumsum(counts)[:-1]
    return zip(np.split(rows, cuts), np.split(labels, cuts), *others, strict=True)


def certify(rows, labels, counts, classes, regularisation, tolerances, weights):
    assert weights.shape == (len(counts), *(() if classes == 2 else (classes,)), rows.shape[1])
    tolerances = np.broadcast_to(tolerances, len(counts))
    for own, seen, tolerance, found in each_party(rows, labels, counts, tolerances, weights):
        assert exact_gradient_norm(own, seen, classes, regularisation, found) <= tolerance


def require_agreement(rows, labels, counts, regularisation, tolerance, weights):
    """Compare with scikit-learn, party by party."""
    for own, seen, found in each_party(rows, labels, counts, weights):
        model = LogisticRegression(
            C=1 / (len(own) * regularisation), fit_intercept=False, solver="newton-cholesky", tol=tolerance,
            max_iter=1000,
        )  # fmt: skip
        np.testing.assert_allclose(np.atleast_2d(found), model.fit(own, seen).coef_, atol=1e-5)


def labels_with_every_class(rng, counts, classes):
    """Random labels in which every party has every class."""
    return np.concatenate([rng.permutation(np.append(np.arange(classes), rng.integers(0, classes, n - classes)))
                           for n in counts])  # fmt: skip


def irregular(kind, rng, rows, labels, classes):
    """Rows of an unpleasant kind."""
    if kind == "duplicates":
        rows[1::2] = rows[::2][: len(rows[1::2])]
    elif kind == "zero rows":
        rows[::3] = 0.0
    elif kind == "constant columns":
        rows[:, 0], rows[:, 1] = 1.0, 0.0
    elif kind == "separable":
        rows[:, 0] = labels
        rows[:, 1] = labels == classes - 1
    elif kind == "mixed scales":
        rows *= 10.0 ** np.linspace(-2, 2, rows.shape[1])
    return rows


@pytest.mark.parametrize("regularisation", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(("classes", "counts", "d"), [
    (2, (2, 3, 9, 40, 200), 3), (2, (2, 10, 22, 50, 79, 80, 81, 130), 80), (3, (3, 7, 30, 31, 200), 5),
    (3, (4, 60, 61), 60), (6, (6, 7, 33, 50, 100), 20), (6, (6, 10, 35), 80), (10, (10, 11, 45, 120), 12),
])  # fmt: skip
def test_agrees_with_scikit_learn(classes, counts, d, regularisation):
    rng = np.random.default_rng(d)
    rows, labels = rng.normal(size=(sum(counts), d)), labels_with_every_class(rng, counts, classes)
    tolerance = 1e-6 * regularisation
    weights = fit_many(rows, labels, np.array(counts), classes, regularisation, tolerance)
    require_agreement(rows, labels, counts, regularisation, tolerance, weights)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["duplicates", "zero rows", "constant columns", "separable", "mixed scales"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("d", [3, 40])
def test_irregular_rows_agree_with_scikit_learn(kind, classes, d):
    rng = np.random.default_rng(1)
    counts, regularisation = np.array([4, 12, 25, 60]), 1e-2
    labels = labels_with_every_class(rng, counts, classes)
    rows = irregular(kind, rng, rng.normal(size=(len(labels), d)), labels, classes)
    weights = fit_many(rows, labels, counts, classes, regularisation, 1e-8)
    certify(rows, labels, counts, classes, regularisation, 1e-8, weights)
    require_agreement(rows, labels, counts, regularisation, 1e-8, weights)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_parties_without_some_or_all_other_classes(classes):
    rng = np.random.default_rng(2)
    counts = np.array([1, 5, 5, 30])
    rows = rng.normal(size=(counts.sum(), 8))
    labels = np.concatenate([[classes - 1], np.zeros(5, int), rng.integers(0, 2, 5), rng.integers(1, classes, 30)])
    weights = fit_many(rows, labels, counts, classes, 1e-3, 1e-10)
    certify(rows, labels, counts, classes, 1e-3, 1e-10, weights)
    if classes > 2:
        np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("norm", [1e-8, 1e4, 1e12])
def test_rows_of_any_length(classes, norm):
    rng = np.random.default_rng(3)
    counts = np.array([3, 20])
    rows, labels = norm * rng.normal(size=(23, 6)), rng.integers(0, classes, 23)
    tolerances = attainable_tolerances(1e-8, rows, counts, 0.1)
    certify(rows, labels, counts, classes, 0.1, tolerances, fit_many(rows, labels, counts, classes, 0.1, tolerances))


def test_the_risk_is_that_of_the_single_solver_for_all_row_counts_around_the_width():
    rng = np.random.default_rng(4)
    counts = np.arange(1, 40)
    rows, labels = rng.normal(size=(counts.sum(), 20)), rng.integers(0, 3, counts.sum())
    weights = fit_many(rows, labels, counts, 3, 1e-2, 1e-9)
    for own, seen, found in each_party(rows, labels, counts, weights):
        mu = np.eye(3)[seen].T @ own / len(own)
        np.testing.assert_allclose(found, minimise(own, mu, 1e-2, gradient_tolerance=1e-9).weights, atol=2e-7)


@given(st.data())
def test_every_gradient_meets_its_own_tolerance(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    classes, d = data.draw(st.sampled_from([2, 3, 7])), data.draw(st.integers(1, 12))
    counts = np.array(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=6)))
    regularisation = 10.0 ** data.draw(st.floats(-6, 1))
    rows = 10.0 ** data.draw(st.floats(-3, 3)) * rng.normal(size=(counts.sum(), d))
    rows *= rng.random(rows.shape) < data.draw(st.sampled_from([0.3, 1.0]))
    labels = rng.integers(0, classes, counts.sum())
    wanted = 10.0 ** rng.uniform(-12, -3)
    tolerances = attainable_tolerances(wanted, rows, counts, regularisation)
    weights = fit_many(rows, labels, counts, classes, regularisation, tolerances)
    certify(rows, labels, counts, classes, regularisation, tolerances, weights)


@given(st.data())
def test_bits_do_not_depend_on_the_company(data):
    """In any order and any groups, down to one party alone, and beside parties with other numbers of rows."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    classes, d = data.draw(st.sampled_from([2, 3, 9])), data.draw(st.sampled_from([1, 2, 7, 30]))
    counts = np.array(data.draw(st.lists(st.integers(1, 45), min_size=2, max_size=12)))
    counts = np.repeat(counts, data.draw(st.integers(1, 3)))
    rows = rng.normal(size=(counts.sum(), d)) * np.repeat(10.0 ** rng.uniform(-2, 1, len(counts)), counts)[:, None]
    labels = rng.integers(0, classes, counts.sum())
    tolerances = attainable_tolerances(1e-9, rows, counts, 1e-4)
    together = fit_many(rows, labels, counts, classes, 1e-4, tolerances)
    order = rng.permutation(len(counts))
    cuts = np.flatnonzero(rng.random(len(order) - 1) < data.draw(st.sampled_from([0.1, 0.5, 1.0]))) + 1
    spans = np.split(np.arange(counts.sum()), np.cumsum(counts)[:-1])
    for group in np.split(order, cuts):
        own = np.concatenate([spans[party] for party in group])
        apart = fit_many(rows[own], labels[own], counts[group], classes, 1e-4, tolerances[group])
        assert apart.tobytes() == together[group].tobytes()


def test_bits_do_not_depend_on_memory_layout_or_label_type():
    rng = np.random.default_rng(5)
    counts = np.array([6, 30, 6, 50])
    rows, labels = rng.normal(size=(92, 10)), rng.integers(0, 4, 92)
    expected = fit_many(rows, labels, counts, 4, 1e-3, 1e-8)
    padded = np.full((92, 23), np.nan)
    padded[:, 3::2] = rows
    for other in (np.asfortranarray(rows), padded[:, 3::2]):
        found = fit_many(other, labels.astype(np.uint8), counts.astype(np.uint16), 4, 1e-3, 1e-8)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_party_that_the_batch_cannot_certify_is_solved_alone(classes, monkeypatch):
    rng = np.random.default_rng(6)
    counts = np.full(5, 8)
    rows, labels = rng.normal(size=(40, 4)), rng.integers(0, classes, 40)
    expected = fit_many(rows, labels, counts, classes, 1e-2, 1e-9)
    solver = "minimise_small" if classes == 2 else "minimise_many"
    solve, alone = getattr(batched, solver), []

    def spoiled(*arguments):
        found = solve(*arguments)
        found[1], found[3] = 7.0, np.nan
        return found

    def counted(*arguments, **options):
        alone.append(1)
        return fit_labels(*arguments, **options)

    monkeypatch.setattr(batched, solver, spoiled)
    monkeypatch.setattr(batched, "fit_labels", counted)
    found = fit_many(rows, labels, counts, classes, 1e-2, 1e-9)
    assert len(alone) == 2
    certify(rows, labels, counts, classes, 1e-2, 1e-9, found)
    np.testing.assert_array_equal(found[[0, 2, 4]], expected[[0, 2, 4]])


def test_a_party_that_cannot_be_certified_at_all_is_named(monkeypatch):
    def impossible(*arguments, **options):
        raise FederationError("rounding")

    monkeypatch.setattr(batched, "minimise_small", lambda *arguments: np.full((3, 1), np.nan))
    monkeypatch.setattr(batched, "fit_labels", impossible)
    with pytest.raises(FederationError, match=r"0.*batch.*rounding"):
        fit_many(np.ones((3, 2)), np.array([0, 1, 1]), np.ones(3, int), 2, 0.1, 1e-8)


@pytest.mark.parametrize(
    ("count", "columns", "solver"),
    [(5, 50, "minimise_small"), (24, 10, "minimise_small"), (13, 50, "minimise_many"), (100, 11, "minimise_many")],
)
def test_small_systems_of_two_classes_are_eliminated(count, columns, solver, monkeypatch):
    """Both ways end at the same weights, and each is taken where it is the faster one."""
    rng = np.random.default_rng(8)
    rows, labels, counts = rng.normal(size=(9 * count, columns)), rng.integers(0, 2, 9 * count), np.full(9, count)
    expected, taken = fit_many(rows, labels, counts, 2, 1e-3, 1e-10), []
    for name in ("minimise_small", "minimise_many"):
        solve = getattr(batched, name)
        monkeypatch.setattr(batched, name, lambda *a, name=name, solve=solve: taken.append(name) or solve(*a))
    np.testing.assert_array_equal(fit_many(rows, labels, counts, 2, 1e-3, 1e-10), expected)
    assert taken == [solver]
    for always in (False, True):
        monkeypatch.setattr(batched, "small", lambda *shape, always=always: always)
        np.testing.assert_allclose(fit_many(rows, labels, counts, 2, 1e-3, 1e-10), expected, atol=1e-6)
    assert taken == [solver, "minimise_many", "minimise_small"]


@pytest.mark.slow
def test_regular_parties_need_no_single_solver(monkeypatch):
    monkeypatch.setattr(batched, "fit_labels", None)
    rng = np.random.default_rng(7)
    for classes in (2, 6):
        counts = rng.integers(1, 60, 80)
        rows, labels = rng.normal(size=(counts.sum(), 15)), rng.integers(0, classes, counts.sum())
        fit_many(rows, labels, counts, classes, 1e-4, 1e-8)
        fit_many(rows / np.linalg.norm(rows, axis=1, keepdims=True), labels, counts, classes, 1e-6, 1e-11)


def test_tiles_are_bounded_hold_every_party_once_and_share_row_counts_within_a_quarter():
    rng = np.random.default_rng(8)
    counts = rng.integers(1, 400, 3000)
    rows, labels = np.ones((counts.sum(), 2)), np.zeros(counts.sum(), int)
    seen = []
    for tile in batched._tiles(rows, labels, counts, np.arange(3)):
        seen.append(tile.parties)
        entries = tile.rows.size + tile.members.size
        assert len(tile.parties) <= batched._LARGEST_TILE
        assert len(tile.parties) == 1 or entries <= batched._TILE_ENTRIES
        np.testing.assert_array_equal(tile.counts, counts[tile.parties])
        np.testing.assert_array_equal(tile.rows.any(axis=2).sum(axis=1), tile.counts)
        np.testing.assert_array_equal(tile.members.sum(axis=(1, 2)), tile.counts)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(3000))
    counts = np.arange(1, 5000)
    shared = batched._shared_lengths(counts)
    np.testing.assert_array_equal(shared[:8], counts[:8])
    assert ((shared >= counts) & (shared <= 1.25 * counts)).all()
    assert len(np.unique(shared)) <= 8 + 4 * 10
    np.testing.assert_array_equal(batched._shared_lengths(shared), shared)


def test_attainable_tolerances_are_those_of_each_party_also_of_none():
    rng = np.random.default_rng(9)
    counts = np.array([1, 4, 2])
    rows = rng.normal(size=(7, 3)) * np.array([1.0, 1e6, 1e6, 1, 1, 1, 1])[:, None]
    found = attainable_tolerances(1e-10, rows, counts, 1e-4)
    parts = np.split(rows, np.cumsum(counts)[:-1])
    np.testing.assert_allclose(found, [attainable_tolerance(1e-10, part, 1e-4) for part in parts], rtol=1e-12)
    assert found[0] == 1e-10 < found[1]
    nothing = np.empty(0, dtype=int)
    assert fit_many(np.empty((0, 3)), nothing, nothing, 2, 0.1, 1e-8).shape == (0, 3)
    assert fit_many(np.empty((0, 3)), nothing, nothing, 4, 0.1, 1e-8).shape == (0, 4, 3)
    assert attainable_tolerances(1e-8, np.empty((0, 3)), nothing, 0.1).shape == (0,)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"labels": np.array([0, 2, 0])}, r"0.*1"),
        ({"labels": np.array([0.0, 1.0, 0.0])}, None),
        ({"labels": np.array([0, 1])}, "labels"),
        ({"classes": 1}, "classes"),
        ({"rows": np.ones((3, 0))}, "empty"),
        ({"rows": np.array([[1.0], [1.0], [np.nan]])}, "1"),
        ({"counts": np.array([1, 1])}, "counts"),
        ({"counts": np.array([3, 0])}, "counts"),
        ({"counts": np.array([1.0, 2.0])}, "counts"),
        ({"counts": np.array([[1, 2]])}, "counts"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"gradient_tolerance": 1e-15}, r"gradient_tolerance.*0"),
        ({"gradient_tolerance": np.array([1e-8, np.inf])}, r"gradient_tolerance.*1"),
        ({"gradient_tolerance": np.full(3, 1e-8)}, None),
    ],
)
def test_refusals(change, match):
    arguments = {
        "rows": np.ones((3, 1)), "labels": np.array([0, 1, 0]), "counts": np.array([1, 2]), "classes": 2,
        "regularisation": 0.1, "gradient_tolerance": 1e-8,
    } | change  # fmt: skip
    with pytest.raises(InputError, match=match):
        fit_many(**arguments)


def problem(classes, parties=20, n=12, d=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(parties, n, d)) * rng.uniform(0.1, 3, parties)[:, None, None]
    members = (rng.integers(0, classes, (parties, 1, n)) == np.arange(classes)[:, None]).astype(float)
    return rows, members[:, 1:] if classes == 2 else members, Logistic() if classes == 2 else Softmax()


def gradient_norms(rows, members, link, regularisation, weights):
    residuals = link.probabilities(weights @ rows.transpose(0, 2, 1)) - members
    return np.linalg.norm(residuals @ rows / rows.shape[1] + regularisation * weights, axis=(1, 2))


def solve(rows, members, link, regularisation=1e-4, target=1e-10):
    counts, targets = np.full(len(rows), rows.shape[1]), np.full(len(rows), target)
    return minimise_many(rows, members, counts, link, regularisation, targets)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("single_steps", [0, 2, 20])
def test_either_precision_reaches_the_minimiser(classes, single_steps, monkeypatch):
    monkeypatch.setattr(batched, "_SINGLE_STEPS", single_steps)
    rows, members, link = problem(classes)
    assert gradient_norms(rows, members, link, 1e-4, solve(rows, members, link)).max() < 2e-10


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_packing_changes_no_bit(classes, share, monkeypatch):
    rows, members, link = problem(classes)
    expected = solve(rows, members, link)
    monkeypatch.setattr(batched, "LIVE_SHARE", share)
    np.testing.assert_array_equal(solve(rows, members, link), expected)


@pytest.mark.slow
def test_double_precision_takes_over_where_single_precision_stalls(monkeypatch):
    rows, members, link = problem(4, n=30, d=10)
    rows[:, :, 0] = 1e5
    weights = solve(rows, members, link, 1e-4, 1e-6)
    assert gradient_norms(rows, members, link, 1e-4, weights).max() < 2e-6
    monkeypatch.setattr(batched, "_SINGLE_STEPS", batched.NEWTON_STEPS)
    weights = solve(rows, members, link, 1e-4, 1e-6)
    assert gradient_norms(rows, members, link, 1e-4, weights).max() > 1e-5


def test_parties_that_cannot_finish_are_returned_and_hold_nobody_up(monkeypatch):
    rows, members, link = problem(2)
    expected = solve(rows, members, link)
    rows[3] = np.nan
    found = solve(rows, members, link)
    others = np.arange(20) != 3
    np.testing.assert_array_equal(found[others], expected[others])
    monkeypatch.setattr(batched, "NEWTON_STEPS", 2)
    unfinished = solve(*problem(2))
    assert np.isfinite(unfinished).all()
    assert gradient_norms(*problem(2), 1e-4, unfinished).max() > 1e-10
