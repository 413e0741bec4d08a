"""Hostile parties are accepted, do the harm that they are there for, and do not any more."""

import numpy as np
import pytest
from support.two_class_questions import marginals, moment

from benchmarks.hostile.__main__ import SETTINGS, Trials, score
from benchmarks.hostile.parties import TARGETS
from federation.contract.query import Submission

ONCE = Trials(1, 1, None)


def test_one_of_twenty_turns_a_model_and_with_bounds_does_not():
    setting = SETTINGS["cancer-20-10"]
    assert score(setting, 1, "sign", ONCE) > 0.9
    assert score(setting, 1, "sign", ONCE, robust=False) < 0.6


@pytest.mark.parametrize("question", [moment("gaussian"), marginals("gaussian")], ids=["sums", "marginals"])
def test_what_is_added_to_nothing_is_seen_in_full(question):
    target = TARGETS[type(question)](question, 50)
    own = {name: np.zeros((1, *field.shape)) + max(field.minimum, 0.0) for name, field in question.fields().items()}
    nothing = target.nothing(own)
    by = 10.0 * np.arange(nothing[[*nothing][-1]].shape[-1])
    sent = target.moved(nothing, by)
    assert target.collector().add(Submission(question.kind, np.zeros(1, np.int64), sent, question.promise())) == {}
    np.testing.assert_allclose(target.seen(sent) - target.seen(nothing), by)
