from dataclasses import replace

import numpy as np

from aggregator.trial import trial as module
from aggregator.trial.trial import Views, affordable, fitted, spectrum_to_whiten


def test_one_view_where_nothing_is_automatic(make_plan):
    views = Views(make_plan())
    assert views.at("pure", 1.0) is views.at("gaussian", 10.0) is views.at("off", np.inf)
    assert views.at("pure", 1.0).public.feature_map.dimension == 3


def test_automatic_dimensions_follow_the_release(make_plan, public):
    plan = make_plan(features=({"whiten": "auto"}, "unit_norm"), parties=400, epsilons=(0.01, 100.0))
    views = Views(plan)
    few, many = (views.at("pure", epsilon).public.feature_map.dimension for epsilon in plan.epsilons)
    spectrum = spectrum_to_whiten(plan.features, public)
    known = {"classes": 3, "parties": 400, "delta": plan.delta}
    expected = [min(4, affordable("pure", spectrum, epsilon=epsilon, **known)) for epsilon in plan.epsilons]
    assert [few, many] == expected == [3, 4]


def test_the_spectrum_is_that_of_the_rows_behind_the_earlier_stages(make_plan, public):
    """Standardised columns have variance 1 each, whatever their units; principal variances sum to their number."""
    features = ("standardise", {"whiten": "auto"}, "unit_norm")
    scaled = replace(public, rows=public.rows * [1.0, 10.0, 100.0, 1e3])
    spectrum = spectrum_to_whiten(features, scaled)
    assert spectrum.rows == len(public.rows)
    np.testing.assert_allclose(spectrum.variances.sum(), 4)
    np.testing.assert_allclose(spectrum.variances, spectrum_to_whiten(features, public).variances)


def test_maps_that_turn_out_equal_are_one_view(make_plan):
    """The table has four columns, so two choices beyond that end in the same map."""
    plan = make_plan(features=({"whiten": "auto"}, "unit_norm"), parties=10**6)
    views = Views(plan)
    assert views.at("pure", 50.0) is views.at("off", np.inf)


def test_releases_that_afford_the_same_are_fitted_once(make_plan, monkeypatch):
    plan = make_plan(features=({"whiten": "auto"}, "unit_norm"), parties=400)
    asked = []
    fit = module.fit_rows
    monkeypatch.setattr(module, "fit_rows", lambda stages, *known: asked.append(stages) or fit(stages, *known))
    views = Views(plan)
    found = {views.at("pure", epsilon) for epsilon in (0.01, 0.011, 0.012)}
    assert len(found) == 1
    assert asked == [(), [{"whiten": 3}, "unit_norm"]]  # the spectrum's, and the view's


def test_the_map_needs_no_private_number(make_plan, public):
    plan = make_plan()
    known = {"noise": "pure", "classes": 3, "parties": 40, "epsilon": 1.0, "delta": 1e-6}
    expected, rows = fitted(plan.features, public, **known)
    found = Views(replace(plan, noise_seed=7)).at("pure", 1.0).public.rows
    np.testing.assert_array_equal(found, expected.transform(public.rows))  # of any number of rows at a time
    np.testing.assert_array_equal(found, rows)
