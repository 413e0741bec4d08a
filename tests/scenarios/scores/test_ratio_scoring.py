"""Errors against proportions that are known exactly, and how often the costly part of an estimate is computed."""

import numpy as np
import pytest
from support.fake_estimators import released

from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap
from scenarios.data.tables import Table
from scenarios.scores import number_scoring as ratio_scoring
from scenarios.scores.number_scoring import RatioScoring
from scenarios.scores.results import at_share
from scenarios.simulated.partition import cut
from scenarios.simulated.simulation import Split
from scenarios.simulated.targets import target_sets

SHARES = (0.2, 0.5, 0.8)
OFF = NoGuarantee("noise is off").to_dict()


@pytest.fixture
def split():
    """The first column is 1 for the first class and 0 for the second, so that its mean is the class's share."""
    labels = np.arange(400) % 2
    rows = np.stack([1.0 - labels, np.linspace(0, 1, 400)], axis=1)
    table = Table("t", ("a", "b"), ("no", "yes"), labels, (rows,))
    return Split(table, cut(table, auxiliary=40, test=0.5, parties=4, rows=None, partition="iid", seed=1))


@pytest.fixture
def scoring(split):
    targets = target_sets(split.table, split.cut.test, rows=50, shares=SHARES, seed=1, split=0)
    return scoring_of(split, {target.share: target.indices for target in targets})


def scoring_of(split, targets):
    return RatioScoring(split.table, split.cut.order, split.cut.test, targets)


def test_an_estimator_is_as_wrong_as_it_is(scoring, estimators, tmp_path):
    released([[0.0, 0.05, -0.1], [0.3]], [FeatureMap(2, ())] * 2, [OFF, OFF]).save(tmp_path / "x.npz")
    (guarantee, draws), (_, [far]) = scoring.releases(tmp_path / "x.npz")
    assert guarantee == OFF
    wanted = [{share: 2 * abs(offset) for share in SHARES} for offset in (0.0, 0.05, -0.1)]
    for found, errors in zip(draws, wanted, strict=True):
        assert list(found) == ["l1", *map(at_share, SHARES)]
        assert [found[at_share(share)] for share in SHARES] == pytest.approx(list(errors.values()), abs=1e-12)
        assert found["l1"] == pytest.approx(np.mean(list(errors.values())), abs=1e-12)
    # Off by .3, and by .2 where the estimate is cut off at 1.
    assert [far[at_share(share)] for share in SHARES] == pytest.approx([0.6, 0.6, 0.4])


def test_sets_are_embedded_once_for_all_draws_releases_and_variants(scoring, estimators, tmp_path):
    for name in ("x", "y"):
        released([[0.0] * 4, [0.1] * 4], [FeatureMap(2, ())] * 2, [OFF, OFF]).save(tmp_path / f"{name}.npz")
        assert len(list(scoring.releases(tmp_path / f"{name}.npz"))) == 2
    assert estimators.embedded == [(50, 2)] * len(SHARES)
    released([[0.0]], [FeatureMap(2, ())], [OFF], key="another").save(tmp_path / "z.npz")
    list(scoring.releases(tmp_path / "z.npz"))
    assert len(estimators.embedded) == 2 * len(SHARES)


@pytest.mark.parametrize("limit", ["_MOST_KEPT", "_KINDS_KEPT"])
def test_what_is_kept_in_memory_changes_no_error(scoring, split, estimators, tmp_path, monkeypatch, limit):
    for number in range(3):
        offsets = [[0.1 * number, 0.2]]
        made = released(offsets, [FeatureMap(2, ())], [OFF], key=f"kind {number}")
        made.save(tmp_path / f"{number}.npz")
    paths = [tmp_path / f"{number}.npz" for number in (0, 1, 2, 0, 1)]
    wanted = [list(scoring.releases(path)) for path in paths]
    monkeypatch.setattr(ratio_scoring, limit, 1)
    assert [list(scoring_of(split, scoring._targets).releases(path)) for path in paths] == wanted


def test_pooled_counts_with_every_label(scoring, split):
    classifier = {"name": "logistic", "parameters": {"regularisation": 1e-4}}
    found = scoring.pooled(FeatureMap(2, ()), classifier, np.random.default_rng(0))
    assert list(found) == ["l1", *map(at_share, SHARES)]
    assert max(found.values()) < 0.03  # the first column tells the class, but for what the penalty leaves


def test_the_constant_answer_is_the_class_shares_of_the_private_rows(scoring, split):
    shares = np.bincount(split.table.labels[split.cut.order], minlength=len(split.table.classes)) / len(split.cut.order)
    found = scoring.constant()
    named = {name: value for name, value in found.items() if name != "l1"}
    assert found["l1"] == pytest.approx(np.mean(list(named.values())))
    errors = []
    for target in scoring._targets.values():
        counts = np.bincount(split.table.labels[target], minlength=len(split.table.classes))
        errors.append(np.abs(shares - counts / len(target)).sum())
    assert list(named.values()) == pytest.approx(errors)
