"""What the variants of a scenario promise before anything is asked: who is protected, and what leaves a party."""

from __future__ import annotations

from aggregator.contract.promise import Sent
from aggregator.contract.protocol import Place, Refused
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.guarantee import Guarantee, NoGuarantee
from scenarios.settings.protocol_options import place as placed
from scenarios.settings.protocol_options import promise
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

    By what a scenario says alone, without a look at data, at the first of its epsilons and sweeps. Raises `InputError`
    for an epsilon that a variant cannot work with, be it the first or another.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> first = promises(resolve("quickstart"))[0]
        >>> first["promise"]
        'epsilon 1, delta 0 for one party (replace); the aggregator adds the noise and must be trusted'
        >>> first["sends"]
        "a party sends its share of the votes' statistic without noise"
    """
    first = expand(scenario)[0].scenario
    bags = first.parties.bags if isinstance(first.parties.bags, int) else None
    classes = None if first.data.classes is None else len(first.data.classes)
    public = PublicNumbers(
        scenario.privacy.delta,
        scenario.trials.noise,
        first.parties.count,
        2 if first.data.positive else classes,
        public_rows=first.data.auxiliary if isinstance(first.data.auxiliary, int) else None,
        bags=bags,
        largest_bag=first.parties.rows // bags if first.parties.rows and bags else None,
        rows_per_person=0 if first.data.person is None else first.data.rows_per_person,
        label_range=first.data.range,
    )
    found = []
    for variant in variants(scenario):
        asked = [promise(variant.kind, variant.options, epsilon, public) for epsilon in scenario.privacy.epsilon]
        promised = asked[0]  # of the others only whether there is one
        if promised is None:
            continue
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
