"""What a session says where its protocol says nothing else, and sessions that ask all at once."""

import numpy as np
import pytest

from aggregator.contract.session import Asked, LinearScores, OneRound, Outlook, Session, told
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.query import ReleaseId
from federation.features.feature_map import FeatureMap
from federation.numerics.rows import contrasts
from federation.queries.votes import Training, VotesQuestion

NO_STEPS = FeatureMap(2, ())
TRAINING = Training(NO_STEPS, 2, {}, 0)
NOTHING = NoGuarantee("noise is off")


class Silent(Session):
    """Says only what every session must."""

    feature_map = NO_STEPS

    def questions(self):
        return []

    def take(self, answers):
        raise AssertionError("nobody answers")


def asked(collector):
    return Asked(VotesQuestion(TRAINING, np.ones((3, 2))), TRAINING, collector)


def test_what_a_session_does_not_say_is_missed_and_all_is_asked_in_the_first_round_only():
    silent = Silent()
    assert (silent.checks, silent.source, silent.diagnostics()) == ((), None, {})
    for use, words in (
        (lambda: silent.guarantee, "Silent does not say what its answers promise"),
        (silent.perturbable, "Silent has nothing to perturb"),
        (lambda: silent.learn(0), "Silent learns nothing without noise"),
    ):
        with pytest.raises(InputError, match=words):
            use()
    questions = [asked("first"), asked("second")]
    session = OneRound(NO_STEPS, questions, NOTHING, ReleaseId("a release", 3, 1))
    assert session.answers == ["first", "second"]
    assert session.questions() == questions
    assert session.questions() == []
    assert len(questions) == 2  # the caller's list is the caller's
    session.take(("another's",))  # answers may be those that another session asked for
    assert session.answers == ["another's"]
    assert (session.feature_map, session.guarantee, session.checks) == (NO_STEPS, NOTHING, ())
    assert session.source == "a release"
    assert OneRound(NO_STEPS, [], NOTHING).source is None


def test_variants_of_which_the_same_is_to_be_said_share_a_line_with_epsilons_in_order():
    few, other = {1.0: Outlook(0.5, 40)}, {1.0: Outlook(2.0, 40)}
    lines = list(told({"a": few, "b": other, "c": dict(few)}, 5))
    assert [line.split(":")[0] for line in lines] == ["a, c", "b"]
    assert all("a constant answer may be as good" in line for line in lines)  # warnings, be the noise ever so loud
    assert ["louder than all that 5 parties" in line for line in lines] == [True, False]
    assert list(told({"a": {1.0: Outlook(4.0, 3)}, "b": {}}, 5)) == []  # the signal is loud, or no rule is known
    [line] = told({"a": {0.1: Outlook(0.01, 4000), 0.3: Outlook(0.03, 1200), 3.0: Outlook(3.5, 120)}}, 100)
    assert "epsilon 0.1, 0.3 the noise" in line
    assert "about 4000, 1200 parties" in line
    assert line.endswith(
        "at epsilon 3 a constant answer may be as good (signal to noise 3.5); to count on more it takes about 120 "
        "parties"
    )


@pytest.mark.parametrize(
    ("mixing", "blocks"), [(contrasts(2), 1), (contrasts(4), 3), (np.eye(3), 3), (np.array([[-0.5], [0.5]]), 1)]
)
def test_linear_scores_spread_as_independent_noise_per_class_would(mixing, blocks, rng):
    """The covariance of the differences of a row's scores, against noise drawn in the value."""
    features = rng.normal(size=(5, 3))
    scores = LinearScores.of_features(features, mixing, np.ones(3))
    variances = np.array([0.5, 1.0, 2.0])
    noise = rng.normal(size=(20_000, blocks, 3)) * np.sqrt(variances)
    moved = np.einsum("nr,sbr,cb->snc", features, noise, mixing)
    np.testing.assert_allclose(moved[0], scores.of(noise[0].ravel()), atol=1e-12)
    differences = moved[..., 1:] - moved[..., :1]
    for row in range(5):
        covariance = np.cov(differences[:, row].T).reshape(len(mixing) - 1, len(mixing) - 1)
        expected = scores.spread(variances)[row] ** 2 * (np.eye(len(mixing) - 1) + 1)
        np.testing.assert_allclose(covariance, expected, rtol=0.1, atol=0.05 * expected.max())
