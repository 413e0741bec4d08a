"""What is said of bags: each finding by the diagnostics that it follows from, in words that name its numbers."""

import pytest

from aggregator.learners.class_ratios.catalogue import MEAN, said, verdict


@pytest.mark.parametrize(
    ("diagnostics", "found"),
    [
        ({"bags": 2.0}, "unchecked"),
        ({f"error_{MEAN}": 0.4, "weight_bag_classifier": 1.0}, "ratios alone"),
        ({f"error_{MEAN}": 0.4, "error_auto": 0.3, f"weight_{MEAN}": 0.5}, "a mixture"),
        ({f"error_{MEAN}": 0.4, f"weight_{MEAN}": 1.0}, "nothing better than the mean"),
    ],
)
def test_the_verdict_follows_from_what_was_tried(diagnostics, found):
    assert verdict(diagnostics) == found
    assert (said({"bags": 7.0, **diagnostics}) is None) == (found == "ratios alone")


def test_a_mixture_is_told_with_its_parts():
    told = {
        "bags": 7.0,
        "error_mean_of_bags": 0.4,
        "error_auto": 0.25,
        "weight_whitened": 0.3,
        "weight_regression": 0.7,
    }
    mixed = (
        "so estimators are mixed by how well they predict bags that they have not seen (30 % whitened, 70 % "
        "regression): L1 error 0.25 there, where the mean of the other bags has 0.40"
    )
    assert said({**told, "drift_p_value": 0.001}) == f"these bags differ in more than their ratios, {mixed}"
    assert said({**told, "drift_p_value": 0.1}).startswith("the usual estimator predicts")
    assert said({**told, "weight_regression": 0.0}).count("%") == 1
