"""Releases over periods: how many are about the same unit, and what they have spent on it together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.contract.guarantee import Guarantee, Unit
from federation.mechanisms.accounting.composition import most_releases, spent_over_periods
from scenarios.settings.schema import Scenario
from scenarios.settings.sections import Privacy, Trials
from scenarios.settings.words import ALL, PERIOD

PREMISES = (
    "when a row arrives is public: a row that is exchanged, added or removed is one of the same period",
    "a party, and a person, may have rows in all periods, and what is released of each adds up",
    "public rows are those of the periods that a release learns from, or of a file, and are nobody's private rows",
)


def releases_about(trials: Trials, periods: int | None = None) -> dict[str, int]:
    """For each unit how many releases of a stream are about the same one at most, by the number of its `periods`.

    Without it that of the scenario is taken, where it says one; otherwise nothing is known yet.

    Examples:
        >>> from scenarios.settings.sections import Trials
        >>> found = releases_about(Trials(periods=8, window=2))
        >>> found["party"], found["label"]
        (7, 2)
    """
    known = stated(trials) if periods is None else periods
    return {} if known is None else {str(unit): most_releases(unit, known - 1, length(trials)) for unit in Unit}


def stated(trials: Trials) -> int | None:
    """The number of periods where a scenario says it; None where there are none, or only the data can tell."""
    if isinstance(trials.periods, int):
        return trials.periods
    return len(trials.periods) if isinstance(trials.periods, tuple) else None


def length(trials: Trials) -> int | None:
    """Periods of the window that a release learns from; None for all."""
    return None if trials.window == ALL else int(trials.window)


def over_time(
    ledgers: Sequence[Mapping[str, Any]], scenario: Scenario, periods: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What `ledger.json` says of a stream with these names of its periods; nothing where there are none.

    `ledgers` are its worlds, of one split. `spent` is what one unit has spent over all periods, for each variant and
    epsilon of a setting: a release that protects a unit protects what is a part of it (`Unit.covers`), which has an
    entry of its own. Variants without a guarantee have none.
    """
    if not periods:
        return {}
    spent = [*_spent(ledgers, scenario.trials, scenario.privacy)]
    return {"over_periods": {"periods": list(periods), "premises": list(PREMISES), "spent": spent}}


def _spent(ledgers: Sequence[Mapping[str, Any]], trials: Trials, privacy: Privacy) -> Iterator[dict[str, Any]]:
    limit, window = privacy.budget, length(trials)
    target = privacy.delta if limit is None else limit.delta
    for swept, variant, releases in _series(ledgers):
        first = releases[min(releases)]
        for unit in (unit for unit in Unit if first.unit.covers(unit)):
            epsilon, delta = spent_over_periods(releases, window, unit, target)
            yield {
                "swept": swept,
                "variant": variant,
                "each": first.epsilon,
                "unit": str(unit),
                "adjacency": str(first.adjacency),
                "releases": len(releases),
                "about_one": most_releases(unit, len(releases), window),
                "epsilon": epsilon,
                "delta": delta,
                "budget": None if limit is None else {"epsilon": limit.epsilon, "delta": limit.delta},
            }


def _series(ledgers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], str, dict[int, Guarantee]]]:
    """A setting, a variant and its guarantees by period at one of its epsilons; only of what has one in all of them."""
    settings: dict[str, dict[str, Any]] = {}
    found: dict[tuple[str, str, int], dict[int, Guarantee | None]] = {}
    for world in ledgers:
        swept, numbers = dict(world["swept"]), Counter[str]()
        period = swept.pop(PERIOD)
        settings[str(swept)] = swept
        for release in world["releases"]:
            variant, known = release["variant"], release["guarantee"]
            kept = None if known.get("non_private") else Guarantee.from_dict(known)
            found.setdefault((str(swept), variant, numbers[variant]), {})[period] = kept
            numbers[variant] += 1
    for (place, variant, _), each in found.items():
        private = {period: one for period, one in each.items() if one is not None}
        if len(private) == len(each):
            yield settings[place], variant, private
