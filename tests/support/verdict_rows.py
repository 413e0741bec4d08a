"""Rows of results.csv with releases and baselines whose worth is known."""

import numpy as np

from scenarios.scores.results import NOBODY

SPLITS = 5


def rows(protocol, metric, by_split, epsilon=np.inf, **others):
    """Rows of results.csv: one for each split and draw."""
    private = np.isfinite(epsilon)
    known = {
        "scenario": "test", "protocol": protocol, "variant": protocol, "default": int(private), "epsilon": epsilon,
        "delta": 0.0, "unit": "party" if private else NOBODY, "metric": metric, **others,
    }  # fmt: skip
    return [
        {**known, "split": split, "noise": draw, "value": float(value)}
        for split, values in enumerate(by_split)
        for draw, value in enumerate(np.atleast_1d(values))
    ]


def beside(constant=0.5, pooled=0.9, individual=0.6, noise_free=None, metric="accuracy", splits=SPLITS):
    """The baselines, the same in all splits; None for one that was not run."""
    known = {"constant": constant, "pooled": pooled, "individual": individual, "noise_free": noise_free}
    return [row for name, value in known.items() if value is not None for row in rows(name, metric, [value] * splits)]


def around(*means):
    """Values of the splits about a mean, or about one of each of several draws."""
    return [[mean + shift for mean in means] for shift in (-0.01, 0.0, 0.01, 0.0, 0.0)]
