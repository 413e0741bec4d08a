import numpy as np
import pytest
from support.synthetic import Parties, draw

from aggregator.trial.feature_fitting import fit
from federation.queries.votes import Training
from parties.party_data import cohort as holdings_module
from parties.party_data.cohort import Cohort, Held, Holdings
from parties.training import training as loading
from parties.training.training import load


class Spoilt(Parties):
    """The synthetic parties, some with other rows and labels."""

    def __init__(self, **replaced):
        super().__init__()
        self._replaced = {int(name.removeprefix("party")): value for name, value in replaced.items()}

    def holdings(self, party):
        if party in self._replaced:
            return Holdings(party, *self._replaced[party])
        return super().holdings(party)


def loaded(monkeypatch, provider, parties=6, seed=1, stages=({"whiten": 3}, "unit_norm")):
    monkeypatch.setattr(holdings_module, "provider_of", lambda reference: provider)
    training = Training(fit(stages, draw(99, 120)[0]), 3, {}, 0)
    return load(Cohort("", 0, parties, seed), training)


def rows_of(found):
    return dict(zip(found.parties.tolist(), (rows.tobytes() for rows, _ in found.each()), strict=True))


def test_rows_are_those_of_each_party_behind_the_map(monkeypatch):
    found, failures = loaded(monkeypatch, Parties())
    assert failures == {}
    transform = fit([{"whiten": 3}, "unit_norm"], draw(99, 120)[0]).transform
    for party, (rows, labels) in enumerate(found.each()):
        raw = Parties().holdings(party)
        np.testing.assert_array_equal(rows, transform(raw.rows))
        np.testing.assert_array_equal(labels, raw.labels)


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (np.ones((2, 5)), np.array([0, 1]), "4 columns"),
        (np.full((2, 4), 1e308), np.array([0, 1]), "finite"),
        (np.full((2, 4), np.inf), np.array([0, 1]), "infinite features"),
        (np.full((2, 4), np.nan), np.array([0, 1]), "without the stage impute must be finite"),
        (np.ones((2, 4)), np.array([0, 3]), "0..2"),
        (np.ones((2, 4)), np.array([-1, 0]), "0..2"),
        (np.ones((2, 4)), np.array([0.0, 1.0]), "class code"),
        (np.ones((2, 4)), np.array([[0], [1]]), "class code"),
        (np.empty((0, 4)), np.empty(0, int), "no rows"),
        (np.ones(2), np.array([0, 1]), ""),
    ],
    ids=["columns", "overflow", "infinite", "nan", "class", "negative", "float", "axes", "empty", "vector"],
)
def test_unusable_rows_cost_their_own_party_only(monkeypatch, rows, labels, words):
    whole, _ = loaded(monkeypatch, Parties())
    found, failures = loaded(monkeypatch, Spoilt(party2=(rows, labels)))
    assert list(failures) == [2]
    assert words in failures[2]
    expected = rows_of(whole)
    del expected[2]
    assert rows_of(found) == expected


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int16])
def test_the_type_of_one_party_s_labels_changes_nothing_for_the_others(monkeypatch, kind):
    whole, _ = loaded(monkeypatch, Parties())
    held = Parties().holdings(2)
    found, failures = loaded(monkeypatch, Spoilt(party2=(held.rows, held.labels.astype(kind))))
    assert failures == {}
    assert found.labels.dtype == np.int64
    np.testing.assert_array_equal(found.labels, whole.labels)


def test_in_a_deployment_the_cause_stays_home(monkeypatch):
    _, failures = loaded(monkeypatch, Spoilt(party2=(np.full((2, 4), 1e308), np.array([0, 1]))), seed=None)
    assert failures == {2: "the party could not answer"}


def test_a_provider_that_mixes_up_parties_is_refused(monkeypatch):
    class Confused(Parties):
        def holdings(self, party):
            return super().holdings(party + (party == 3))

    _, failures = loaded(monkeypatch, Confused())
    assert list(failures) == [3]
    assert "rows of party 4" in failures[3]


def test_other_number_types_load_to_the_same_bits(monkeypatch):
    rows, labels = draw(1003, 6)
    whole, _ = loaded(monkeypatch, Spoilt(party3=(np.float32(rows).astype(float), labels)))
    mixed, _ = loaded(monkeypatch, Spoilt(party3=(np.float32(rows), labels.astype(np.uint8))))
    assert rows_of(mixed) == rows_of(whole)


def test_nobody_is_loaded_where_everybody_fails(monkeypatch):
    found, failures = loaded(monkeypatch, Parties(broken=range(6)))
    assert sorted(failures) == list(range(6))
    assert found.rows.shape == (0, 3)
    assert list(found.each()) == []


def test_loaded_rows_show_their_shape_only(monkeypatch):
    assert "array" not in repr(loaded(monkeypatch, Parties())[0])


def test_missing_cells_are_data_behind_a_map_that_imputes(monkeypatch):
    held = Parties().holdings(2)
    rows = held.rows.copy()
    rows[0, 1] = np.nan
    stages = ("impute", "standardise", "constant")
    found, failures = loaded(monkeypatch, Spoilt(party2=(rows, held.labels)), stages=stages)
    assert failures == {}
    rows[0, 1] = np.median(draw(99, 120)[0][:, 1])
    filled, _ = loaded(monkeypatch, Spoilt(party2=(rows, held.labels)), stages=stages)
    assert rows_of(found) == rows_of(filled)


class Together(Spoilt):
    """The same parties, handed over all at once."""

    def held(self, parties):
        if self._replaced.get(99):
            raise RuntimeError("nobody is there")
        each = [self.holdings(party) for party in parties]
        rows, labels = (np.concatenate([getattr(one, name) for one in each]) for name in ("rows", "labels"))
        return Held(np.array(parties), rows, labels, np.array([len(one.labels) for one in each])), {}


@pytest.fixture
def unread(monkeypatch):
    monkeypatch.setattr(loading, "_latest_held", {})


def test_parties_that_are_handed_over_at_once_load_to_the_same_bits(monkeypatch, unread):
    expected, _ = loaded(monkeypatch, Parties())
    found, failures = loaded(monkeypatch, Together())
    assert loading._latest_held
    assert failures == {}
    assert rows_of(found) == rows_of(expected)
    np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize("replaced", [(np.full((2, 4), np.inf), np.array([0, 1])), (np.ones((2, 4)), np.array([0, 3]))])
def test_an_unusable_party_among_many_is_found_one_by_one(monkeypatch, unread, replaced):
    found, failures = loaded(monkeypatch, Together(party2=replaced))
    assert list(failures) == [2]
    assert found.parties.tolist() == [0, 1, 3, 4, 5]


def test_where_handing_over_fails_parties_are_asked_one_by_one(monkeypatch, unread):
    found, failures = loaded(monkeypatch, Together(party99=True))
    assert failures == {}
    assert not loading._latest_held
    assert len(found.parties) == 6


def test_a_site_is_asked_for_its_one_party(monkeypatch, unread):
    loaded(monkeypatch, Together(), seed=None)
    assert not loading._latest_held
