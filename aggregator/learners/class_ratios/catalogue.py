"""The estimators of class ratios by name, imported on first use, and the verdicts on `AutoRatios`.

The module is light to import, so that every report can read the diagnostics of `AutoRatios`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from federation.contract.errors import InputError, nearest_name
from federation.contract.plugins import Reference

if TYPE_CHECKING:
    import numpy as np

    from aggregator.learners.class_ratios.estimator import RatioEstimator

_TARGETS = {
    "auto": "aggregator.learners.class_ratios.auto:AutoRatios",
    "whitened": "aggregator.learners.class_ratios.class_means:WhitenedMeans",
    "class_means": "aggregator.learners.class_ratios.class_means:ClassMeans",
    "mmd": "aggregator.learners.class_ratios.kernel_means:MMD",
    "energy": "aggregator.learners.class_ratios.class_means:EnergyMeans",
    "regression": "aggregator.learners.class_ratios.kernel_means:DistributionRegression",
    "bag_classifier": "aggregator.learners.class_ratios.bag_classifier:BagClassifier",
    "bag_classifier_em": "aggregator.learners.class_ratios.bag_classifier:BagClassifierEM",
    "proportion_svm": "aggregator.learners.class_ratios.proportion_svm:ProportionSVM",
}
NAMES = tuple(_TARGETS)


def estimator_class(name: str) -> type[RatioEstimator]:
    """The class of that name. Raises `InputError` for a name that is not in `NAMES`.

    Examples:
        >>> estimator_class("mmd").__name__
        'MMD'
    """
    if name not in _TARGETS:
        raise InputError(f"estimator '{name}' is not known; allowed: {', '.join(NAMES)}" + nearest_name(name, NAMES))
    found: type[RatioEstimator] = Reference(_TARGETS[name]).load()
    return found


def load(description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> RatioEstimator:
    """The fitted estimator that `RatioEstimator.to_arrays` described. Raises `InputError` for what nobody described."""
    try:
        return estimator_class(description["estimator"]).from_arrays(description, arrays)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the description of an estimator cannot be read: {error!r}; write it again") from error


Verdict = Literal["ratios alone", "a mixture", "nothing better than the mean", "unchecked"]

MEAN = "mean_of_bags"  # the candidate that looks at no row

SIGNIFICANT = 0.01  # below it bags drift; no p of 48 simulated worlds without drift was


def verdict(diagnostics: Mapping[str, float]) -> Verdict:
    """What `AutoRatios` came to, by its diagnostics."""
    if f"error_{MEAN}" not in diagnostics:
        return "unchecked"
    if diagnostics.get(f"weight_{MEAN}") == 1:
        return "nothing better than the mean"
    return "a mixture" if "error_auto" in diagnostics else "ratios alone"


def said(diagnostics: Mapping[str, float]) -> str | None:
    """What `AutoRatios` warns of, in words, by its diagnostics; None where there is no reason.

    Examples:
        >>> said({"bags": 2.0, "weight_bag_classifier": 1.0})
        'whether bags differ in more than their class ratios cannot be checked with 2 bags; give at least two more
        than there are classes, and several that hold each class'
    """
    found, bags = verdict(diagnostics), round(diagnostics["bags"])
    if found == "ratios alone":
        return None
    if found == "unchecked":
        return (
            f"whether bags differ in more than their class ratios cannot be checked with {bags} bags; give at least "
            "two more than there are classes, and several that hold each class"
        )
    mean = diagnostics[f"error_{MEAN}"]
    why = (
        "these bags differ in more than their ratios"
        if diagnostics.get("drift_p_value", 1.0) < SIGNIFICANT
        else "the usual estimator predicts the ratios of these bags no better than the mean of the others does"
    )
    if found == "nothing better than the mean":
        least = f"nothing predicts them better than the mean of the others (L1 error {mean:.2f})"
        return f"{why}, and {least}, which is the answer for every set"
    weights = {name.removeprefix("weight_"): value for name, value in diagnostics.items() if name.startswith("weight_")}
    parts = ", ".join(f"{100 * weight:.0f} % {name}" for name, weight in weights.items() if round(100 * weight))
    return (
        f"{why}, so estimators are mixed by how well they predict bags that they have not seen ({parts}): L1 error "
        f"{diagnostics['error_auto']:.2f} there, where the mean of the other bags has {mean:.2f}"
    )
