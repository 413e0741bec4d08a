"""Which options of `class_ratio` go together.

Diagnostics against numpy's singular values and the spec's own arithmetic.
"""

import itertools
import math

import numpy as np
import pytest
from support.mixtures import skewed
from support.ratio_choices import ESTIMATORS, EXTRA, KERNELS, MEANS, NOISES, ROWS, goes_together

from aggregator.protocols.class_ratio.options import RatioOptions, conditioning
from federation.contract.errors import InputError

WEIGHTED = "estimator: whitened"


@pytest.mark.parametrize(("options", "words"), [
    ({"dimensions": 0}, "dimensions.*0"), ({"dimensions": 7}, "dimensions.*7"), ({"bandwidth": 0.0}, "bandwidth"),
    ({"bandwidth": float("inf")}, "bandwidth"), ({"label_share": 1.0}, "label_share.*0.*1"),
    ({"label_share": float("nan")}, "label_share.*0.*1"),
    ({"noise": "dirichlet_floor"}, "noise: dirichlet_floor needs floor"),
    ({"noise": "dirichlet_floor", "pseudo_count": 5}, "noise: dirichlet_floor needs floor"),
    ({"noise": "dirichlet_floor", "floor": 5, "pseudo_count": 5}, "pseudo_count is for noise: dirichlet_shifted"),
    ({"noise": "dirichlet_floor", "floor": 0}, "floor.*1.*0"),
    ({"noise": "dirichlet_shifted"}, "noise: dirichlet_shifted needs pseudo_count"),
    ({"noise": "dirichlet_shifted", "pseudo_count": -3}, "pseudo_count.*1.*-3"),
    ({"floor": 5}, "floor is for noise: dirichlet_floor"),
    ({"noise": "gaussian", "pseudo_count": 5}, "pseudo_count is for noise: dirichlet_shifted"),
    ({"protect": "row"}, "protect: row needs submit: embedding and noise: gaussian"),
    ({"protect": "row", "noise": "pure"}, "protect: row needs submit: embedding and noise: gaussian"),
    ({"protect": "row", "noise": "gaussian", **ROWS}, "protect: row needs submit: embedding and noise: gaussian"),
    ({"estimator": "mmd"}, "estimator: mmd needs the rows of bags; use submit: rows, or estimator: auto, whitened,"),
    ({"estimator": "energy", "noise": "off"}, "estimator: energy needs the rows of bags"),
    ({"kernel": "nystrom"}, "kernel belongs to submit: rows"),
    ({"kernel": "exact", **ROWS}, f"{WEIGHTED} needs explicit features; use kernel: fourier or nystrom"),
    ({"kernel": "exact", "estimator": "energy", **ROWS}, f"kernel belongs to {WEIGHTED}"),
    ({"kernel": "exact", "bandwidth": 2.0, "estimator": "bag_classifier", **ROWS}, "kernel belongs to estimator"),
    ({"kernel": "nystrom", "bandwidth": 2.0, "estimator": "proportion_svm", **ROWS}, "kernel belongs to estimator"),
    ({"bandwidth": "auto"}, "bandwidth: auto needs the rows of bags; use submit: rows, or give a number"),
    ({"kernel": "exact", "estimator": "regression", **ROWS}, "estimator: regression needs explicit features"),
    ({"kernel": "linear", **ROWS}, "kernel: linear is for estimator: regression"),
    ({"kernel": "linear", "bandwidth": 2.0, "estimator": "regression", **ROWS}, "bandwidth belongs to kernel"),
    ({"kernel": "linear", "dimensions": 64, "estimator": "regression", **ROWS}, "dimensions belongs to estimator"),
    ({"bandwidth": 2.0, "estimator": "auto", **ROWS}, f"bandwidth belongs to {WEIGHTED}"),
    ({"corrected": False, "estimator": "auto"}, f"corrected belongs to {WEIGHTED}"),
    ({"corrected": False, "estimator": "mmd", **ROWS}, f"corrected belongs to {WEIGHTED}, class_means or"),
    ({"label_share": 0.4}, "label_share belongs to protect: row"),
    ({"dimensions": 64, "estimator": "energy", **ROWS}, f"dimensions belongs to {WEIGHTED}"),
    ({"dimensions": 64, "estimator": "proportion_svm", **ROWS}, "dimensions.* or proportion_svm with a bandwidth"),
    ({"dimensions": 64, "estimator": "bag_classifier_em", **ROWS}, f"dimensions belongs to {WEIGHTED}"),
    ({"dimensions": 64, "estimator": "mmd", "kernel": "exact", **ROWS}, f"dimensions belongs to {WEIGHTED}"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(InputError, match=f"^{words}"):
        RatioOptions(**{**MEANS, **options})


def test_all_combinations_are_taken_that_are_promised_and_conditioning_is_that_of_the_proportions():
    combinations = itertools.product(ESTIMATORS, NOISES, ("embedding", "rows"), ("label", "row"), KERNELS)
    taken = 0
    for estimator, noise, submit, protect, kernel in combinations:
        options = {"estimator": estimator, "noise": noise, "submit": submit, "protect": protect, "kernel": kernel}
        options |= EXTRA.get(noise, {})
        if goes_together(estimator, noise, submit, protect, kernel):
            assert RatioOptions(**options).noise == noise
            taken += 1
        else:
            with pytest.raises(InputError):
                RatioOptions(**options)
    assert taken == len(NOISES) * (4 + 2 + 3 + 3 + 3 + 5) + 4
    found = conditioning(skewed(3, 0.1))
    assert found == {"smallest singular value": pytest.approx(0.7), "condition number": pytest.approx(1 / 0.7)}
    assert conditioning(skewed(3, 0.1)[:2]) == {"smallest singular value": 0.0, "condition number": math.inf}
    assert conditioning(np.full((4, 2), 0.5))["smallest singular value"] < 1e-9
    # embeddings; rows: whitened, class_means, regression, mmd, others; row
