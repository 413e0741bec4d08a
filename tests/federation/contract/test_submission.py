import numpy as np
import pytest

from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.query import Field, Submission, check_submission
from federation.queries.votes import Training, VotesQuestion


@pytest.fixture
def question(public):
    return VotesQuestion(Training(fit(["unit_norm"], public.rows), 3, {}, 0), public.rows)


def votes(question, parties=2, dtype=np.uint8, width=None):
    return np.zeros((parties, width or len(question.rows)), dtype=dtype)


def test_a_proper_submission_passes(question):
    check_submission(question, Submission("votes", np.array([0, 5]), {"votes": votes(question)}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(kind="other"), "votes"),
        (dict(arrays={}), "carries"),
        (dict(parties=np.array([3, 3])), "twice"),
        (dict(parties=np.array([-1, 3])), "integers >= 0"),
        (dict(parties=np.array([0.0, 3.0])), "integers >= 0"),
    ],
)
def test_malformed_submissions_are_refused(question, change, words):
    fields = {"kind": "votes", "parties": np.array([0, 1]), "arrays": {"votes": votes(question)}, **change}
    with pytest.raises(InputError, match=words):
        check_submission(question, Submission(**fields))


def test_probability_votes_are_refused_where_classes_are_asked(question):
    shares = np.full((2, len(question.rows)), 0.5)
    with pytest.raises(InputError, match="uint8"):
        check_submission(question, Submission("votes", np.array([0, 1]), {"votes": shares}))


def test_votes_for_other_rows_are_refused(question):
    short = votes(question, width=len(question.rows) - 1)
    with pytest.raises(InputError, match="shape"):
        check_submission(question, Submission("votes", np.array([0, 1]), {"votes": short}))


def test_invalid_entries_are_found_by_party():
    classes = Field((3,), levels=3)
    assert classes.invalid(np.array([[0, 1, 2], [0, 3, 0]], dtype=np.uint8)).tolist() == [False, True]
    share = Field((2,), minimum=0.0, maximum=1.0)
    assert share.invalid(np.array([[0, 1], [0.5, np.nan], [-0.1, 0], [2, 0]])).tolist() == [False, True, True, True]


def test_a_submission_shows_shapes_only(question):
    shown = repr(Submission("votes", np.array([0]), {"votes": votes(question, 1)}))
    assert "(1, 120)" in shown
    assert "array" not in shown
