"""Class ratios from bags that are the same at all parties: as of one party that holds them all, but for one noise."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from support.bagged import draw
from support.worlds import guarantees, plan_fixture, run

from aggregator.contract.registry import protocol
from aggregator.protocols.class_ratio.session import CommonSession, Fitting, RatioSession
from aggregator.releases.estimator_models import ReleasedRatios
from aggregator.trial.plan import VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from scenarios.simulated.secure_aggregation import NAME

PARTIES = 7
EMBEDDED = {"estimator": "whitened", "submit": "embedding", "dimensions": 64}
OPTIONS = {
    "auto": {},
    "rows": {"noise": "gaussian", "estimator": "whitened", "dimensions": 64},
    "exact": {"noise": "pure", "estimator": "mmd", "kernel": "exact"},
    "embedded": {**EMBEDDED, "noise": "gaussian"},
    "means": {**EMBEDDED, "estimator": "class_means"},
    "private_rows": {**EMBEDDED, "noise": "gaussian", "protect": "row", "dimensions": 16},
}
VARIANTS = {
    **{name: VariantPlan(name, "class_ratio", {**options, "trust": "secure"}) for name, options in OPTIONS.items()},
    **{
        f"{name}_off": VariantPlan(f"{name}_off", "class_ratio", {**options, "trust": "secure", "noise": "off"})
        for name, options in OPTIONS.items()
        if "protect" not in options
    },
    **{f"{name}_own": VariantPlan(f"{name}_own", "class_ratio", options) for name, options in OPTIONS.items()},
}
SHARES = np.array([0.7, 0.2, 0.1])

plan = plan_fixture(
    VARIANTS,
    public=Reference("support.bagged:public_table"),
    features=("standardise",),
    parties=PARTIES,
    bags=5,
    largest_bag=60,
    common_bags=True,
    quorum=1.0,
    epsilons=(1.0, 8.0),
    delta=1e-3,
    draws=2,
    summation=NAME,
)


def dealt(parties=PARTIES):
    return Reference("support.common_bags:Dealt", {"parties": parties, "of": PARTIES})


def ratios(plan, name, release=0, noise=0):
    """The estimated class ratios of a large set whose shares are known."""
    models = ReleasedRatios.load(Path(plan.directory) / f"{name}.npz")
    labels = np.repeat(np.arange(3), (3000 * SHARES).astype(int))
    return models.estimator(release, noise).predict(models.feature_maps[release].transform(draw(labels, 7)))


def session(plan, name):
    [variant] = plan.variants
    world = World(plan, Views(plan)).of(variant)
    return protocol("class_ratio")(**variant.options).begin(world, 1.0, plan.draws)


@pytest.mark.parametrize("name", [name for name in OPTIONS if "protect" not in OPTIONS[name]])
def test_without_noise_it_learns_what_it_would_of_one_party_with_all_rows(plan, make_plan, tmp_path, name):
    common = plan(f"{name}_off", directory=str(tmp_path / "common"))
    Path(common.directory).mkdir()
    run(open_grid("inline"), common, PARTIES, dealt())
    alone = plan(f"{name}_off", parties=1, common_bags=False, directory=str(tmp_path / "alone"))
    Path(alone.directory).mkdir()
    run(open_grid("inline"), alone, 1, dealt(1))
    exact = name in ("auto", "rows", "exact")  # rows as they come; sums are rounded to a grid
    np.testing.assert_allclose(ratios(common, f"{name}_off"), ratios(alone, f"{name}_off"), atol=0 if exact else 1e-6)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_variant_estimates_the_shares_of_a_shifted_set(plan, name):
    chosen = plan(name, epsilons=(8.0,))
    _, summary = run(open_grid("inline"), chosen, PARTIES, dealt())
    assert not summary["failed_variants"]
    assert np.abs(ratios(chosen, name) - SHARES).sum() < 0.2
    promised = guarantees(summary)[name]
    assert promised["unit"] == ("row" if name == "private_rows" else "label")
    assert promised["parameters"]["contributors"] == PARTIES - 1  # one of seven may collude
    assert promised["epsilon"] == 8.0
    told = " ".join(check for entry in summary["ledger"]["releases"] for check in entry["checks"])
    assert "all messages real" in told  # of a masked sum
    assert ("rows of bags, which are public, were checked" in told) is ("submit" not in OPTIONS[name])


def test_masks_change_no_byte(plan):
    files = [
        run(open_grid("inline"), plan("rows", "embedded", epsilons=(1.0,), summation=summed), 3, dealt())[0]
        for summed in (NAME, "")
    ]
    assert files[0] == files[1]


def test_parties_are_asked_once_for_counts_of_which_several_variants_learn(plan):
    chosen = plan(
        variants=tuple(
            VariantPlan(name, "class_ratio", {**OPTIONS["rows"], "estimator": name, "trust": "secure"})
            for name in ("whitened", "class_means")
        ),
        epsilons=(1.0,),
    )
    _, summary = run(open_grid("inline"), chosen, PARTIES, dealt())
    [total] = summary["ledger"]["published_together"]
    assert 0.99 < total["epsilon"] <= 1.0  # of one release


def test_one_noise_for_all_is_less_than_one_of_each(plan):
    """Of seven parties at a small epsilon: the root mean square error over draws."""
    chosen = plan("rows", "rows_own", epsilons=(0.3,), draws=8)
    run(open_grid("inline"), chosen, PARTIES, dealt())
    errors = {
        name: np.mean([np.abs(ratios(chosen, name, noise=draw) - SHARES).sum() for draw in range(8)])
        for name in ("rows", "rows_own")
    }
    assert errors["rows"] < 0.6 * errors["rows_own"]


def test_parts_of_a_bag_are_left_out_together_where_each_party_has_its_own_noise(plan, monkeypatch):
    left = {}

    def fitted(fitting, labelled, draw):
        left[len(labelled.sizes)] = labelled.groups.tolist()
        return fit(fitting, labelled, draw)

    fit = Fitting.fit
    monkeypatch.setattr(Fitting, "fit", fitted)
    for common in (True, False):
        run(open_grid("inline"), plan("rows_own", epsilons=(8.0,), common_bags=common), PARTIES, dealt())
        [groups] = left.values()
        parts = [[0, 1, 2, 3, 4], *[[0, 1, 2, 3]] * (PARTIES - 1)]
        of_party = [[party] * len(bags) for party, bags in enumerate(parts)]
        assert groups == [*chain(*(parts if common else of_party))]


def test_a_bag_of_which_nobody_has_a_row_is_left_out(plan):
    chosen = plan("embedded", "rows", "private_rows", bags=6, epsilons=(8.0,))
    _, summary = run(open_grid("inline"), chosen, PARTIES, dealt())
    assert not summary["failed_variants"]
    for name in ("embedded", "rows", "private_rows"):
        assert np.abs(ratios(chosen, name) - SHARES).sum() < 0.3


def test_too_few_bags_for_the_classes_are_refused(plan):
    with pytest.raises(InputError, match="2 bags that are the same at all parties cannot tell 3 classes apart"):
        session(plan("auto", bags=2), "auto")
    chosen = plan("private_rows", epsilons=(0.01,))
    with pytest.raises(InputError, match="bags have rows enough beside the noise"):
        run(open_grid("inline"), chosen, PARTIES, dealt())


def test_bags_of_each_party_are_not_added_up(plan):
    assert isinstance(session(plan("auto"), "auto"), CommonSession)
    assert type(session(plan("auto_own"), "auto_own")) is RatioSession
    assert type(session(plan("auto_off", common_bags=False), "auto_off")) is RatioSession
    with pytest.raises(InputError, match=r"every party numbers the bags that it has.*parties\.common_bags: true"):
        run(open_grid("inline"), plan("auto", common_bags=False), PARTIES, dealt())
