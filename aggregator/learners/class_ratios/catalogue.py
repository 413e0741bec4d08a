"""The estimators of class ratios by name, imported when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from federation.contract.errors import InputError, nearest_name
from federation.contract.plugins import Reference

if TYPE_CHECKING:
    import numpy as np

    from aggregator.learners.class_ratios.estimator import RatioEstimator

_TARGETS = {
    "auto": "aggregator.learners.class_ratios.auto:AutoRatios",
    "whitened": "aggregator.learners.class_ratios.class_means:WhitenedMeans",
    "class_means": "aggregator.learners.class_ratios.class_means:ClassMeans",
    "mmd": "aggregator.learners.class_ratios.mmd:MMD",
    "energy": "aggregator.learners.class_ratios.class_means:EnergyMeans",
    "regression": "aggregator.learners.class_ratios.distribution_regression:DistributionRegression",
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
