"""What a party adds to bags that are the same at all: shares for every bag, and sums that are exact without them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bagged import counts_of
from support.questions import QUESTIONS
from support.questions import WAVES as QUESTIONS_WAVES

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import FeatureMap, with_fourier
from federation.features.steps import Affine, UnitNorm
from federation.queries.bags import (
    SUM_STEP,
    Bags,
    CountsNoise,
    CountsQuestion,
    EmbeddingsQuestion,
    JointNoise,
    NoisyEmbeddingsQuestion,
    RowsQuestion,
    TotalsNoise,
)
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort, Holdings
from parties.responses.bags import bags_of


def of(labels, bags=None, persons=None, seed=1, **declared):
    labels = np.asarray(labels)
    rows = np.arange(len(labels), dtype=float)[:, None]
    holdings = Holdings(0, rows, labels, bags, persons)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cohort, "provider", SimpleNamespace(holdings=lambda party: holdings))
        return bags_of(Cohort("", 0, 1, seed), 0, Bags(**{"count": 1, "classes": 3, **declared}))


def test_rows_labels_and_counts_are_those_of_their_bag_and_of_a_person_the_first_row_counts():
    found = of([0, 1, 2, 1], bags=np.array([1, 0, 1, 1]), count=2)
    assert found.counts.tolist() == [[0, 1, 0], [1, 1, 1]]
    assert [(bag, rows.ravel().tolist()) for bag, rows in found.each()] == [(0, [1]), (1, [0, 2, 3])]
    found = of([0, 2, 2, 1], count=2)
    assert found.sizes.tolist() == [4, 0]
    assert found.counts.tolist() == [[1, 1, 2], [0, 0, 0]]
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


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bags": np.array([0, 1])}, r"declared.*1"),
        ({"bags": np.array([0, -1])}, "bags"),
        ({"bags": np.array([0.0, 0.5])}, "bags"),
        ({"labels": [0, 3]}, None),
        ({"rows_per_person": 1}, None),
        ({"persons": np.array([5, 5])}, None),  # under label privacy
    ],
)
def test_holdings_out_of_form_are_refused(changes, text):
    with pytest.raises(InputError, match=text):
        of(**{"labels": [0, 1], **changes})
    assert of([0, 1], persons=np.array([5, 6])).sizes.tolist() == [2]


@pytest.mark.parametrize("classes", [1, 2, 3, 4])
def test_a_deployed_party_never_fails_over_a_label_and_tells_its_own_log(classes, caplog):
    """Whoever asks chooses how many classes; a failure would tell for certain that there is a label beyond them."""
    assert of([0, 3, 1], seed=None, classes=classes).counts.sum() == 3
    assert (f"{classes} declared classes" in caplog.text) == (classes < 4)
    assert of([0, 3, 1], seed=None, classes=2).counts.tolist() == [[1, 2]]


@pytest.mark.parametrize("labels", [[0.0, 1.0], [-1, 0], ["a", "b"]])
def test_a_deployed_party_takes_class_codes_only(labels):
    with pytest.raises((InputError, TypeError)):
        of(labels, seed=None)


PARTIES = 4
COUNTS, ROWS = (replace(QUESTIONS[kind], seeded=True, bags=Bags(5, 3)) for kind in ("count_totals", "embedding_totals"))
ROWS = replace(ROWS, label_weight=1.5)
LABELS = replace(ROWS, protect="label", label_weight=0.0)
each = pytest.mark.parametrize("question", [COUNTS, LABELS, ROWS], ids=["counts", "labels", "rows"])


class SomeBags:
    """Party k has rows of the bags k and k + 1 of five, and none has any of the last. Persons have two rows each."""

    def __init__(self, persons: bool = False, odd: bool = False) -> None:
        self._persons, self._odd = persons, odd

    def holdings(self, party: int) -> Holdings:
        random = np.random.default_rng(party)
        rows, bags = random.normal(size=(8, 3)), np.repeat([party % 3, party % 3 + 1], 4)
        if self._odd:
            rows[0, 0] = np.inf
        return Holdings(party, rows, np.arange(8) % 3, bags, np.arange(8) // 2 if self._persons else None)


def cohort(**arguments):
    return Cohort(Reference(f"{__name__}:SomeBags", arguments).to_json(), 0, PARTIES, seed=1)


def off(question):
    return replace(question, noise=TotalsNoise("off"))


def held(**arguments):
    return [SomeBags(**arguments).holdings(party) for party in range(PARTIES)]


def exact(question):
    """Sizes, counts and sums of all parties together, by rows one after the other."""
    sizes, counts, sums = np.zeros(5), np.zeros((5, 3)), np.zeros((5, QUESTIONS_WAVES.dimension))
    for one in held():
        for row, label, bag in zip(QUESTIONS_WAVES.transform(one.rows), one.labels, one.bags, strict=True):
            sizes[bag] += 1
            counts[bag, label] += 1
            sums[bag] += row
    weight = question.label_weight if question is ROWS else 1.0
    return {"sizes": sizes, "counts": weight * counts, "sums": sums}


@each
def test_without_noise_answers_add_up_to_the_bags_of_all_and_draws_are_alike(question):
    found = answered(cohort(), off(question))
    check_submission(off(question), found)
    assert not found.failures
    expected = exact(question)
    for name, array in found.arrays.items():
        total = array.sum(axis=0)
        np.testing.assert_allclose(total.reshape(expected[name].shape), expected[name], atol=PARTIES * SUM_STEP)
    several = replace(off(question), draws=3)
    three = answered(cohort(), several).arrays["counts"]
    np.testing.assert_array_equal(three, np.repeat(found.arrays["counts"], 3, axis=1))
    assert three.shape == (PARTIES, *several.fields()["counts"].shape)


@each
def test_every_bag_has_a_share_of_noise_and_the_sum_is_exact_but_for_shares(question):
    found, bare = answered(cohort(), question), answered(cohort(), off(question))
    assert found.guarantee is None  # a share hides nothing by itself
    numbers = {name: array for name, array in found.arrays.items() if name in ("counts", "sums")}
    hidden = {"counts"} if question is not ROWS else {"counts", "sums"}
    for party in range(PARTIES):
        values = np.concatenate([bare.arrays[name][party].reshape(5, -1) for name in sorted(hidden)], axis=1)
        expected = question.mechanism().release(
            values.ravel(), NoiseBits(1, question.release.key, party), question.draws
        )
        sent = np.concatenate([numbers[name][party].reshape(5, -1) for name in sorted(hidden)], axis=1)
        np.testing.assert_array_equal(sent.ravel(), expected[0])
    of_nobody = found.arrays["counts"][:, :, 4]
    assert of_nobody.any()
    for name in found.arrays.keys() - hidden:
        np.testing.assert_array_equal(found.arrays[name], bare.arrays[name])
    for name, step in question.steps.items():
        np.testing.assert_array_equal(found.arrays[name] / step, np.rint(found.arrays[name] / step))


def test_of_a_persons_rows_so_many_count_as_are_declared():
    """Four persons of two rows in one bag each: one of them counts."""
    found = answered(cohort(persons=True), replace(off(COUNTS), bags=Bags(5, 3, rows_per_person=1)))
    assert found.arrays["sizes"].sum(axis=1).tolist() == [4.0] * PARTIES
    assert found.arrays["counts"].sum(axis=(1, 2, 3)).tolist() == [4.0] * PARTIES
    assert "persons" in str(answered(cohort(persons=True), COUNTS).failures)


def test_a_row_that_is_no_number_or_of_no_bag_tells_of_itself_only_where_that_is_public():
    """Party 2 has rows of the bags 2 and 3, of which two are declared."""
    assert set(answered(cohort(odd=True), LABELS).failures) == set(range(PARTIES))
    assert not answered(cohort(odd=True), ROWS).failures
    fewer = {"bags": Bags(2, 3)}
    assert "declared are 2 bags" in str(answered(cohort(), replace(LABELS, **fewer)).failures[2])
    found = answered(cohort(), replace(off(ROWS), **fewer))
    assert not found.failures
    assert found.arrays["counts"][2, 0].sum(axis=1).tolist() == [0.0, 8.0 * ROWS.label_weight]


def test_rows_of_unbounded_norm_are_refused_where_they_are_protected_and_waves_bound_them(monkeypatch):
    plain = replace(off(ROWS), feature_map=QUESTIONS["rows"].feature_map)
    with pytest.raises(Exception, match="random Fourier features"):
        answered(cohort(), plain)
    behind = replace(off(ROWS), feature_map=with_fourier(QUESTIONS["rows"].feature_map, 0.5, 8, 1))
    assert not answered(cohort(), behind).failures
    monkeypatch.setattr("parties.responses.bags.largest_bag", lambda tile: 7)  # rows that the rounding is charged for
    assert "divide the party" in str(answered(cohort(), ROWS).failures)


BAGGED = Reference("support.bagged:Parties")


def question(noise="gaussian", epsilon=1.0, delta=1e-3, draws=4, seeded=True, name="a world", **known):
    asked = CountsNoise(noise, epsilon, delta, **known)
    return CountsQuestion(asked, Bags(3, 3), release=ReleaseId(name), draws=draws, seeded=seeded)


def counts_cohort(first=0, count=3, **config):
    return Cohort(BAGGED.to_json(), first, count, **{"seed": 5, **config})


def test_answers_are_noisy_counts_that_sum_to_the_public_sizes():
    asked = question(draws=3000)
    found = answered(counts_cohort(count=2), asked)
    check_submission(asked, found)
    assert found.arrays["sizes"].tolist() == [[60, 60, 0]] * 2
    counts = found.arrays["counts"]
    np.testing.assert_allclose(counts.sum(axis=3)[:, :, :2], 60, atol=1e-9)
    assert not counts[:, :, 2].any()
    deviation = counts[:, :, :2].std(axis=1)
    assert deviation.min() > 1
    for party in (0, 1):
        error = counts[party].mean(axis=0)[:2] - counts_of(party)
        assert (np.abs(error) < 5 * deviation[party] / np.sqrt(3000)).all()


@pytest.mark.parametrize("noise", ["off", "published_dirichlet"])
def test_an_answer_promises_what_was_asked_for_and_without_a_guarantee_nothing(noise):
    promised = answered(counts_cohort(), question(epsilon=0.7, delta=1e-4)).guarantee
    assert (promised.epsilon, promised.delta, promised.unit) == (0.7, 1e-4, Unit.LABEL)
    assert answered(counts_cohort(), question("pure", delta=1e-4)).guarantee.delta == 0
    found = answered(counts_cohort(count=1), question(noise, epsilon=0.05, delta=0.05))
    assert found.guarantee is None
    assert (found.arrays["counts"][0, :, :2] == counts_of(0)).all() == (noise == "off")


def test_noise_depends_on_party_and_release_and_not_on_company_and_without_a_seed_on_nothing():
    asked = question()
    alone = [answered(counts_cohort(first, 1), asked).arrays["counts"][0] for first in range(3)]
    np.testing.assert_array_equal(answered(counts_cohort(), asked).arrays["counts"], alone)
    assert not np.array_equal(alone[0], alone[2])
    other = answered(counts_cohort(0, 1), question(name="another world")).arrays["counts"][0]
    assert not np.array_equal(alone[0], other)
    first, second = (answered(counts_cohort(), question(seeded=False)).arrays["counts"] for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"noise": "dirichlet_floor", "floor": 20}, None),
        ({"noise": "published_dirichlet", "epsilon": 0.05, "delta": 0.05}, "guarantee"),
    ],
)
def test_noise_that_only_a_simulation_may_ask_for_is_refused(changes, text):
    with pytest.raises(InputError, match=text):
        answered(counts_cohort(seed=None, paid=True), question(draws=1, seeded=False, **changes))


UNIT = FeatureMap(3, (UnitNorm(),))
WAVES = with_fourier(UNIT, 1.0, 16, seed=3)
BAGS = Bags(3, 3)


def joint(map_=WAVES, weight=1.0, bags=BAGS, epsilon=1.0, delta=1e-3, name="a world", **known):
    noise, known = JointNoise("gaussian", epsilon, delta), {"draws": 5, "seeded": True, **known}
    return NoisyEmbeddingsQuestion(noise, bags, map_, weight, release=ReleaseId(name), **known)


def embeddings_held(party, bag, feature_map):
    holdings = BAGGED.call().holdings(party)
    return feature_map.transform(holdings.rows[holdings.bags == bag])


def test_embeddings_are_the_means_of_the_features_of_each_bag():
    asked = EmbeddingsQuestion(BAGS, WAVES)
    found = answered(counts_cohort(count=2), asked)
    check_submission(asked, found)
    for party in (0, 1):
        for bag in (0, 1):
            expected = embeddings_held(party, bag, WAVES).mean(axis=0)
            np.testing.assert_allclose(found.arrays["means"][party, bag], expected, atol=1e-14)
    assert not found.arrays["means"][:, 2].any()


def test_rows_are_those_of_each_bag_behind_the_feature_map_filled_up_with_zeros():
    asked = RowsQuestion(BAGS, UNIT, 70)
    found = answered(counts_cohort(count=2), asked)
    check_submission(asked, found)
    np.testing.assert_array_equal(found.arrays["rows"][1, 0, :60], embeddings_held(1, 0, UNIT))
    assert not found.arrays["rows"][:, :, 60:].any()
    fewer = answered(counts_cohort(count=2), RowsQuestion(BAGS, UNIT, 59))
    assert len(fewer.parties) == 0
    assert "60 rows" in fewer.failures[0]


def test_noisy_embeddings_have_the_noise_of_the_joint_mechanism():
    asked = joint(weight=1.5, draws=4000)
    found = answered(counts_cohort(count=2), asked)
    check_submission(asked, found)
    assert (found.guarantee.unit, found.guarantee.epsilon, found.guarantee.delta) == (Unit.ROW, 1.0, 1e-3)
    sigma = asked.mechanism().parameters["scale"]
    means, counts = found.arrays["means"][0, :, 0], found.arrays["counts"][0, :, 0]
    np.testing.assert_allclose(means.std(axis=0), sigma / 60, rtol=0.1)
    np.testing.assert_allclose(
        means.mean(axis=0), embeddings_held(0, 0, WAVES).mean(axis=0), atol=5 * sigma / 60 / 4000**0.5
    )
    np.testing.assert_allclose(counts.sum(axis=1), 60)
    np.testing.assert_allclose(counts.std(axis=0), sigma / 1.5 * (2 / 3) ** 0.5, rtol=0.1)
    holdings = BAGGED.call().holdings(0)
    true = np.bincount(holdings.labels[holdings.bags == 0], minlength=3)
    np.testing.assert_allclose(counts.mean(axis=0), true, atol=5 * sigma / 1.5 / 4000**0.5)


def test_row_privacy_needs_rows_of_bounded_norm_and_weights_in_range_and_knows_no_persons():
    with pytest.raises(InputError):
        answered(counts_cohort(count=2), joint(FeatureMap(3, ())))
    with pytest.raises(InputError, match="persons"):
        answered(counts_cohort(count=2), joint(bags=Bags(3, 3, 2)))
    for weight in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match="label_weight"):
            joint(weight=weight).mechanism()


@pytest.mark.parametrize("threshold", [1.0, 2.0, 9.0])
def test_a_map_that_overflows_on_some_rows_does_not_tell_that_there_are_any(threshold):
    """Failing would tell, without noise, whether any row exceeds a threshold of the asker's choice."""
    steep = Affine(np.zeros(3), np.diag([np.finfo(float).max / threshold, 0.0, 0.0]))
    asked = joint(with_fourier(FeatureMap(3, (steep,)), 1.0, 4, seed=1))
    found = answered(counts_cohort(count=2), asked)
    assert found.failures == {}
    check_submission(asked, found)


