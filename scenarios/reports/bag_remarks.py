"""What estimators of class ratios found about their bags, over all releases of a run, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from aggregator.learners.class_ratios.catalogue import Verdict, said, verdict
from scenarios.scores.results import Row

_OF_A_RELEASE = ("weight_", "error_")
_KNOWN = ("bags", "drift_p_value")


def bag_remarks(rows: Iterable[Row]) -> list[str]:
    """One line for every variant and every reason that its releases had to warn, most frequent first.

    `rows` are those of results.csv. Numbers are means over the releases that the line is about.
    """
    found: dict[str, dict[tuple[object, ...], dict[str, float]]] = {}
    for row in rows:
        metric = row["metric"]
        if metric in _KNOWN or metric.startswith(_OF_A_RELEASE):
            place = tuple(value for key, value in row.items() if key not in ("noise", "metric", "value"))
            found.setdefault(row["variant"], {}).setdefault(place, {})[metric] = row["value"]
    return [line for variant, known in found.items() for line in _of_variant(variant, list(known.values()))]


def _of_variant(variant: str, releases: list[dict[str, float]]) -> list[str]:
    checked = [release for release in releases if "bags" in release]
    by_verdict: dict[Verdict, list[dict[str, float]]] = {}
    for release in checked:
        by_verdict.setdefault(verdict(release), []).append(release)
    lines = []
    for alike in sorted(by_verdict.values(), key=len, reverse=True):
        words = said(_mean(alike))
        if words is not None:
            share = "" if len(alike) == len(checked) else f"in {len(alike)} of {len(checked)} releases "
            lines.append(f"{variant}: {share}{words}")
    return lines


def _mean(releases: list[dict[str, float]]) -> Mapping[str, float]:
    """Of every number over the releases; a weight that is not said is 0."""
    names = dict.fromkeys(name for release in releases for name in release)
    return {
        name: float(np.mean([release.get(name, 0.0 if name.startswith("weight_") else np.nan) for release in releases]))
        for name in names
    }
