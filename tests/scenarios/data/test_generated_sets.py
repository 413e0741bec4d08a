"""The generated data sets with a public source: as documented, the same for everybody, another one in every split.

Rows that are drawn when they are read: the same whoever reads them, of the law that the data set names.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.special import ndtr
from scipy.stats import binomtest, ks_2samp, kstest
from support.refusals import refused

from scenarios.data.catalogue import digest, entry, load, names
from scenarios.data.generated_sets import Draws, _k_means, _mixtures, drawn
from scenarios.data.tables import describe
from scenarios.runs.trial import split_of
from scenarios.settings.schema import resolve
from scenarios.simulated.simulation import split

SETS = {"expril_a": (2500, 2), "expril_b": (2500, 4), "expril_c": (5000, 10), "expril_d": (5000, 15)}  # n_t, dimension
SETS |= {"expril_e": (5000, 25)}


def spec(name, number=0, seed=1):
    document = {"parties": {"count": 1}, "privacy": {"epsilon": 1}, "seed": seed}
    document["data"] = {"source": name, "auxiliary": "official", "test": "official"}
    return split_of(resolve(document), number, None)


@pytest.mark.parametrize("name", SETS)
def test_a_third_of_the_rows_is_public_a_third_private_a_third_for_testing(name):
    n, dimension = SETS[name]
    world = split(spec(name))
    table, pieces = world.table, world.cut
    assert repr(table) == f"Table('{name}': {3 * n} rows, {dimension} columns, 2 classes)"
    assert f"generated anew for every split: {n} public + {n} + {n} rows, {dimension} columns" in names()[name]
    for part, expected in zip((pieces.auxiliary, pieces.party(0), pieces.test), range(3), strict=True):
        np.testing.assert_array_equal(np.sort(part), np.arange(expected * n, (expected + 1) * n))
    assert pieces.shifted == (name in ("expril_c", "expril_d", "expril_e"))
    assert np.isfinite(table.rows(np.arange(3 * n))).all()


@pytest.mark.parametrize("name", ["expril_a", "expril_e"])
def test_instances_are_the_same_for_everybody_and_independent_of_each_other(name):
    assert entry(name).generated
    assert digest(name) is None
    first, other = load(name), load(name, instance=1)
    assert load(name) is first  # kept
    again = entry(name).read(None, 0)
    np.testing.assert_array_equal(again.blocks[0], first.blocks[0])
    np.testing.assert_array_equal(again.labels, first.labels)
    assert not np.isin(other.blocks[0], first.blocks[0]).any()
    assert split(spec(name, number=1, seed=7)).table is other
    assert split(spec(name, number=0, seed=7)).table is first


@pytest.mark.parametrize(("name", "clusters"), [("expril_a", 15), ("expril_b", 64)])
def test_a_and_b_are_uniform_with_clusters_of_labels_flipped_in_a_band(name, clusters):
    table = load(name, instance=3)
    rows, (n, d) = table.blocks[0], SETS[name]
    assert kstest(rows.ravel(), "uniform").pvalue > 1e-4
    distances = np.abs(rows.sum(axis=1) - d / 2)
    band = np.sort(distances[n:])[round(2 * n / 3)]
    apart = np.abs(distances - band) > 1e-3  # whatever the quantile's convention
    clustered = table.labels ^ (distances < band)
    # Within clusters the labels are one, so that they change between neighbours on cluster borders only.
    nearest = cKDTree(rows).query(rows, k=2)[1][:, 1]
    kept = apart & apart[nearest]
    changes = (clustered != clustered[nearest])[kept].mean()
    raw = (table.labels != table.labels[nearest])[kept & (np.abs(distances - band) < 0.02)].mean()
    assert changes < (0.04 if d == 2 else 0.2)
    assert raw > changes  # the band's border is one of the labels as they are
    share = clustered[n:].mean()
    assert abs(share - (clusters // 2) / clusters) < 0.2


@pytest.mark.parametrize("name", ["expril_c", *(pytest.param(f"expril_{one}", marks=pytest.mark.slow) for one in "de")])
def test_c_to_e_have_a_shifted_source_and_classes_of_the_documented_sizes(name):
    n, _ = SETS[name]
    majorities = []
    for instance in range(3):
        table = load(name, instance=instance)
        rows, share = table.blocks[0], table.labels[n:].mean()
        majorities.append(max(share, 1 - share))
        source, held, tested = np.split(rows, 3)
        assert min(ks_2samp(*pair).pvalue for pair in zip(source.T, held.T, strict=True)) < 1e-6
        assert min(ks_2samp(*pair).pvalue for pair in zip(held.T, tested.T, strict=True)) > 1e-5
    assert 0.5 <= min(majorities) <= max(majorities) <= 0.6


def test_instances_have_as_many_dimensions_as_latent_rows():
    rows = _mixtures("curve", 1000, 3, 0, latent=1, gain=1.0).blocks[0]
    nearest = cKDTree(rows).query(rows[:100], k=10)[1]
    values = np.linalg.svd(rows[nearest] - rows[nearest].mean(axis=1, keepdims=True), compute_uv=False)
    assert np.median(values[:, 1] / values[:, 0]) < 0.02  # one latent column: a curve, straight when seen from near


def test_centres_are_the_means_of_their_cells_and_a_cluster_without_rows_keeps_its_own(rng):
    rows = rng.random((400, 3))
    centres = _k_means(rows, 7, rng)
    nearest = np.linalg.norm(rows[:, None] - centres, axis=2).argmin(axis=1)
    np.testing.assert_allclose(centres, [rows[nearest == k].mean(axis=0) for k in range(7)], atol=1e-12)
    rows = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0)  # two places for four clusters
    assert np.isin(_k_means(rows, 4, rng), (0.0, 1.0)).all()


def test_drifting_classes_turn_as_documented():
    table = load("drifting")
    assert repr(table) == "Table('drifting': 28000 rows, 6 columns, 2 classes)"
    day, rows = table.groups["day"], table.rows(np.arange(len(table)))
    np.testing.assert_array_equal(np.bincount(day), 100)
    assert (np.diff(day) >= 0).all()
    angle = 2 / 3 * np.pi * day / 279
    now = rows[:, 0] * np.cos(angle) + rows[:, 1] * np.sin(angle) > 0
    right, first = now == table.labels, (rows[:, 0] > 0) == table.labels
    assert abs(right.mean() - 0.9332) < 4 * np.sqrt(0.9332 * 0.0668 / len(rows))
    assert first[day < 10].mean() > 0.9
    assert abs(first[abs(day - 209) < 15].mean() - 0.5) < 0.05
    assert first[day > 270].mean() < 0.3
    rows[:, :2] -= 1.5 * (2 * table.labels - 1)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    assert kstest(rows.ravel(), "norm").pvalue > 0.01


@pytest.mark.parametrize("name", ["crowd", "intrusions"])
def test_rows_far_away_cost_nothing_and_instances_are_other_rows_of_the_same_law(name):
    some = range(1000)
    first, again, other = (load(name, instance=instance) for instance in (0, 0, 1))
    np.testing.assert_array_equal(first.rows(some), again.rows(some))
    assert (first.rows(some) != other.rows(some)).any(axis=1).all()
    last = np.array([len(first) - 1])
    assert first.rows(last).shape == (1, len(first.columns))
    assert first.labels[last].dtype == np.int64


@given(st.integers(0, 5000), st.integers(0, 3000))
def test_a_row_is_the_same_however_it_is_asked_for(first, count):
    table = load("crowd")
    consecutive, places = range(first, first + count), np.arange(first, first + count)
    np.testing.assert_array_equal(table.rows(consecutive), table.rows(places))
    np.testing.assert_array_equal(table.labels[consecutive], table.labels[places])
    shuffled = np.random.default_rng(first).permutation(places)[:5]
    np.testing.assert_array_equal(table.rows(shuffled), table.rows(places)[shuffled - first])


def test_the_crowd_can_be_told_apart_as_well_as_its_law_says():
    table, some = load("crowd"), range(200_000)
    right = np.count_nonzero((table.rows(some).sum(axis=1) > 0) == (table.labels[some] == 1))
    assert binomtest(right, 200_000, float(ndtr(0.4 * np.sqrt(10)))).pvalue > 1e-6
    assert binomtest(int(table.labels[some].sum()), 200_000, 0.5).pvalue > 1e-6


def test_connections_have_numbers_and_one_value_of_each_text():
    table, some = load("intrusions"), range(50_000)
    rows = table.rows(some)
    assert np.isin(rows[:, 38:], (0, 1)).all()
    for first, last in ((38, 41), (41, 108), (108, 119)):
        assert (rows[:, first:last].sum(axis=1) == 1).all()
    assert (table.columns[38], table.columns[118]) == ("protocol=0", "flag=10")
    assert binomtest(int(table.labels[some].sum()), 50_000, 0.8).pvalue > 1e-6


def test_classes_are_their_own_and_counted_piece_by_piece_but_not_to_describe_them(monkeypatch):
    monkeypatch.setattr("scenarios.data.tables._ROWS_COUNTED", 300)
    table = load("crowd")
    np.testing.assert_array_equal(table.class_counts(range(1000)), np.bincount(table.labels[range(1000)]))
    assert describe(table) == "crowd: 1000000000 rows, 10 columns, classes no, yes, drawn when they are read"
    for key, value in (("classes", ["no", "yes", "maybe"]), ("positive", ["yes"])):
        refused(rf"data\.{key}", load, "crowd", **{key: value})


def test_parties_who_read_one_after_another_share_what_was_drawn():
    made = []

    def make(labels, random):
        made.append(len(labels))
        return np.zeros((len(labels), 1), np.float32)

    table = drawn(Draws("few", 4096, 1, (0.5, 0.5), make), ("x",), ("no", "yes"))
    for party in range(1024):
        table.rows(range(2 * party, 2 * party + 2))
    assert made == [1024, 1024]
