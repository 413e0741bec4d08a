"""All options of `class_ratio` that go together lead to an estimator, and no release is charged more than was told."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.bagged import FIELDS, draw
from support.ratio_choices import ESTIMATORS, EXTRA, KERNELS, MEANS, NOISES, OF_MEANS, ROWS, goes_together
from support.worlds import run

from aggregator.contract.protocol import Trust
from aggregator.protocols.class_ratio.class_ratio import ClassRatio
from aggregator.releases.estimator_models import ReleasedRatios
from aggregator.trial.plan import PublicNumbers, VariantPlan
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId
from federation.engines.inline import open_grid
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from scenarios.settings.protocol_options import Protocol


@pytest.mark.parametrize("noise", [noise for noise in NOISES if noise not in ("off", "published_dirichlet")])
@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_a_release_is_never_charged_more_than_is_told_before(noise, epsilon):
    extra = EXTRA.get(noise, {})
    told = ClassRatio(noise=noise, **extra).promise(PublicNumbers(1e-6), epsilon, Trust.AGGREGATOR).spends
    known = CountsNoise(noise, epsilon, 1e-6, **extra)
    charged = CountsQuestion(known, Bags(1, 3), release=ReleaseId("a release"), seeded=True).promise()
    assert charged.epsilon == told.epsilon == epsilon
    assert charged.delta <= told.delta
    assert noise == "auto" or charged.delta == told.delta
    assert (charged.unit, charged.adjacency) == (told.unit, told.adjacency)
    if noise == "published_gaussian":
        assert (told.delta > 1e-6) == (epsilon > 1)  # beyond 1 its theorem does not hold


FITTED = [
    {"estimator": estimator, "noise": "gaussian", "submit": submit, "kernel": kernel, "corrected": corrected}
    for estimator, submit, kernel in itertools.product(ESTIMATORS, ("embedding", "rows"), KERNELS)
    for corrected in ((True, False) if estimator in (*OF_MEANS, "energy") else (True,))
    if goes_together(estimator, "gaussian", submit, "label", kernel)
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:bag_classifier_em takes")
def test_whatever_goes_together_leads_to_estimates(make_plan):
    variants = tuple(VariantPlan(f"v{n}", "class_ratio", options) for n, options in enumerate(FITTED))
    plan = make_plan(variants=variants, epsilons=(8.0,), draws=1, **FIELDS)
    run(open_grid("inline"), plan, 6, Reference("support.bagged:Parties"))
    shares = np.array([0.7, 0.2, 0.1])
    labels = np.repeat(np.arange(3), (1000 * shares).astype(int))
    for n, options in enumerate(FITTED):
        models = ReleasedRatios.load(Path(plan.run.directory) / f"v{n}.npz")
        found = models.estimator(0, 0).predict(models.feature_maps[0].transform(draw(labels, 3)))
        assert found.sum() == pytest.approx(1)
        assert np.abs(found - shares).sum() < 0.5, options  # two thirds of the way from a guess, or better


EMBEDDED = {"submit", "dimensions", "bandwidth", "corrected"}


@pytest.mark.parametrize(("entry", "shown"), [
    ({}, {"submit"}),  # of rows, which has no kernel
    (MEANS, EMBEDDED), ({**MEANS, "estimator": "class_means"}, EMBEDDED),
    ({**MEANS, "noise": "gaussian"}, EMBEDDED | {"protect"}),
    ({**MEANS, "noise": "gaussian", "protect": "row"}, EMBEDDED | {"protect", "label_share"}),
    ({"noise": "dirichlet_floor", "floor": 9}, {"submit", "floor"}),
    ({"noise": ["dirichlet_shifted"], "pseudo_count": [9, 99]}, {"submit", "pseudo_count"}),
    ({**ROWS, "estimator": "whitened"}, EMBEDDED | {"kernel"}),
    ({**ROWS, "estimator": "mmd"}, {"kernel", "dimensions", "bandwidth"}),
    ({**ROWS, "estimator": "mmd", "kernel": "exact"}, {"kernel", "bandwidth"}),
    ({**ROWS, "estimator": "energy"}, {"corrected"}), ({**ROWS, "estimator": "proportion_svm"}, {"bandwidth"}),
    ({**ROWS, "estimator": "proportion_svm", "bandwidth": [1.0, "auto"]}, {"dimensions", "bandwidth"}),
])  # fmt: skip
def test_only_options_that_make_a_difference_are_shown(entry, shown):
    protocol = Protocol.parse({"kind": "class_ratio", **entry})
    assert protocol.shown().keys() == {"kind", "estimator", "noise", *shown}
    assert Protocol.parse(protocol.shown()) == protocol


def test_options_are_values_and_what_is_expected_is_the_noise_of_a_bag_and_the_chance_in_its_rows():
    assert replace(ClassRatio(), noise="pure") == ClassRatio(noise="pure")
    assert ClassRatio().check_setting([{"whiten": 3}], {"name": "GaussianNB"}) is None
    known = PublicNumbers(1e-6, classes=2, bags=4, largest_bag=218)
    found = ClassRatio().expected_error(known, 1.0)
    assert found.noise == pytest.approx(0.008, abs=0.002)
    assert found.error == pytest.approx(found.noise + 218**-0.5)
    assert (found.basis, found.constant) == ("guess", None)
    assert ClassRatio(noise="off").expected_error(known, 1.0) is None
    several = ClassRatio().expected_error(replace(known, rows_per_person=4), 1.0)
    assert several.noise > 2 * found.noise
