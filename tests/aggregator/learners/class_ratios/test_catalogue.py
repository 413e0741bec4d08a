"""Estimators by name: each has its class with defaults, and all of them take and refuse the same parameters.

What is said of bags: each finding by the diagnostics that it follows from, in words that name its numbers.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from aggregator.learners.class_ratios.catalogue import MEAN, NAMES, estimator_class, load, said, verdict
from aggregator.learners.class_ratios.estimator import RatioEstimator
from federation.contract.errors import InputError


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_its_class_with_defaults(name):
    kind = estimator_class(name)
    assert issubclass(kind, RatioEstimator)
    assert kind.name == name
    assert kind().get_params() == kind(**kind().get_params()).get_params()


def test_names_import_no_estimator_strange_descriptions_are_refused_and_a_mixture_is_told_with_its_parts():
    with pytest.raises(InputError, match=r"whitend.*allowed.*auto.*whitened"):
        estimator_class("whitend")
    strange = {"estimator": "mmd", "parameters": {"kernels": 1}, "values": {}}
    for description in ({}, {"estimator": "mmd"}, strange, {"estimator": None}):
        with pytest.raises(InputError, match=r"cannot be read|is not known"):
            load(description, {})
    module = "aggregator.learners.class_ratios.catalogue"
    code = f"import sys, {module}; print({{'sklearn', 'scipy', 'numpy'}} & {{*sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
    errors = {"error_mean_of_bags": 0.4, "error_auto": 0.25}
    told = {"bags": 7.0, **errors, "weight_whitened": 0.3, "weight_regression": 0.7}
    mixed = (
        "so estimators are mixed by how well they predict bags that they have not seen (30 % whitened, 70 % "
        "regression): L1 error 0.25 there, where the mean of the other bags has 0.40"
    )
    assert said({**told, "drift_p_value": 0.001}) == f"these bags differ in more than their ratios, {mixed}"
    assert said({**told, "drift_p_value": 0.1}).startswith("the usual estimator predicts")
    assert said({**told, "weight_regression": 0.0}).count("%") == 1


RNG = np.random.default_rng(4)
BAGS = [RNG.normal(loc, 1.0, size=(40, 3)) for loc in (0.0, 1.0, 2.0)]
SHARES = np.array([[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:bag_classifier_em takes")
@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_numpy_serve_as_those_of_python(name):
    plain = {key: value for key, value in estimator_class(name)().get_params().items() if type(value) in (int, float)}
    same = {key: np.array(value)[()] for key, value in plain.items()}
    estimator, usual = (estimator_class(name)(**numbers).fit(BAGS, SHARES) for numbers in (same, plain))
    np.testing.assert_array_equal(estimator.predict(BAGS[0]), usual.predict(BAGS[0]))
    assert {key: json.loads(json.dumps(estimator.to_arrays()[0]["parameters"]))[key] for key in plain} == plain
    assert estimator.embedding_key()


@pytest.mark.parametrize("name", ["whitened", "class_means", "energy"])
@pytest.mark.parametrize("flag", ["debiased", "corrected"])
@pytest.mark.parametrize("value", ["false", None, 0])
def test_what_is_no_flag_is_not_taken_for_one(name, flag, value):
    with pytest.raises(InputError, match=rf"{flag}.*{value!r}"):
        estimator_class(name)(**{flag: value}).fit(BAGS, SHARES)


@pytest.mark.parametrize("name", ["whitened", "mmd", "bag_classifier"])
def test_sets_that_are_no_arrays_of_numbers_are_refused(name):
    estimator = estimator_class(name)().fit(BAGS, SHARES)
    for rows in (csr_array(BAGS[0]), BAGS[0] + 1j, [["a", "b", "c"]]):
        with pytest.raises(InputError):
            estimator.predict(rows)


@pytest.mark.parametrize(("diagnostics", "found"), [
    ({"bags": 2.0}, "unchecked"), ({f"error_{MEAN}": 0.4, "weight_bag_classifier": 1.0}, "ratios alone"),
    ({f"error_{MEAN}": 0.4, "error_auto": 0.3, f"weight_{MEAN}": 0.5}, "a mixture"),
    ({f"error_{MEAN}": 0.4, f"weight_{MEAN}": 1.0}, "nothing better than the mean"),
])  # fmt: skip
def test_the_verdict_follows_from_what_was_tried(diagnostics, found):
    assert verdict(diagnostics) == found
    assert (said({"bags": 7.0, **diagnostics}) is None) == (found == "ratios alone")
