"""Feature maps fitted on public rows: each stage beside scikit-learn or a closed form, and what is refused.

Columns of numbers that say nothing, by their names and public rows alone. Texts as indicators, and the columns that say
nothing, by public rows alone.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.stats import skew
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler
from support.refusals import refused

from aggregator.trial.feature_fitting import (
    are_identifiers,
    fit,
    identifiers,
    imputes,
    indicators,
    mixed_units,
    names_somebody,
    remarks,
)
from federation.features.feature_map import text_code, with_fourier
from federation.features.steps import Fourier

_RNG = np.random.default_rng(0)
TALL = _RNG.normal(size=(80, 6)) @ _RNG.normal(size=(6, 6)) + 3.0
WIDE = _RNG.normal(size=(12, 40)) * np.linspace(1, 3, 40) - 1.0


@pytest.mark.parametrize("rows", [TALL, WIDE], ids=["covariance", "gram"])
@pytest.mark.parametrize("whiten", [False, True])
def test_projection_is_scikit_learns_up_to_sign(rows, whiten):
    oracle = PCA(4, whiten=whiten, svd_solver="full").fit(rows)
    expected = oracle.transform(rows)
    if whiten:  # scikit-learn divides by N - 1
        expected *= np.sqrt(len(rows) / (len(rows) - 1))
    ours = fit([{"whiten" if whiten else "pca": 4}], rows).transform(rows)
    np.testing.assert_allclose(expected * np.sign(np.sum(ours * expected, axis=0)), ours, atol=1e-9)


@pytest.mark.parametrize("rows", [TALL, WIDE], ids=["covariance", "gram"])
def test_whitened_public_rows_have_unit_covariance_and_the_rank(rows):
    matrix = fit([{"pca": 5}], rows).steps[0].factor  # the largest entry of every direction is positive
    assert (matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])] > 0).all()
    features = fit([{"whiten": 1000}], rows)
    assert features.dimension == min(rows.shape[1], len(rows) - 1)
    out = features.transform(rows)
    np.testing.assert_allclose(out.T @ out / len(rows), np.eye(features.dimension), atol=1e-9)
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-9)


def test_standardise_is_scikit_learns_and_scale_is_for_columns_that_share_no_unit():
    rows = np.hstack([TALL * [1, 10, 100, 1000, 0.1, 0.01], np.full((80, 1), 0.1)])
    features = fit(["standardise"], rows)
    out = features.transform(rows)
    np.testing.assert_allclose(out[:, :-1], StandardScaler().fit_transform(rows[:, :-1]), atol=1e-12)
    assert not out[:, -1].any()
    other = np.hstack([rows[:, :-1], np.full((80, 1), 1e9)])  # what no public row says has no scale
    np.testing.assert_array_equal(features.transform(other), out)
    rows = np.hstack([np.arange(80.0)[:, None], TALL])
    features = fit(["standardise"], rows, left_out=[0])
    np.testing.assert_array_equal(features.transform(rows), fit(["standardise"], TALL).transform(TALL))
    assert features.columns == 7
    close = np.array([[0.0, 1.0], [5e-324, 2.0]])
    assert np.isfinite(fit(["standardise"], close).transform(close)).all()
    digits, tumours = load_digits().data, load_breast_cancer().data
    counts = np.random.default_rng(1).gamma(0.05, 4.0, size=(300, 54)).clip(0, 30)
    spam = np.hstack([counts, np.random.default_rng(2).pareto(1.0, size=(300, 3)).clip(0, 300) * [3, 30, 50]])
    for rows, mixed in [(digits, False), (digits / 16, False), (tumours, True), (spam, True)]:
        for public in (rows[:100], rows):
            assert mixed_units(public) is mixed
            assert bool(fit(["scale"], public).steps) is mixed
    assert not mixed_units(np.ones((5, 3)))
    assert mixed_units(np.array([[0.0, 0.0], [1.0, 1000.0]]))
    even = np.linspace(0, 1, 50)[:, None] * [1, 1000]  # not skewed
    np.testing.assert_array_equal(fit(["scale"], even).transform(even), fit(["standardise"], even).transform(even))


def test_scale_is_decided_on_the_rows_as_they_came():
    """A logarithm, or a column of its own, before it would hide that units are mixed."""
    random = np.random.default_rng(4)
    rows = np.column_stack([random.normal(size=200), np.exp(random.normal(0, 3, 200)), random.normal(size=(200, 3))])
    assert mixed_units(rows)
    assert not mixed_units(fit(["signed_log"], rows).transform(rows))
    for before in (["signed_log"], ["constant"], [{"pca": 4}], ["impute"]):
        out = fit([*before, "scale"], rows).transform(rows)
        np.testing.assert_allclose(out.std(axis=0)[out.std(axis=0) > 0], 1)
    holed = rows.copy()
    holed[random.random(rows.shape) < 0.3] = np.nan
    assert mixed_units(holed)
    for stages in (["impute", "scale"], ["impute", "standardise"], ["impute", "scale", "standardise"]):
        features = fit(stages, holed)
        values, flags = np.split(features.transform(holed), [5], axis=1)
        np.testing.assert_allclose(values.std(axis=0), 1)
        np.testing.assert_allclose(flags, np.isnan(holed) - np.isnan(holed).mean(axis=0))  # centred only


def test_scale_takes_logarithms_where_they_lessen_a_large_skewness():
    random = np.random.default_rng(5)
    columns = {
        "normal": random.normal(0, 1e4, 500),
        "amounts": np.exp(random.normal(3, 2, 500)),
        "rare amounts": np.where(random.random(500) < 0.9, 0, -np.exp(random.normal(3, 2, 500))),
        "indicator": 1.0 * (random.random(500) < 0.02),
        "constant": np.full(500, 7.0),
        "cubes of amounts near 1": 1 - random.exponential(1e-3, 500) ** 2,  # a logarithm is straight there
    }
    rows = np.column_stack(list(columns.values()))
    logarithm, affine = fit(["scale"], rows).steps
    expected = np.zeros(len(columns))
    for i, column in enumerate(rows.T):
        sizes = np.abs(column[column != 0])
        curved = np.sign(column) * np.log(1 + np.abs(column) / np.median(sizes))
        if len(set(column)) > 2 and abs(skew(column)) > 2 and abs(skew(curved)) < abs(skew(column)):
            expected[i] = np.median(sizes)
    np.testing.assert_array_equal(logarithm.scales, expected)
    curved_ones = {name for name, scale in zip(columns, expected, strict=True) if scale}
    assert curved_ones >= {"amounts", "rare amounts"}
    assert not curved_ones & {"normal", "indicator", "constant"}
    out = fit(["scale"], rows).transform(rows)
    np.testing.assert_allclose(out, StandardScaler().fit_transform(logarithm.apply(rows)), atol=1e-9)
    assert affine.kind == "affine"


@settings(derandomize=True)
@given(st.integers(0, 2**16), st.integers(1, 60), st.integers(2, 6), st.sampled_from([0.0, 0.004, 0.3, 0.9]))
def test_missing_cells_become_public_medians_and_flags(seed, count, columns, share):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, columns)) * 10.0 ** random.integers(-3, 4, columns)
    rows[:, 1:][random.random((count, columns - 1)) < share] = np.nan  # the first column is whole
    step = fit(["impute"], rows).steps[0]
    oracle = SimpleImputer(strategy="median", keep_empty_features=True).fit(rows)
    np.testing.assert_array_equal(step.fill, oracle.statistics_)
    missing = np.isnan(rows)
    often = [j for j in range(columns) if 0.01 <= missing[:, j].mean() < 1]
    assert set(step.flags) <= set(often)
    flagged = {missing[:, j].tobytes() for j in step.flags}
    assert len(flagged) == len(step.flags)
    assert flagged == {missing[:, j].tobytes() for j in often}
    plain = fit([{"impute": {"flags": False}}], rows)
    assert plain.dimension == columns
    np.testing.assert_array_equal(plain.transform(rows), oracle.transform(rows))


def test_missing_cells_need_the_stage_at_the_beginning():
    rows = TALL.copy()
    rows[3, 2] = np.nan
    assert [imputes(stages) for stages in (["impute"], [{"impute": {"flags": False}}, "scale"], ["scale"])] == [1, 1, 0]
    refused(r"3.*2", fit, ["standardise"], rows)
    for stages in (["standardise", "impute"], ["impute", "scale", {"impute": {"flags": True}}]):
        refused("impute", fit, stages, rows)
    rows[4, 5] = np.inf
    refused(r"missing.*row.*4.*5", fit, ["impute"], rows)
    whole = fit(["impute"], TALL)
    refused(r"rows.*missing.*row.*4.*5", whole.transform, rows)


def test_columns_without_a_public_value_are_zero_and_some_column_needs_one():
    rows = TALL[:, :3].copy()
    rows[:, 1] = np.nan
    features = fit(["impute", "scale", {"whiten": 3}], rows)
    assert features.dimension == 2
    np.testing.assert_array_equal(fit(["impute"], rows).transform(rows)[:, 1], 0)
    for alone in (rows[:, 1:2], np.full((4, 2), np.nan)):
        refused(r"data\.auxiliary", fit, ["impute"], alone)
    red, nothing = text_code("red"), text_code("")
    texts = np.array([[red, np.nan], [nothing, np.nan], [red, np.nan]])
    out = fit(["impute"], texts, text_columns=[0]).transform(np.array([[nothing, 3.0], [red, np.nan]]))
    np.testing.assert_array_equal(np.sort(out, axis=1), [[0, 1, 3], [0, 0, 1]])  # an empty text is one of its own


@pytest.mark.parametrize("rows", [np.ones((9, 3)), np.array([[1.0, 2.0, np.nan]]), np.array([[1.0, 5e8, 0.0]])])
@pytest.mark.parametrize("stages", [["impute", "scale", "constant", "unit_norm"], ["impute", "standardise"]])
def test_rows_that_say_nothing_can_be_scaled(rows, stages):
    assert np.isfinite(fit(stages, rows).transform(np.array([[5.0, np.nan, -1e9]]))).all()


def test_max_norm_clips_and_negligible_directions_are_dropped():
    features = fit(["max_norm"], np.array([[3.0, 4.0], [0.0, 1.0]]))
    out = features.transform(np.array([[3.0, 0.0], [0.0, 20.0], [0.0, 0.0], [1e300, 1e300]]))
    np.testing.assert_allclose(out, [[0.6, 0], [0, 1], [0, 0], [np.sqrt(0.5), np.sqrt(0.5)]], atol=1e-15)
    rows = np.hstack([TALL, TALL @ _RNG.normal(size=(6, 4)), np.full((80, 2), 7.0)])
    assert fit([{"whiten": 12}], rows).dimension == 6
    assert fit([{"pca": 12}], rows).dimension == 6


def test_waves_approximate_the_gaussian_kernel_at_the_median_distance_and_can_follow_a_fitted_map():
    features = fit(["standardise", {"fourier": 4096}], TALL)
    out = features.transform(TALL)
    squares = pdist(fit(["standardise"], TALL).transform(TALL), "sqeuclidean")
    expected = squareform(np.exp(-squares / np.median(squares))) + np.eye(len(TALL))
    np.testing.assert_allclose(out @ out.T, expected, atol=5 / np.sqrt(4096))
    np.testing.assert_array_equal(fit(["standardise", {"fourier": 4096}], TALL).transform(TALL), out)
    before = fit(["standardise"], TALL)
    after = with_fourier(before, 0.5, 64, 3)
    assert repr(after) == "FeatureMap(6 -> 64: affine, fourier)"
    step = Fourier.draw(6, 0.5, 64, 3)
    np.testing.assert_array_equal(after.transform(TALL), step.apply(before.transform(TALL)))
    assert not np.array_equal(with_fourier(before, 0.5, 64, 4).transform(TALL), after.transform(TALL))
    refused("gamma", with_fourier, before, 0.0, 64, 3)
    refused("features", with_fourier, before, 1.0, 65, 3)


def test_texts_become_indicators_of_public_texts_unless_they_are_constant_or_nearly_unique():
    red, blue, green = map(text_code, ("red", "blue", "green"))
    public = np.array([[red, 1.0, blue], [blue, 2.0, blue], [blue, 2.0, green]])
    features = fit([], public, text_columns=[2, 0])
    out = features.transform(np.array([[red, 5.0, blue], [green, 6.0, green], [blue, 7.0, red]]))
    first, last = sorted([blue, green]), sorted([red, blue])  # the texts of column 2, then those of column 0
    np.testing.assert_array_equal(out[:, 0], [5, 6, 7])
    np.testing.assert_array_equal(out[:, 1:3], [[text == cell for text in first] for cell in (blue, green, red)])
    np.testing.assert_array_equal(out[:, 3:], [[text == cell for text in last] for cell in (red, green, blue)])
    count = 60
    keys, same, colours, ages = np.arange(count), np.full(count, 7), np.arange(count) % 3, np.linspace(1, 9, count)
    public = text_columns_table(
        np.column_stack([keys, same, colours, ages]), ("key", "site", "colour", "age"), (0, 1, 2)
    )
    said = list(remarks(public, [], mixed=False))
    assert len(said) == 2
    assert said[0].startswith("the text column 'key' is left out: it has 60 different texts in 60 public rows; to keep")
    assert said[1].startswith("the text column 'site' is left out: its texts are the same in all 60 public rows;")
    features = fit(["standardise"], public.rows, public.text_columns)
    assert features.dimension == 4  # the age and three colours
    private = features.transform(np.array([[99.0, 8.0, 1.0, 5.0], [3.0, 7.0, 1.0, 5.0]]))
    np.testing.assert_array_equal(private[0], private[1])  # whatever a row says in the columns that are left out


@pytest.mark.parametrize(("stage", "part"), [
    ("sclae", "scale"), ({"whitten": 3}, "whiten"), ("pca", "pca"), ({"pca": 0}, r"1.*0"), ({"whiten": True}, None),
    ({"whiten": 2.5}, r"2\.5"), ({"pca": 1, "whiten": 2}, None), ({"fourier": 7}, r"fourier.*2.*7"),
    ({"fourier": 0}, "0"), ({"fourier": True}, None), ("fourier", None),
    ({"furrier": 8}, r"polynomial.*p.*fourier"), (3, None), ({"scale": 3}, None),
    ({"project": 0}, r"project.*1.*0"), ({"project": {"seed": 1}}, "project"),
    ({"project": {"dimensions": 2, "seed": 0.5}}, "project"), ({"project": 6}, r"project.*6.*6"),
])  # fmt: skip
def test_unknown_stages_are_named(stage, part):
    refused(part, fit, [stage], TALL)


@pytest.mark.parametrize(("stages", "rows", "texts", "part"), [
    (["scale"], np.zeros((0, 3)), [], None), (["scale"], np.zeros((3, 0)), [], None),
    ([{"whiten": 2}], TALL[:1], [], "1"), (["max_norm"], np.zeros((3, 2)), [], "max_norm"),
    ([], np.tile(np.arange(1001.0), 2)[:, None], [0], r"1001.*data\.drop"), ([], TALL, [6], r"0.*6"),
    ([], np.ones((2, 1)), [0], "2"),
])  # fmt: skip
def test_rows_that_cannot_be_fitted_are_refused(stages, rows, texts, part):
    refused(part, fit, stages, rows, text_columns=texts)


@pytest.mark.parametrize("stage", ["scale", "standardise", {"pca": 1}, {"whiten": 1}, "max_norm"])
def test_numbers_whose_squares_overflow_are_refused(stage):
    rows = np.column_stack([np.arange(5.0), 1e200 * np.arange(5.0)])
    refused(r"1.*0.*4e\+200", fit, [stage], rows)
    refused(r"0.*1e\+308", fit, [stage], np.array([[1e308, 0.0], [-1e308, 1.0]]))
    fit([stage], rows / 1e50)


def test_a_random_projection_keeps_lengths_and_depends_on_its_seed_alone():
    wide = np.random.default_rng(5).normal(size=(40, 800))
    known = fit([{"project": 400}], wide)
    assert repr(known) == "FeatureMap(800 -> 400: affine)"
    ratios = np.linalg.norm(known.transform(wide), axis=1) / np.linalg.norm(wide, axis=1)
    assert abs(ratios.mean() - 1) < 0.02  # its deviation is 1 / sqrt(2 * 400 * 40) = .006
    same = fit([{"project": {"dimensions": 400, "seed": 0}}], wide[:2] * 100)  # whatever the public rows are
    np.testing.assert_array_equal(same.transform(wide), known.transform(wide))
    other = fit([{"project": {"dimensions": 400, "seed": 2**62}}], wide)
    assert not np.array_equal(other.transform(wide), known.transform(wide))
    # The numbers of a seed, which no release of numpy changes.
    np.testing.assert_allclose(same.steps[0].factor[:2, 0] * 20, [-1.8313, -0.1774], atol=1e-4)


COUNT = 40
COLUMNS = {
    "patient_id": 1000.0 + 7 * np.arange(COUNT)[::-1],
    "visits": np.arange(COUNT) % 4,
    "site": np.full(COUNT, 3.0),
    "age": np.linspace(20.0, 60.5, COUNT),
}


def table(text=(), **changed):
    columns = {**COLUMNS, **changed}
    return SimpleNamespace(rows=np.column_stack([*columns.values()]), columns=tuple(columns), text_columns=text)


def test_numbers_so_named_that_no_two_public_rows_share_are_identifiers_which_is_told():
    assert identifiers(table()) == (0,)
    assert identifiers(table(text=(0,))) == ()  # of texts others decide
    assert identifiers(table(patient_id=COLUMNS["visits"])) == ()  # somebody has several rows
    assert identifiers(table(patient_id=COLUMNS["age"])) == ()  # no whole numbers
    assert identifiers(table(patient_id=np.where(COLUMNS["visits"] > 2, np.nan, COLUMNS["patient_id"]))) == ()
    assert identifiers(table(age=np.arange(COUNT))) == (0,)  # numbered through, but it may be anything
    for name, named in (("ID", True), ("row", True), ("Unnamed: 0", True), ("idle", False)):
        assert names_somebody(name) is named
        assert are_identifiers(name, np.arange(0.0, 2000.0, 100.0)) is named
    first, second = remarks(table(), ["impute", "scale"], mixed=True)
    assert first.startswith("the column 'patient_id' is left out: it is named as an identifier, and no two of the 40")
    assert second.startswith("the column 'site' says nothing: it is 3 in all 40 public rows, so that nobody knows its")
    assert len(list(remarks(table(), ["standardise"], mixed=False))) == 2
    assert len(list(remarks(table(), ["scale"], mixed=False))) == 1  # as pixels of one unit may be
    assert len(list(remarks(table(), [{"whiten": 3}], mixed=True))) == 1
    holed = np.where(np.arange(COUNT) == 5, np.nan, 3.0)
    assert len(list(remarks(table(site=holed), ["standardise"], mixed=True))) == 1  # that it is missing says something


def text_columns_table(rows, names, text):
    return SimpleNamespace(rows=np.array(rows, dtype=float), columns=names, text_columns=text)


@pytest.mark.parametrize(
    ("different", "rows", "stay"), [(20, 20, True), (21, 42, True), (21, 41, False), (1, 9, False)]
)
def test_the_rule_is_in_the_numbers_of_public_texts_and_rows(different, rows, stay):
    cells = np.arange(rows) % different
    public = text_columns_table(np.column_stack([cells, np.arange(rows) % 2]), ("a", "b"), (0, 1))
    assert len(indicators(public.rows, [0, 1]).codes) == (different + 2 if stay else 2)
    assert len(list(remarks(public, [], mixed=False))) == (0 if stay else 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=60))
def test_a_remark_for_each_column_without_indicators_and_for_no_other(cells):
    public = text_columns_table([[*row, 0.5] for row in cells], ("a", "b", "x"), (0, 1))
    step = indicators(public.rows, [0, 1])
    empty = {("a", "b")[i] for i in range(2) if step.starts[i] == step.starts[i + 1]}
    assert {line.split("'")[1] for line in remarks(public, [], mixed=False)} == empty
    out = step.apply(public.rows)
    np.testing.assert_array_equal(out[:, 1:].sum(axis=1), 2 - len(empty))  # each public text is known, once
