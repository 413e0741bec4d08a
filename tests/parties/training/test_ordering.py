"""The area under the curve, beside scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from parties.training.ordering import auc

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12).map(np.array)


@given(SCORES, SCORES)
def test_it_is_that_of_scikit_learn_with_ties(lower, upper):
    labels = [0] * len(lower) + [1] * len(upper)
    assert auc(lower, upper) == pytest.approx(roc_auc_score(labels, [*lower, *upper]))
    assert auc(upper, lower) == pytest.approx(1 - auc(lower, upper))
