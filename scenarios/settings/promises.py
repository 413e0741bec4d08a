"""What the variants of a scenario promise before anything is asked: who is protected, and what leaves a party."""

from __future__ import annotations

from aggregator.contract.promise import Sent
from aggregator.contract.protocol import Place, Refused
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.guarantee import Guarantee, NoGuarantee
from scenarios.settings.protocol_options import BASELINES, promise
from scenarios.settings.protocol_options import place as placed
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import expand, variants

_NOISE = {
    Place.AGGREGATOR: "the aggregator adds the noise and must be trusted",
    Place.PARTY: "every party adds the noise itself",
    Place.SHARES: "parties add shares of one noise, and whoever sums must not look",
    Place.NOWHERE: "nobody adds noise",
}


def promises(scenario: Scenario) -> list[dict[str, str]]:
    """For every variant that is no baseline its `variant`, its `promise` and what a party `sends`, in words.

    By what a scenario says alone, without a look at data, at the first of its epsilons and sweeps.
    """
    first = expand(scenario)[0].scenario
    parties = first.parties.count if isinstance(first.parties.count, int) else None
    bags = first.parties.bags if isinstance(first.parties.bags, int) else None
    names = first.data.positive and ("negative", "positive")
    names = names or first.data.classes
    public = PublicNumbers(
        scenario.privacy.delta,
        scenario.trials.noise,
        parties,
        None if names is None else len(names),
        public_rows=first.data.auxiliary if isinstance(first.data.auxiliary, int) else None,
        bags=bags,
        largest_bag=first.parties.rows // bags if first.parties.rows and bags else None,
        rows_per_person=0 if first.data.person is None else first.data.rows_per_person,
        label_range=first.data.range,
    )
    found = []
    for variant in variants(scenario):
        if variant.kind in BASELINES:
            continue
        promised = promise(variant.kind, variant.options, scenario.privacy.epsilon[0], public)
        assert promised is not None  # of a protocol
        where = placed(variant.kind, variant.options)
        told = where.reason if isinstance(where, Refused) else _NOISE[where]
        found.append(
            {
                "variant": variant.name,
                "promise": f"{_told(promised.spends)}; {told}",
                "sends": "a party sends " + " and ".join(_sent(one) for one in promised.sends),
            }
        )
    return found


def _told(spends: Guarantee | NoGuarantee) -> str:
    if isinstance(spends, NoGuarantee):
        return f"NON-PRIVATE ({spends.reason})"
    unit = str(spends.unit).replace("_", " ")
    return f"epsilon {spends.epsilon:g}, delta {spends.delta:g} for one {unit} ({spends.adjacency})"


def _sent(one: Sent) -> str:
    size = "" if one.numbers is None else f" ({one.numbers:,} numbers)"
    return f"{one.what}{size}{' with noise' if one.private else ' without noise'}"
