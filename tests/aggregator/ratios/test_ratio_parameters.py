"""Parameters of estimators: NumPy's numbers are numbers, flags are flags, and sets are arrays of numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from aggregator.learners.class_ratios.catalogue import NAMES, estimator_class
from federation.contract.errors import InputError

RNG = np.random.default_rng(4)
BAGS = [RNG.normal(loc, 1.0, size=(40, 3)) for loc in (0.0, 1.0, 2.0)]
SHARES = np.array([[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]])


@pytest.mark.filterwarnings("ignore:bag_classifier_em takes")
@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_numpy_serve_as_those_of_python(name):
    plain = {key: value for key, value in estimator_class(name)().get_params().items() if type(value) in (int, float)}
    same = {key: np.array(value)[()] for key, value in plain.items()}
    estimator = estimator_class(name)(**same).fit(BAGS, SHARES)
    np.testing.assert_array_equal(
        estimator.predict(BAGS[0]), estimator_class(name)(**plain).fit(BAGS, SHARES).predict(BAGS[0])
    )
    assert {key: json.loads(json.dumps(estimator.to_arrays()[0]["parameters"]))[key] for key in plain} == plain
    assert estimator.embedding_key()


@pytest.mark.parametrize("name", ["whitened", "class_means", "energy"])
@pytest.mark.parametrize("flag", ["debiased", "corrected"])
@pytest.mark.parametrize("value", ["false", None, 0])
def test_what_is_no_flag_is_not_taken_for_one(name, flag, value):
    with pytest.raises(InputError, match=f"{flag} must be True or False, got {value!r}"):
        estimator_class(name)(**{flag: value}).fit(BAGS, SHARES)


@pytest.mark.parametrize("name", ["whitened", "mmd", "bag_classifier"])
def test_sets_that_are_no_arrays_of_numbers_are_refused(name):
    estimator = estimator_class(name)().fit(BAGS, SHARES)
    for rows, message in (
        (csr_array(BAGS[0]), "a set must be a dense array"),
        (BAGS[0] + 1j, "a set must be real numbers"),
        ([["a", "b", "c"]], "a set must be an array of numbers"),
    ):
        with pytest.raises(InputError, match=message):
            estimator.predict(rows)
