"""The area under the curve, beside scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from parties.training.training import auc

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12).map(np.array)


@given(SCORES, SCORES)
def test_it_is_that_of_scikit_learn_with_ties(lower, upper):
    labels = [0] * len(lower) + [1] * len(upper)
    assert auc(lower, upper) == pytest.approx(roc_auc_score(labels, [*lower, *upper]))
    assert auc(upper, lower) == pytest.approx(1 - auc(lower, upper))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1), st.integers(1, 4)), min_size=1, max_size=12))
def test_copies_count_as_if_scores_were_there_as_often(known):
    known = np.array([*known, (0, 0, 1), (1, 1, 2)])
    sides = [known[known[:, 1] == side] for side in (0, 1)]
    found = auc(*(side[:, 0].astype(float) for side in sides), tuple(side[:, 2] for side in sides))
    assert found == auc(*(np.repeat(side[:, 0], side[:, 2]).astype(float) for side in sides))
    assert found == pytest.approx(roc_auc_score(known[:, 1], known[:, 0], sample_weight=known[:, 2]))
