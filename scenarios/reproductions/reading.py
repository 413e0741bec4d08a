"""From the rows of a run to the values of a series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from federation.contract.errors import InputError
from scenarios.reports.summary import Spread, VariantSummary, summarise
from scenarios.reproductions.paper import Item, Observation, Part, Pick
from scenarios.scores.results import Row


def observed(rows: Sequence[Row], item: Item, part: Part) -> Iterator[Observation]:
    """What the run of a part has measured of the item's series; series that it has no variant of are left out.

    Raises `InputError` where a pick fits several values, or none at this epsilon or place.
    """
    summaries: dict[str, list[VariantSummary]] = {}
    for series in item.series:
        for role, pick in series.picks().items():
            for x in item.at:
                for split, value in _values(rows, summaries, pick, x).items():
                    yield Observation(part.setting, series.name, role, x, split, value)


def _values(rows: Sequence[Row], summaries: dict[str, list[VariantSummary]], pick: Pick, x: str) -> dict[int, float]:
    """Of one pick at one place, by split."""
    metric = pick.metric.format(x=x)
    if metric not in summaries:
        summaries[metric] = list(summarise(rows, metric))
    spread = _spread(summaries[metric], pick, x)
    found = {} if spread is None else {split: fmean(values) for split, values in spread.by_split.items()}
    if pick.beside is None or not found:
        return found
    beside = _values(rows, summaries, pick.beside, x)
    return {split: pick.of(value, beside[split]) for split, value in found.items() if split in beside}


def _spread(summaries: Sequence[VariantSummary], pick: Pick, x: str) -> Spread | None:
    at = partial(str.format, x=x)
    variant = pick.variant.format(x=x)
    where = {key: at(value) for key, value in pick.where.items()}
    named = [one for one in summaries if one.variant == variant and _fits(one.swept, where)]
    if len(named) > 1:
        raise InputError(f"{variant} was measured in several settings; say in `where` which: {_settings(named)}")
    if not named:
        return None
    [one] = named
    if pick.epsilon:
        return one.by_epsilon.get(_epsilon(at(pick.epsilon)))
    if len(one.by_epsilon) > 1:
        known = ", ".join(f"{epsilon:g}" for epsilon in one.by_epsilon)
        raise InputError(f"{variant} was measured at several epsilons, {known}; say in `epsilon` which")
    return next(iter(one.by_epsilon.values()))


def _epsilon(text: str) -> float:
    """Of a number, or of one over a number, which may be 0."""
    number = float(text.removeprefix("1/"))
    if not text.startswith("1/"):
        return number
    return 1 / number if number else math.inf


def _fits(swept: Mapping[str, str], where: Mapping[str, str]) -> bool:
    return all(swept.get(key) == value for key, value in where.items())


def _settings(named: Sequence[VariantSummary]) -> str:
    return "; ".join(one.place for one in named)
