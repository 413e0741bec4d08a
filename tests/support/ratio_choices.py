"""The options of `class_ratio` that are words, and which of them go together."""

from typing import get_args, get_type_hints

from aggregator.protocols.class_ratio.options import RatioOptions

_TYPES = get_type_hints(RatioOptions)
ESTIMATORS, NOISES, KERNELS = (get_args(_TYPES[name]) for name in ("estimator", "noise", "kernel"))
OF_MEANS = ("whitened", "class_means")
EXTRA = {"dirichlet_floor": {"floor": 30}, "dirichlet_shifted": {"pseudo_count": 30}}
MEANS = {"estimator": "whitened", "submit": "embedding"}
ROWS = {"submit": "rows"}


def goes_together(estimator, noise, submit, protect, kernel):
    """As the docstring of the options has it."""
    kernelled = estimator in (*OF_MEANS, "mmd", "regression")
    return (
        (submit == "rows" or estimator in (*OF_MEANS, "regression", "auto"))
        and (protect == "label" or (submit == "embedding" and noise == "gaussian"))
        and (kernel == "fourier" or (submit == "rows" and kernelled))
        and not (estimator in ("whitened", "regression") and kernel == "exact")
        and (kernel != "linear" or estimator == "regression")
    )
