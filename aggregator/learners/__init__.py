"""Estimators that are usable on their own, as objects of scikit-learn, and the mathematics below them."""

from typing import Any

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "weighted_erm": "WeightedERM",
        "class_ratios.auto": "AutoRatios",
        "class_ratios.bag_classifier": "BagClassifier BagClassifierEM",
        "class_ratios.class_means": "ClassMeans EnergyMeans WhitenedMeans",
        "class_ratios.distribution_regression": "DistributionRegression",
        "class_ratios.intervals": "ratio_intervals=intervals",
        "class_ratios.mmd": "MMD",
        "class_ratios.proportion_svm": "ProportionSVM",
        "bag_regression.least_squares": "BagLeastSquares",
        "bag_regression.network": "BagNetwork",
        "mean_operators.classifier": "MeanOperatorClassifier",
        "mean_operators.mean_map": "laplacian_mean_map mean_map",
        "mean_operators.noisy_label_classifier": "NoisyLabelClassifier",
        "mean_operators.proportion_classifier": "ProportionClassifier",
        "error_marginals.learner": "ErrorMarginalsLearner",
        "error_marginals.exchange_settings": "ExchangeSettings",
        "linear_odd.catalogue": "linear_odd_loss=loss require_linear_odd",
        "linear_odd.minimiser": "minimise_linear_odd",
        "kernels.catalogue": "kernel",
        "kernels.distances": "median_squared_distance",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
