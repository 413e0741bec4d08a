"""Features of protected rows: those of a row are the same bits whatever rows come with it."""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_parties import Parties, cohort
from support.two_class_questions import marginals, moment

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine, Append, Fourier, Impute, SignedLog, UnitNorm
from federation.queries.labels import LabelledRows
from parties.responses.rows import labelled, private_features, real_labels, two_classes

RANDOM = np.random.default_rng(3)
ROWS = RANDOM.normal(size=(40, 20))
MAPS = {
    "unit_norm": (UnitNorm(),),
    "affine": (Affine(np.ones(20), RANDOM.normal(size=(20, 3))), Append(1.0), UnitNorm()),
    "logarithms": (Impute(np.ones(20), np.array([3])), SignedLog(np.arange(21.0)), UnitNorm()),
    "fourier": (Fourier(RANDOM.normal(size=(20, 5))),),
}


def features(feature_map, rows):
    return np.concatenate(list(private_features(feature_map, rows)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("steps", MAPS.values(), ids=MAPS)
def test_one_row_more_moves_no_other_rows_features(steps, order):
    feature_map = FeatureMap(20, steps)
    whole = features(feature_map, np.array(ROWS, order=order))
    for row in range(len(ROWS)):
        for stop in (row + 1, row + 2):
            part = features(feature_map, np.array(ROWS[row:stop], order=order))
            assert part[0].tobytes() == whole[row].tobytes()


def test_a_wide_map_gets_few_rows_at_a_time(monkeypatch):
    """Else memory, which may run out, would tell how many rows there are."""
    monkeypatch.setattr("parties.responses.rows._LARGEST", 300)
    feature_map = FeatureMap(20, (Affine(np.zeros(20), np.ones((20, 100))), Affine(np.zeros(100), np.ones((100, 2)))))
    tiles = list(private_features(feature_map, ROWS))
    assert {len(tile) for tile in tiles} == {1, 3}
    monkeypatch.undo()
    np.testing.assert_array_equal(np.concatenate(tiles), features(feature_map, ROWS))
    with pytest.raises(InputError, match="columns"):  # also without rows
        list(private_features(FeatureMap(3, ()), np.zeros((0, 2))))


def test_labels_from_a_half_on_are_of_the_second_class_and_no_classes_count_as_the_nearer_one(monkeypatch):
    [(_, classes)] = two_classes(cohort(), 2, moment().feature_map, Unit.LABEL)
    assert set(classes.tolist()) == {0, 1}
    assert classes[0] == 0
    plain, labels = Parties.holdings, np.resize([0.0, np.nextafter(0.5, 0), 0.5, 1.0], 60)
    monkeypatch.setattr(Parties, "holdings", lambda self, party: replace(plain(self, party), labels=labels))
    [(_, classes)] = two_classes(cohort(), 0, moment().feature_map, Unit.LABEL)
    assert classes[:4].tolist() == [0, 0, 1, 1]


def test_a_row_that_the_map_makes_infinite_counts_as_zeros_under_row_privacy():
    [(features, _)] = two_classes(cohort(), 3, marginals().feature_map, Unit.ROW)
    assert np.isfinite(features).all()
    assert len(features) == 67


@pytest.mark.parametrize("unit", [Unit.LABEL, Unit.ROW])
def test_each_row_is_about_another_person_or_refused(monkeypatch, unit):
    plain = Parties.holdings

    def held(people):
        monkeypatch.setattr(Parties, "holdings", lambda self, party: replace(plain(self, party), persons=people))
        return list(two_classes(cohort(), 0, moment().feature_map, unit))

    assert len(held(np.arange(60))[0][1]) == 60
    with pytest.raises(InputError, match=f"{unit}"):
        held(np.append(np.arange(59), 0))


def test_a_party_holds_as_many_rows_as_are_declared_and_no_more():
    declared = LabelledRows(FeatureMap(3, ()), 0.0, 1.0, 60)
    assert len(labelled(cohort(), 0, declared)[0]) == 60
    with pytest.raises(InputError, match=r"5.*67.*60"):
        labelled(cohort(), 5, declared)


class TestRealLabels:
    """Labels that go from -1 to 1 as their declared range does."""

    def declared(self, low, high, most=67):
        return LabelledRows(FeatureMap(3, ()), low, high, most)

    def labels(self, *arguments):
        return np.concatenate([labels for _, labels in real_labels(cohort(), 0, self.declared(*arguments))])

    def test_the_ends_of_the_range_are_the_ends_and_a_row_that_is_not_finite_counts_as_zeros(self):
        assert set(self.labels(0.0, 1.0)) == {-1.0, 1.0}
        assert set(self.labels(-1.0, 3.0)) == {-0.5, 0.0}
        [(features, _)] = real_labels(cohort(), 3, LabelledRows(marginals().feature_map, 0.0, 1.0, 67))
        assert np.isfinite(features).all()

    @pytest.mark.parametrize("ends", [(0.1, 0.7), (-1e308, 1e308), (1.0, 1.0 + 2e-16), (-5.0, -4.0)])
    def test_rounding_takes_no_label_beyond_them(self, ends):
        assert np.abs(self.labels(*ends)).max() <= 1

    def test_rows_come_some_at_a_time_with_their_own_labels(self, monkeypatch):
        whole = list(real_labels(cohort(), 0, self.declared(0.0, 1.0)))
        monkeypatch.setattr("parties.responses.rows.TILE", 7)
        parts = list(real_labels(cohort(), 0, self.declared(0.0, 1.0)))
        assert len(parts) > len(whole) == 1
        for position in (0, 1):
            np.testing.assert_array_equal(np.concatenate([part[position] for part in parts]), whole[0][position])


def test_missing_cells_are_filled_in_or_make_their_row_zeros_where_rows_are_private():
    """In neither case is there a refusal, which would tell of the row."""
    rows = np.array([[1.0, np.nan], [3.0, 4.0]])
    [plain] = private_features(FeatureMap(2, (Affine(np.zeros(2), np.ones(2)),)), rows)
    np.testing.assert_array_equal(plain, [[0, 0], [3, 4]])
    [filled] = private_features(FeatureMap(2, (Impute(np.array([7.0, 8.0]), np.array([1])),)), rows)
    np.testing.assert_array_equal(filled, [[1, 8, 1], [3, 4, 0]])
