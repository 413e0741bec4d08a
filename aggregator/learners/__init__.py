"""Estimators that are usable on their own, as objects of scikit-learn, and the mathematics below them."""

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "weighted_erm": "WeightedERM",
        "class_ratios.auto": "AutoRatios",
        "class_ratios.bag_classifier": "BagClassifier BagClassifierEM",
        "class_ratios.class_means": "ClassMeans EnergyMeans WhitenedMeans",
        "class_ratios.kernel_means": "DistributionRegression MMD",
        "class_ratios.drift": "ratio_intervals=intervals",
        "class_ratios.proportion_svm": "ProportionSVM",
        "bag_regression.linear": "BagLeastSquares",
        "bag_regression.network": "BagNetwork",
        "mean_operators.classifiers": "MeanOperatorClassifier NoisyLabelClassifier ProportionClassifier",
        "mean_operators.moments": "laplacian_mean_map mean_map",
        "error_marginals.learner": "ErrorMarginalsLearner",
        "error_marginals.estimation": "ExchangeSettings",
        "linear_odd.losses": "linear_odd_loss=loss require_linear_odd",
        "linear_odd.minimiser": "minimise_linear_odd",
        "kernels.features": "kernel",
        "kernels.exact": "median_squared_distance",
    },
)
__all__ = _PUBLIC.all
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
