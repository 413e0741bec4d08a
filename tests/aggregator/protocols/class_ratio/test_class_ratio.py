"""Which options of `class_ratio` go together, and that all that do go together lead to an estimator."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from support.bagged import draw
from support.worlds import run

from aggregator.contract.protocol import Trust
from aggregator.protocols.class_ratio.class_ratio import ClassRatio
from aggregator.releases.ratio_models import ReleasedRatios
from aggregator.world.plan import VariantPlan
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.question import ReleaseId
from federation.contract.reference import Reference
from federation.grids.launch import open_grid
from federation.questions.bags import Bags, CountsNoise, CountsQuestion
from scenarios.settings.protocol_options import Protocol

_TYPES = get_type_hints(ClassRatio)
ESTIMATORS, NOISES, KERNELS = (get_args(_TYPES[name]) for name in ("estimator", "noise", "kernel"))
OF_MEANS = ("whitened", "class_means")
EXTRA = {"dirichlet_floor": {"floor": 30}, "dirichlet_shifted": {"pseudo_count": 30}}
MEANS = {"estimator": "whitened", "submit": "embedding"}
ROWS = {"submit": "rows"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dimensions": 0}, "dimensions must be an even number from 2 to 100000, got 0"),
        ({"dimensions": 7}, "dimensions must be an even number from 2 to 100000, got 7"),
        ({"bandwidth": 0.0}, "bandwidth must be a positive number"),
        ({"bandwidth": float("inf")}, "bandwidth must be a positive number"),
        ({"ridge": -1.0}, "ridge must be a positive number"),
        ({"ridge": float("nan")}, "ridge must be a positive number"),
        ({"label_share": 1.0}, "label_share must lie between 0 and 1"),
        ({"label_share": float("nan")}, "label_share must lie between 0 and 1"),
        ({"noise": "dirichlet_floor"}, "noise: dirichlet_floor needs floor"),
        ({"noise": "dirichlet_floor", "pseudo_count": 5}, "noise: dirichlet_floor needs floor"),
        ({"noise": "dirichlet_floor", "floor": 5, "pseudo_count": 5}, "pseudo_count is for noise: dirichlet_shifted"),
        ({"noise": "dirichlet_floor", "floor": 0}, "floor must be a whole number from 1, got 0"),
        ({"noise": "dirichlet_shifted"}, "noise: dirichlet_shifted needs pseudo_count"),
        ({"noise": "dirichlet_shifted", "pseudo_count": -3}, "pseudo_count must be a whole number from 1, got -3"),
        ({"floor": 5}, "floor is for noise: dirichlet_floor"),
        ({"noise": "gaussian", "pseudo_count": 5}, "pseudo_count is for noise: dirichlet_shifted"),
        ({"protect": "row"}, "protect: row needs submit: embedding and noise: gaussian"),
        ({"protect": "row", "noise": "pure"}, "protect: row needs submit: embedding and noise: gaussian"),
        ({"protect": "row", "noise": "gaussian", **ROWS}, "protect: row needs submit: embedding and noise: gaussian"),
        ({"estimator": "mmd"}, "estimator: mmd needs the rows of bags; use submit: rows, or estimator: whitened or"),
        ({"estimator": "energy", "noise": "off"}, "estimator: energy needs the rows of bags"),
        ({"kernel": "nystrom"}, "kernel belongs to submit: rows"),
        ({"kernel": "exact", **ROWS}, "estimator: whitened needs explicit features; use kernel: fourier or nystrom"),
        ({"kernel": "exact", "estimator": "energy", **ROWS}, "kernel belongs to estimator: whitened"),
        ({"bandwidth": 2.0, "estimator": "proportion_svm", **ROWS}, "bandwidth belongs to estimator: whitened"),
        ({"kernel": "exact", "bandwidth": 2.0, "estimator": "bag_classifier", **ROWS}, "kernel and bandwidth belong"),
        ({"ridge": 0.1, "estimator": "class_means"}, "ridge belongs to estimator: whitened"),
        ({"corrected": False, "estimator": "mmd", **ROWS}, "corrected belongs to estimator: whitened, class_means or"),
        ({"label_share": 0.4}, "label_share belongs to protect: row"),
        ({"dimensions": 64, "estimator": "energy", **ROWS}, "dimensions belongs to estimator: whitened"),
        ({"dimensions": 64, "estimator": "bag_classifier_em", **ROWS}, "dimensions belongs to estimator: whitened"),
        (
            {"dimensions": 64, "estimator": "mmd", "kernel": "exact", **ROWS},
            "dimensions belongs to estimator: whitened",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(InputError, match=f"^{words}"):
        ClassRatio(**{**MEANS, **options})


def goes_together(estimator, noise, submit, protect, kernel):
    """As the docstring of the options has it."""
    kernelled = estimator in (*OF_MEANS, "mmd")
    return (
        (submit == "rows" or estimator in OF_MEANS)
        and (protect == "label" or (submit == "embedding" and noise == "gaussian"))
        and (kernel == "fourier" or (submit == "rows" and kernelled))
        and not (estimator == "whitened" and kernel == "exact")
    )


def test_all_combinations_are_taken_that_are_promised_and_no_others():
    combinations = itertools.product(ESTIMATORS, NOISES, ("embedding", "rows"), ("label", "row"), KERNELS)
    taken = 0
    for estimator, noise, submit, protect, kernel in combinations:
        options = {"estimator": estimator, "noise": noise, "submit": submit, "protect": protect, "kernel": kernel}
        options |= EXTRA.get(noise, {})
        if goes_together(estimator, noise, submit, protect, kernel):
            assert ClassRatio(**options).noise == noise
            taken += 1
        else:
            with pytest.raises(InputError):
                ClassRatio(**options)
    assert taken == len(NOISES) * (2 + 2 + 3 + 3 + 4) + 2  # embeddings; rows: whitened, class_means, mmd, others; row


def promised(noise, epsilon, **extra):
    """What a release is told to spend before anything is asked."""
    return ClassRatio(noise=noise, **extra).promise(PublicNumbers(1e-6), epsilon, Trust.AGGREGATOR).spends


@pytest.mark.parametrize("noise", [noise for noise in NOISES if noise not in ("off", "published_dirichlet")])
@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_a_release_is_never_charged_more_than_is_told_before(noise, epsilon):
    extra = EXTRA.get(noise, {})
    told = promised(noise, epsilon, **extra)
    known = CountsNoise(noise, epsilon, 1e-6, **extra)
    charged = CountsQuestion(known, Bags(1, 3), release=ReleaseId("a release"), seeded=True).promise()
    assert charged.epsilon == told.epsilon == epsilon
    if noise == "auto":
        assert charged.delta <= told.delta
    else:
        assert charged.delta == told.delta
    assert (charged.unit, charged.adjacency) == (told.unit, told.adjacency)
    if noise == "published_gaussian":
        assert (told.delta > 1e-6) == (epsilon > 1)  # beyond 1 its theorem does not hold


@pytest.mark.parametrize("noise", ["off", "published_dirichlet"])
def test_nothing_is_charged_for_what_protects_nobody(noise):
    claimed = None if noise == "off" else (1.0, 1e-6)
    spends = promised(noise, 1.0)
    assert isinstance(spends, NoGuarantee)
    assert spends.claimed == claimed


FITTED = [
    {"estimator": estimator, "noise": "gaussian", "submit": submit, "kernel": kernel, "corrected": corrected}
    for estimator, submit, kernel in itertools.product(ESTIMATORS, ("embedding", "rows"), KERNELS)
    for corrected in ((True, False) if estimator in (*OF_MEANS, "energy") else (True,))
    if goes_together(estimator, "gaussian", submit, "label", kernel)
]


@pytest.mark.filterwarnings("ignore:bag_classifier_em takes")
def test_whatever_goes_together_leads_to_estimates(make_plan):
    plan = make_plan(
        public=Reference("support.bagged:public_table"),
        features=("standardise",),
        variants=tuple(VariantPlan(f"v{n}", "class_ratio", options) for n, options in enumerate(FITTED)),
        parties=6,
        bags=2,
        largest_bag=60,
        epsilons=(8.0,),
        delta=1e-3,
        draws=1,
    )
    run(open_grid("inline"), plan, 6, Reference("support.bagged:Parties"))
    shares = np.array([0.7, 0.2, 0.1])
    labels = np.repeat(np.arange(3), (1000 * shares).astype(int))
    for n, options in enumerate(FITTED):
        models = ReleasedRatios.load(Path(plan.directory) / f"v{n}.npz")
        found = models.estimator(0, 0).predict(models.feature_maps[0].transform(draw(labels, 3)))
        assert found.sum() == pytest.approx(1)
        assert np.abs(found - shares).sum() < 0.5, options  # two thirds of the way from a guess, or better


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({}, {"estimator", "noise"}),  # a bag classifier, which needs rows and has no kernel
        (MEANS, {"estimator", "noise", "submit", "dimensions", "bandwidth", "ridge", "corrected"}),
        (
            {**MEANS, "estimator": "class_means"},
            {"estimator", "noise", "submit", "dimensions", "bandwidth", "corrected"},
        ),
        (
            {**MEANS, "noise": "gaussian"},
            {"estimator", "noise", "submit", "protect", "dimensions", "bandwidth", "ridge", "corrected"},
        ),
        (
            {**MEANS, "noise": "gaussian", "protect": "row"},
            {"estimator", "noise", "submit", "protect", "dimensions", "bandwidth", "ridge", "corrected", "label_share"},
        ),
        ({"noise": "dirichlet_floor", "floor": 9}, {"estimator", "noise", "floor"}),
        ({"noise": ["dirichlet_shifted"], "pseudo_count": [9, 99]}, {"estimator", "noise", "pseudo_count"}),
        (
            {**ROWS, "estimator": "whitened"},
            {"estimator", "noise", "submit", "kernel", "dimensions", "bandwidth", "ridge", "corrected"},
        ),
        ({**ROWS, "estimator": "mmd"}, {"estimator", "noise", "kernel", "dimensions", "bandwidth"}),
        ({**ROWS, "estimator": "mmd", "kernel": "exact"}, {"estimator", "noise", "kernel", "bandwidth"}),
        ({**ROWS, "estimator": "energy"}, {"estimator", "noise", "corrected"}),
        ({**ROWS, "estimator": "proportion_svm"}, {"estimator", "noise"}),
    ],
)
def test_only_options_that_make_a_difference_are_shown(entry, shown):
    protocol = Protocol.parse({"kind": "class_ratio", **entry})
    assert protocol.shown().keys() - {"kind"} == shown
    assert Protocol.parse(protocol.shown()) == protocol


def test_options_are_values():
    assert replace(ClassRatio(), noise="pure") == ClassRatio(noise="pure")
    assert ClassRatio().check_setting([{"whiten": 3}], {"name": "GaussianNB"}) is None
