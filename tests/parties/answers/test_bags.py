import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.queries.bags import Bags
from parties.party_data.cohort import Cohort, Holdings
from parties.responses.bags import bags_of


class _Provider:
    def __init__(self, holdings):
        self._holdings = holdings

    def holdings(self, party):
        return self._holdings

    def evaluation(self):
        return None


class _Cohort(Cohort):
    """A cohort whose provider is given, not loaded."""

    def __init__(self, holdings, seed):
        super().__init__("", 0, 1, seed)
        object.__setattr__(self, "_given", _Provider(holdings))

    @property
    def provider(self):
        return self._given


def of(labels, bags=None, persons=None, seed=1, **declared):
    labels = np.asarray(labels)
    rows = np.arange(len(labels), dtype=float)[:, None]
    holdings = Holdings(0, rows, labels, bags, persons)
    return bags_of(_Cohort(holdings, seed), 0, Bags(**{"count": 1, "classes": 3, **declared}))


def test_without_bags_all_rows_lie_in_the_first():
    found = of([0, 2, 2, 1], count=2)
    assert found.sizes.tolist() == [4, 0]
    assert found.counts.tolist() == [[1, 1, 2], [0, 0, 0]]


def test_rows_labels_and_counts_are_those_of_their_bag():
    found = of([0, 1, 2, 1], bags=np.array([1, 0, 1, 1]), count=2)
    assert found.counts.tolist() == [[0, 1, 0], [1, 1, 1]]
    assert [(bag, rows.ravel().tolist()) for bag, rows in found.each()] == [(0, [1]), (1, [0, 2, 3])]


def test_of_a_person_the_first_row_of_each_bag_counts_in_its_first_bags():
    persons = np.array([7, 7, 7, 7, 8, 8])
    bags = np.array([0, 0, 1, 2, 2, 0])
    found = of([0, 1, 2, 0, 1, 2], bags=bags, persons=persons, count=3, rows_per_person=2)
    assert found.rows.ravel().tolist() == [0, 2, 4, 5]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_what_counts_of_a_person_depends_on_no_label(places, most, random):
    persons, bags = (np.array(part) for part in zip(*places, strict=True))
    first = of([0] * len(places), bags=bags, persons=persons, count=4, rows_per_person=most)
    labels = [random.randrange(3) for _ in places]
    second = of(labels, bags=bags, persons=persons, count=4, rows_per_person=most)
    assert first.rows.tolist() == second.rows.tolist()
    held = [(persons[int(row)], bags[int(row)]) for row in first.rows.ravel()]
    assert len(set(held)) == len(held)
    assert max(sum(person == p for person, _ in held) for p in persons) <= most


def test_rows_of_one_person_are_refused_under_label_privacy():
    with pytest.raises(InputError, match="one person"):
        of([0, 1], persons=np.array([5, 5]))
    assert of([0, 1], persons=np.array([5, 6])).sizes.tolist() == [2]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bags": np.array([0, 1])}, "declared are 1 bags"),
        ({"bags": np.array([0, -1])}, "bags must be"),
        ({"bags": np.array([0.0, 0.5])}, "bags must be"),
        ({"labels": [0, 3]}, "class code"),
        ({"rows_per_person": 1}, "name their column"),
    ],
)
def test_holdings_out_of_form_are_refused(changes, text):
    with pytest.raises(InputError, match=text):
        of(**{"labels": [0, 1], **changes})


def test_features_that_are_not_finite_are_refused_where_nothing_hides_them():
    cohort = _Cohort(Holdings(0, np.array([[np.inf], [1.0]]), np.array([0, 1])), 1)
    with pytest.raises(InputError, match="infinite features"):
        bags_of(cohort, 0, Bags(1, 2))
    assert bags_of(cohort, 0, Bags(1, 2), private_rows=True).sizes.tolist() == [2]


@pytest.mark.parametrize("classes", [1, 2, 3, 4])
def test_a_deployed_party_never_fails_over_a_label(classes):
    """Whoever asks chooses how many classes; a failure would tell for certain that there is a label beyond them."""
    assert of([0, 3, 1], seed=None, classes=classes).counts.sum() == 3
    assert of([0, 3, 1], seed=None, classes=2).counts.tolist() == [[1, 2]]


def test_a_deployed_party_tells_its_own_log_of_labels_that_nobody_declared(caplog):
    of([0, 1], seed=None, classes=2)
    assert caplog.records == []
    of([0, 2], seed=None, classes=2)
    assert "2 declared classes" in caplog.text


@pytest.mark.parametrize("labels", [[0.0, 1.0], [-1, 0], ["a", "b"]])
def test_a_deployed_party_takes_class_codes_only(labels):
    with pytest.raises((InputError, TypeError)):
        of(labels, seed=None)
