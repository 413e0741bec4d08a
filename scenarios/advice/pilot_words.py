"""What a pilot found, in a table and in sentences; what was made on private rows says so everywhere."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from aggregator.contract.protocol import Metric
from scenarios.advice.measuring import NON_PRIVATE
from scenarios.advice.pilot import DRAWS, FACTOR, Needed, Pilot
from scenarios.advice.standings import Standing
from scenarios.advice.words import named
from scenarios.scores.metrics import shown
from scenarios.settings.protocol_options import CONSTANT, NOISE_FREE, POOLED

MARK = " [NON-PRIVATE]"
AGAINST = "against the best (95 %)"
_LOST = 0.1  # of the pooled gain: more is worth a word


def record(found: Pilot, private: bool, seconds: float) -> dict[str, Any]:
    """All that a pilot found, as JSON has it."""
    verdict = found.verdict()
    references = {kind: found.reference(kind) for kind in (CONSTANT, POOLED, NOISE_FREE)}
    return {
        "non_private": private,
        "note": NON_PRIVATE if private else "",
        "metric": found.metric.name,
        "seconds": round(seconds, 1),
        "standings": [
            {
                "variant": one.name,
                "mean": one.mean,
                "splits": one.splits,
                "behind": one.behind,
                "interval": None if one.interval is None else list(one.interval),
            }
            for one in found.standings()
        ],
        "references": {kind: fmean(values.values()) for kind, values in references.items() if values},
        "verdict": None if verdict is None else verdict.finding,
        "kept": None if verdict is None else verdict.kept,
        "chosen": named(found.finalists[0]),
        "left_out": list(found.left_out),
        "interrupted": found.interrupted,
    }


def rows(found: Pilot, private: bool) -> list[dict[str, str]]:
    """The table of a pilot, references last."""
    metric, mark = found.metric, MARK if private else ""
    table = [
        {
            "variant": one.name,
            metric.label: shown(metric.name, one.mean),
            "splits": str(one.splits),
            AGAINST: _against(one, metric),
        }
        for one in found.standings()
    ]
    for kind in (POOLED, NOISE_FREE, CONSTANT):
        if values := found.reference(kind):
            label = f"{kind.replace('_', ' ')}{mark}"
            value = shown(metric.name, fmean(values.values()))
            table.append({"variant": label, metric.label: value, "splits": str(len(values)), AGAINST: "reference"})
    return table


def sentences(found: Pilot, private: bool, seconds: float, where: str) -> list[str]:
    """What was done, what it says, and what there was no time for."""
    standings = found.standings()
    told = [NON_PRIVATE + "."] if private else []
    most = max((one.splits for one in standings), default=0)
    splits = "one split, and so no interval" if most == 1 else f"{most} splits"
    told.append(f"Pilot on {where}: {splits}, up to {DRAWS} noise draws each, {seconds:.0f} s.")
    if found.left_out:
        why = "the pilot was interrupted" if found.interrupted else "there was no time"
        told.append(f"Left out, as {why}: {'; '.join(found.left_out)}.")
    if not standings:
        return [*told, "Nothing was tried to its end: give it more time."]
    chosen = named(found.finalists[0])
    if chosen != standings[0].name:
        told.append(f"{chosen}, the first by public numbers, is hardly behind, and so it is taken.")
    verdict = found.verdict()
    if verdict is None:
        return [*told, f"Use {chosen}; the references were not tried, so what it is worth is not known."]
    kept = "" if verdict.kept is None else f"; {verdict.kept:.0%} of what the pooled rows gain is kept"
    told.append(f"Verdict: {chosen} is {_finding(verdict.finding)}{kept}.")
    if verdict.finding != "useful":
        told.append(_cause(found, verdict.pooled, verdict.constant))
    return told


def needed(found: Needed, private: bool) -> str:
    """At which epsilon the accuracy is reached, with an interval; or that it is not, and what the pooled rows have."""
    pooled = "" if found.pooled is None else f"pooled has {found.pooled:.2f}"
    constant = "" if found.constant is None else f"the constant answer {found.constant:.2f}"
    beside = ", ".join(part for part in (pooled, constant) if part)
    mark = MARK if private else ""
    if found.best is None:
        most = max(epsilon for curve in found.curves.values() for epsilon in curve)
        return f"Accuracy {found.accuracy:g} is not reached by epsilon {most:g}; {beside}.{mark}"
    name, epsilon = found.best
    if epsilon <= min(found.curves[name]):
        return f"Accuracy {found.accuracy:g} is reached at epsilon {epsilon:g} already by {name}; {beside}.{mark}"
    ends = f"{epsilon / FACTOR:.2g} to {epsilon * FACTOR:.2g}"
    return f"Accuracy {found.accuracy:g} is reached at epsilon {epsilon:.2g} ({ends}) by {name}; {beside}.{mark}"


def why(found: Pilot, private: bool) -> str:
    """How the finalists were chosen, for a comment of a scenario: without a figure of the rows."""
    on = "the private rows (NON-PRIVATE: this choice is outside the guarantee)" if private else "public rows"
    return f"chosen by a pilot on {on}; the first by public numbers alone was {found.first}"


def _against(one: Standing, metric: Metric) -> str:
    if one.behind == 0 and one.interval is None:
        return "the best" if one.splits else "-"
    sign = "-" if metric.higher_is_better else "+"
    if one.interval is None:
        return f"{sign}{one.behind:.3g}, too few splits for an interval"
    low, high = one.interval
    return f"{sign}{one.behind:.3g} ({low:.3g} to {high:.3g})"


def _finding(finding: str) -> str:
    return {
        "useful": "useful",
        "as the constant": "no better than the answer that is the same for all rows",
        "below the constant": "worse than the answer that is the same for all rows",
    }[finding]


def _cause(found: Pilot, pooled: float, constant: float) -> str:
    """Whether it is the noise, or the model, that leaves nothing."""
    values = found.reference(NOISE_FREE)
    sign = 1 if found.metric.higher_is_better else -1
    if not values or sign * (pooled - constant) <= 0:
        return "Even the pooled rows hardly tell more than that answer."
    gain = sign * (fmean(values.values()) - constant) / (sign * (pooled - constant))
    if gain < _LOST:
        return "Without its noise the protocol would be no better: its model does not suit these rows."
    return (
        f"Without its noise it would keep {gain:.0%} of what the pooled rows gain: it is the noise that leaves nothing."
    )
