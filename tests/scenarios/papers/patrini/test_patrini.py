"""The exchange: published noise claims more than it keeps, our default keeps what it is compared at."""

from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Unit
from scenarios.reproductions.measure import scenario_of
from scenarios.reproductions.paper import paper
from scenarios.settings.protocol_options import promise
from scenarios.settings.sweep import variants

PAPER = paper("patrini")


def test_ours_is_private_for_one_label_at_the_epsilons_of_the_axis():
    [item] = [item for item in PAPER.items if item.name == "algorithm3"]
    scenario = scenario_of(PAPER, item.parts[0])
    assert tuple(map(str, (0.1, 0.3, 1, 3))) == item.at
    assert scenario.privacy.epsilon == (0.1, 0.3, 1.0, 3.0)
    known = {variant.name: variant for variant in variants(scenario)}
    for name, delta in (("pure", 0.0), ("laplace", 0.0), ("ours", 1e-6)):
        spent = promise(known[name].kind, known[name].options, 1.0, PublicNumbers(scenario.privacy.delta)).spends
        assert (spent.unit, spent.epsilon) == (Unit.LABEL, 1.0)
        assert spent.delta <= delta
