"""What a session says where its protocol says nothing else, and sessions that ask all at once."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.contract.session import Asked, OneRound, Session
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.query import ReleaseId
from federation.features.feature_map import FeatureMap
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


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda session: session.guarantee, "Silent does not say what its answers promise"),
        (lambda session: session.perturbable(), "Silent has nothing to perturb"),
        (lambda session: session.learn(0), "Silent learns nothing without noise"),
    ],
)
def test_what_a_session_does_not_say_is_missed_with_its_name(use, words):
    with pytest.raises(InputError, match=f"^{words}; its package must be repaired$"):
        use(Silent())


def test_a_silent_session_checks_nothing_and_has_answers_of_its_own():
    silent = Silent()
    assert (silent.checks, silent.source, silent.diagnostics()) == ((), None, {})


def test_all_is_asked_in_the_first_round_only():
    questions = [asked("first"), asked("second")]
    session = OneRound(NO_STEPS, questions, NOTHING)
    assert session.answers == ["first", "second"]
    assert session.questions() == questions
    assert session.questions() == []
    assert len(questions) == 2  # the caller's list is the caller's


def test_answers_may_be_those_that_another_session_asked_for():
    session = OneRound(NO_STEPS, [asked("own")], NOTHING)
    session.take(("another's",))
    assert session.answers == ["another's"]


def test_it_says_what_it_was_told():
    session = OneRound(NO_STEPS, [asked(None)], NOTHING, ReleaseId("a release", 3, 1), ("all was checked",))
    assert (session.feature_map, session.guarantee, session.checks) == (NO_STEPS, NOTHING, ("all was checked",))
    assert session.source == "a release"
    assert OneRound(NO_STEPS, [], NOTHING).source is None
