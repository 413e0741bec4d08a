import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.features.feature_map import FeatureMap, with_fourier
from federation.features.steps import Affine, UnitNorm
from federation.queries.bags import Bags, EmbeddingsQuestion, JointNoise, NoisyEmbeddingsQuestion, RowsQuestion
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from parties.responses import bags as embeddings
from parties.site.worker import cost_of

BAGGED = Reference("support.bagged:Parties")
UNIT = FeatureMap(3, (UnitNorm(),))
WAVES = with_fourier(UNIT, 1.0, 16, seed=3)
BAGS = Bags(3, 3)


def joint(map_=WAVES, weight=1.0, bags=BAGS, epsilon=1.0, delta=1e-3, name="a world", **known):
    noise, known = JointNoise("gaussian", epsilon, delta), {"draws": 5, "seeded": True, **known}
    return NoisyEmbeddingsQuestion(noise, bags, map_, weight, release=ReleaseId(name), **known)


def cohort(**config):
    return Cohort(BAGGED.to_json(), 0, 2, **{"seed": 5, **config})


def held(party, bag, feature_map):
    holdings = BAGGED.call().holdings(party)
    return feature_map.transform(holdings.rows[holdings.bags == bag])


def test_embeddings_are_the_means_of_the_features_of_each_bag():
    asked = EmbeddingsQuestion(BAGS, WAVES)
    found = answered(cohort(), asked)
    check_submission(asked, found)
    for party in (0, 1):
        for bag in (0, 1):
            expected = held(party, bag, WAVES).mean(axis=0)
            np.testing.assert_allclose(found.arrays["means"][party, bag], expected, atol=1e-14)
    assert not found.arrays["means"][:, 2].any()


def test_rows_are_those_of_each_bag_behind_the_feature_map_filled_up_with_zeros():
    asked = RowsQuestion(BAGS, UNIT, 70)
    found = answered(cohort(), asked)
    check_submission(asked, found)
    np.testing.assert_array_equal(found.arrays["rows"][1, 0, :60], held(1, 0, UNIT))
    assert not found.arrays["rows"][:, :, 60:].any()


def test_a_bag_with_more_rows_than_declared_fails_at_its_party():
    found = answered(cohort(), RowsQuestion(BAGS, UNIT, 59))
    assert len(found.parties) == 0
    assert "60 rows" in found.failures[0]


def test_noisy_embeddings_have_the_noise_of_the_joint_mechanism():
    asked = joint(weight=1.5, draws=4000)
    found = answered(cohort(), asked)
    check_submission(asked, found)
    assert (found.guarantee.unit, found.guarantee.epsilon, found.guarantee.delta) == (Unit.ROW, 1.0, 1e-3)
    sigma = asked.mechanism().parameters["scale"]
    means, counts = found.arrays["means"][0, :, 0], found.arrays["counts"][0, :, 0]
    np.testing.assert_allclose(means.std(axis=0), sigma / 60, rtol=0.1)
    np.testing.assert_allclose(means.mean(axis=0), held(0, 0, WAVES).mean(axis=0), atol=5 * sigma / 60 / 4000**0.5)
    np.testing.assert_allclose(counts.sum(axis=1), 60)
    np.testing.assert_allclose(counts.std(axis=0), sigma / 1.5 * (2 / 3) ** 0.5, rtol=0.1)
    holdings = BAGGED.call().holdings(0)
    true = np.bincount(holdings.labels[holdings.bags == 0], minlength=3)
    np.testing.assert_allclose(counts.mean(axis=0), true, atol=5 * sigma / 1.5 / 4000**0.5)


def test_the_joint_sensitivity_is_what_one_replaced_row_can_move():
    random = np.random.default_rng(0)
    mechanism = joint(weight=1.5).mechanism()
    rows = WAVES.transform(random.normal(scale=9, size=(2000, 3)))
    moved = np.linalg.norm(rows[:1000] - rows[1000:], axis=1)  # of the sum of rows; counts move by sqrt 2
    reach = np.sqrt(2 * 1.5**2 + moved**2)
    assert reach.max() <= mechanism.sensitivity
    assert np.sqrt(2 * 1.5**2 + 4) == pytest.approx(mechanism.sensitivity, rel=1e-5)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.inf, np.nan])
def test_a_weight_out_of_range_is_refused(weight):
    with pytest.raises(InputError, match="label_weight"):
        joint(weight=weight).mechanism()


