"""What every task's scoring does: rows behind each release's own map, and scores of one release after another."""

import numpy as np
import pytest
from support.released_lines import stored

from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine, Append
from scenarios.data.tables import Table
from scenarios.scores.scoring import Scoring

ROWS = np.arange(10.0).reshape(5, 2)
TABLE = Table("t", ("a", "b"), (), np.array([5.0, 6.0, 7.0, 8.0, 9.0]), (ROWS,), label_range=(0.0, 10.0))
PRIVATE, TEST = np.array([4, 0, 1]), np.array([3, 2])


class Means(Scoring):
    """Scores draws by their mean prediction."""

    def scored(self, models, release):
        rows = self.tested(models.feature_maps[release])
        return [{"mean": float(models.predict(release, draw, rows).mean())} for draw in range(models.draws(release))]

    def pooled(self, feature_map, classifier, random):
        return {}


@pytest.fixture
def scoring():
    return Means(TABLE, PRIVATE, TEST)


def test_private_rows_are_those_of_the_parties_in_their_order(scoring):
    rows, labels = scoring.held(FeatureMap(2, (Append(1.0),)))
    np.testing.assert_array_equal(rows, np.column_stack([ROWS[PRIVATE], np.ones(3)]))
    assert labels.tolist() == [9.0, 5.0, 6.0]


def test_each_map_is_applied_to_the_test_rows_once(scoring):
    twice = FeatureMap(2, (Affine(np.zeros(2), np.full(2, 2.0)),))
    np.testing.assert_array_equal(scoring.tested(twice), 2 * ROWS[TEST])
    again = FeatureMap(2, (Affine(np.zeros(2), np.full(2, 2.0)),))  # equal, and another object
    assert scoring.tested(again) is scoring.tested(twice)


def test_raw_test_rows_are_read_once_unless_they_would_not_fit_together(monkeypatch):
    reads = []
    monkeypatch.setattr(Table, "rows", lambda _, indices: reads.append(len(indices)) or ROWS[indices])
    for most, pieces in ((4, [2]), (3, [2, 2])):
        monkeypatch.setattr("scenarios.scores.scoring._KEPT_CELLS", most)
        scoring = Means(TABLE, PRIVATE, TEST)
        np.testing.assert_array_equal(scoring.tested(FeatureMap(2, ())), ROWS[TEST])
        np.testing.assert_array_equal(scoring.tested(FeatureMap(2, (Append(1.0),)))[:, :2], ROWS[TEST])
        assert reads == pieces
        reads.clear()


def test_what_names_no_scores_cannot_be_one():
    with pytest.raises(TypeError, match="abstract"):
        Scoring(TABLE, PRIVATE, TEST)


def test_a_file_is_scored_release_by_release_under_its_own_guarantee(scoring, tmp_path):
    guarantees = [NoGuarantee(reason).to_dict() for reason in ("first", "second")]
    weights = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]], [[0.0, 0.0, 7.0]]]
    path = stored(tmp_path / "x.npz", weights, guarantees, FeatureMap(2, (Append(1.0),)))
    found = list(scoring.releases(path))
    assert found == [(guarantees[0], [{"mean": 5.0}, {"mean": 6.5}]), (guarantees[1], [{"mean": 7.0}])]


def test_a_file_of_something_else_is_refused(scoring, tmp_path):
    np.savez(tmp_path / "x.npz", y=np.ones(3))
    with pytest.raises(InputError, match="is not a released model"):
        list(scoring.releases(tmp_path / "x.npz"))