def test_rows_that_the_map_cannot_take_add_nothing_to_the_sum_and_those_of_other_columns_are_named():
    steep = Affine(np.zeros(3), np.diag([np.finfo(float).max / 2, 0.0, 0.0]))
    waves = with_fourier(FeatureMap(3, (steep,)), 1.0, 4, seed=1)
    asked = joint(waves, epsilon=1e5, delta=0.1, name="little noise", draws=1)
    means = answered(counts_cohort(count=2), asked).arrays["means"][0, 0, 0]
    holdings = BAGGED.call().holdings(0)
    rows = holdings.rows[holdings.bags == 0]
    taken = rows[np.abs(rows[:, 0]) < 2]
    assert 0 < len(taken) < len(rows)
    np.testing.assert_allclose(means, waves.transform(taken).sum(axis=0) / len(rows), atol=0.02)
    waves = with_fourier(FeatureMap(4, (UnitNorm(),)), 1.0, 4, seed=1)
    found = answered(counts_cohort(count=2), joint(waves))
    assert "3 columns, the feature map takes 4" in found.failures[0]


@pytest.mark.parametrize(("most", "answers"), [(59, 0), (60, 2)])
def test_a_bag_whose_sum_rounds_more_than_is_charged_for_is_refused(monkeypatch, most, answers):
    tiles = []
    monkeypatch.setattr("parties.responses.bags.largest_bag", lambda tile: tiles.append(tile) or most)
    monkeypatch.setattr("parties.responses.rows._LARGEST", 100)  # numbers at a time, of 16 features
    found = answered(counts_cohort(count=2), joint())
    assert (len(found.parties), tiles) == (answers, [6])
    assert all("has 60 rows" in reason and "at most 59" in reason for reason in found.failures.values())


def test_rows_are_summed_alike_whatever_the_map_does_to_one_of_them(monkeypatch):
    """Another way through the rows would take another time, which whoever asks can tell."""
    taken = []
    apply = Affine.apply
    monkeypatch.setattr(Affine, "apply", lambda step, rows: taken.append(rows.shape) or apply(step, rows))
    for largest in (1.0, np.finfo(float).max):
        map_ = with_fourier(FeatureMap(3, (Affine(np.zeros(3), np.diag([largest, 0.0, 0.0])),)), 1.0, 4, seed=1)
        answered(counts_cohort(count=2), joint(map_))
    assert taken[: len(taken) // 2] == taken[len(taken) // 2 :]


def test_a_deployed_node_does_not_tell_by_failing_which_labels_it_holds():
    """Features go out for nothing, so that questions with ever fewer classes would find the largest label."""
    for classes in (1, 2, 3):
        bags = Bags(3, classes)
        for asked in (EmbeddingsQuestion(bags, WAVES), RowsQuestion(bags, UNIT, 60)):
            found = answered(counts_cohort(count=2, seed=None, public_features=True, paid=True), asked)
            assert found.failures == {}
            assert found.parties.tolist() == [0, 1]