def test_row_privacy_needs_rows_of_bounded_norm_and_knows_no_persons():
    with pytest.raises(InputError, match="Fourier"):
        answered(cohort(), joint(FeatureMap(3, ())))
    with pytest.raises(InputError, match="persons"):
        answered(cohort(), joint(bags=Bags(3, 3, 2)))


@pytest.mark.parametrize("threshold", [1.0, 2.0, 9.0])
def test_a_map_that_overflows_on_some_rows_does_not_tell_that_there_are_any(threshold):
    """Failing would tell, without noise, whether any row exceeds a threshold of the asker's choice."""
    steep = Affine(np.zeros(3), np.diag([np.finfo(float).max / threshold, 0.0, 0.0]))
    asked = joint(with_fourier(FeatureMap(3, (steep,)), 1.0, 4, seed=1))
    found = answered(cohort(), asked)
    assert found.failures == {}
    check_submission(asked, found)


def test_rows_that_the_map_cannot_take_add_nothing_to_the_sum():
    steep = Affine(np.zeros(3), np.diag([np.finfo(float).max / 2, 0.0, 0.0]))
    waves = with_fourier(FeatureMap(3, (steep,)), 1.0, 4, seed=1)
    means = answered(cohort(), joint(waves, epsilon=1e5, delta=0.1, name="little noise", draws=1)).arrays["means"][
        0, 0, 0
    ]
    holdings = BAGGED.call().holdings(0)
    rows = holdings.rows[holdings.bags == 0]
    taken = rows[np.abs(rows[:, 0]) < 2]
    assert 0 < len(taken) < len(rows)
    np.testing.assert_allclose(means, waves.transform(taken).sum(axis=0) / len(rows), atol=0.02)


def test_rows_of_other_columns_are_named():
    waves = with_fourier(FeatureMap(4, (UnitNorm(),)), 1.0, 4, seed=1)
    found = answered(cohort(), joint(waves))
    assert "3 columns, the feature map takes 4" in found.failures[0]


@pytest.mark.parametrize(
    "question", [EmbeddingsQuestion(BAGS, WAVES), RowsQuestion(BAGS, UNIT, 60)], ids=lambda question: question.kind
)
def test_a_deployed_node_sends_features_only_when_they_are_declared_public(question):
    with pytest.raises(InputError, match="public-features"):
        answered(cohort(seed=None), question)
    assert len(answered(cohort(seed=None, public_features=True, paid=True), question).parties) == 2


def test_a_deployed_party_is_charged_for_noisy_embeddings():
    asked, node = joint(draws=1, seeded=False), cohort(seed=None, paid=True)
    assert cost_of(asked, node).guarantee.epsilon == pytest.approx(asked.noise.epsilon)
    assert len(answered(node, asked).parties) == 2


@pytest.mark.parametrize(("most", "answers"), [(59, 0), (60, 2)])
def test_a_bag_whose_sum_rounds_more_than_is_charged_for_is_refused(monkeypatch, most, answers):
    tiles = []
    monkeypatch.setattr(embeddings, "largest_bag", lambda tile: tiles.append(tile) or most)
    monkeypatch.setattr("parties.responses.rows._LARGEST", 100)  # numbers at a time, of 16 features
    found = answered(cohort(), joint())
    assert (len(found.parties), tiles) == (answers, [6])
    assert all("has 60 rows" in reason and "at most 59" in reason for reason in found.failures.values())


def test_rows_are_summed_alike_whatever_the_map_does_to_one_of_them(monkeypatch):
    """Another way through the rows would take another time, which whoever asks can tell."""
    taken = []
    apply = Affine.apply
    monkeypatch.setattr(Affine, "apply", lambda step, rows: taken.append(rows.shape) or apply(step, rows))
    for largest in (1.0, np.finfo(float).max):
        map_ = with_fourier(FeatureMap(3, (Affine(np.zeros(3), np.diag([largest, 0.0, 0.0])),)), 1.0, 4, seed=1)
        answered(cohort(), joint(map_))
    assert taken[: len(taken) // 2] == taken[len(taken) // 2 :]


def test_a_deployed_node_does_not_tell_by_failing_which_labels_it_holds():
    """Features go out for nothing, so that questions with ever fewer classes would find the largest label."""
    for classes in (1, 2, 3):
        bags = Bags(3, classes)
        for asked in (EmbeddingsQuestion(bags, WAVES), RowsQuestion(bags, UNIT, 60)):
            found = answered(cohort(seed=None, public_features=True, paid=True), asked)
            assert found.failures == {}
            assert found.parties.tolist() == [0, 1]
