"""Figures of a run: a metric against epsilon, a swept number or the class share. Equal rows give equal files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.curves import Axis, Curve, Style, curve, styles
from scenarios.metrics import ACCURACY, AT_SHARE, L1, MSE
from scenarios.panels import panels, styled
from scenarios.results import Row
from scenarios.summary import Spread, VariantSummary, epsilons, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS = (ACCURACY.name, "balanced_accuracy", L1.name, MSE.name)
_DPI = 150
_Key = tuple[str, str]  # the panel, and the variant


def draw(rows: Sequence[Row], directory: Path, title: str) -> list[Path]:
    """Write every figure of `figures` as PNG (150 dpi) and SVG into `directory`; the paths written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures(rows, title).items():
        for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            path = directory / f"{name}.{suffix}"
            with styled():
                figure.savefig(path, dpi=_DPI, metadata=metadata)
            figure.set_layout_engine("none")  # what was arranged for the first file holds for the second
            written.append(path)
    return written


def figures(rows: Sequence[Row], title: str) -> dict[str, Figure]:
    """Figures by file name: METRIC against epsilon, and at the middle epsilon METRIC-KEY for swept numbers KEY.

    Errors at several class shares have l1-share too. A metric without rows has none. Settings of swept keys stand
    side by side as panels.
    """
    drawn: dict[str, Figure] = {}
    for metric in METRICS:
        summaries = summarise(rows, metric)
        if summaries:
            with styled():
                drawn[metric] = _against_epsilon(summaries, title)
                for key in _swept_numbers(summaries):
                    drawn[f"{metric}-{key}"] = _against_key(summaries, key, title)
    at_shares = _at_shares(rows)
    if len(at_shares) > 1:
        with styled():
            drawn[f"{L1.name}-share"] = _against_share(at_shares, title)
    return drawn


def _against_epsilon(summaries: Sequence[VariantSummary], title: str) -> Figure:
    looks = styles(summaries)
    shown: dict[str, list[Curve]] = {}
    for summary in summaries:
        shown.setdefault(summary.place, []).append(curve(summary, looks, summary.by_epsilon))
    finite = tuple(epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon))
    return panels(shown, Axis("ε", finite, True), summaries, summaries[0].metric, title)


def _against_key(summaries: Sequence[VariantSummary], key: str, title: str) -> Figure:
    """One curve per variant at the middle epsilon; panels for the other swept keys."""
    middle = _middle(summaries)
    points: dict[_Key, dict[float, Spread]] = {}
    known: dict[_Key, VariantSummary] = {}
    for summary in summaries:
        spread = _at(summary, middle)
        if key in summary.setting and spread is not None:
            others = ", ".join(f"{name} = {value}" for name, value in summary.setting.items() if name != key)
            points.setdefault((others, summary.variant), {})[float(summary.setting[key])] = spread
            known[others, summary.variant] = summary
    numbers = tuple(sorted({value for values in points.values() for value in values}))
    axis = Axis(key, numbers, numbers[0] > 0 and numbers[-1] >= 10 * numbers[0])
    shown = _curves(points, known, styles(summaries))
    return panels(shown, axis, summaries, summaries[0].metric, _titled(title, middle))


def _at_shares(rows: Iterable[Row]) -> dict[float, list[VariantSummary]]:
    """Summaries of the errors on the target sets of each class share, shares rising."""
    by_metric: dict[str, list[Row]] = {}
    for row in rows:
        if row["metric"].startswith(AT_SHARE):
            by_metric.setdefault(row["metric"], []).append(row)
    found = {float(metric.removeprefix(AT_SHARE)): summarise(rows, metric) for metric, rows in by_metric.items()}
    return dict(sorted(found.items()))


def _against_share(at_shares: Mapping[float, Sequence[VariantSummary]], title: str) -> Figure:
    """One curve per variant at the middle epsilon, as in Iyer et al. 2016, Figs. 2 and 3; panels for the swept keys."""
    everything = [summary for summaries in at_shares.values() for summary in summaries]
    middle = _middle(everything)
    points: dict[_Key, dict[float, Spread]] = {}
    known: dict[_Key, VariantSummary] = {}
    for share, summaries in at_shares.items():
        for summary in summaries:
            spread = _at(summary, middle)
            if spread is not None:
                points.setdefault((summary.place, summary.variant), {})[share] = spread
                known[summary.place, summary.variant] = summary
    axis = Axis("share of the varied class", tuple(at_shares), False)
    shown = _curves(points, known, styles(everything))
    return panels(shown, axis, everything, L1.name, _titled(title, middle), bars=False)


def _curves(
    points: Mapping[_Key, Mapping[float, Spread]],
    known: Mapping[_Key, VariantSummary],
    looks: Mapping[str, Style],
) -> dict[str, list[Curve]]:
    """The curves of each panel."""
    shown: dict[str, list[Curve]] = {}
    for (place, variant), values in points.items():
        shown.setdefault(place, []).append(curve(known[place, variant], looks, values))
    return shown


def _middle(summaries: Iterable[VariantSummary]) -> float:
    """The middle of the epsilons that there are; infinity without any."""
    finite = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    return finite[len(finite) // 2] if finite else math.inf


def _at(summary: VariantSummary, epsilon: float) -> Spread | None:
    """What a variant reaches at an epsilon, or without any guarantee."""
    return summary.by_epsilon.get(epsilon) or summary.by_epsilon.get(math.inf)


def _titled(title: str, epsilon: float) -> str:
    return f"{title}, ε = {epsilon:g}" if math.isfinite(epsilon) else title


def _swept_numbers(summaries: Sequence[VariantSummary]) -> list[str]:
    """Swept keys of the worlds with two or more values, all of them numbers."""
    values: dict[str, set[str]] = {}
    for summary in summaries:
        for key, value in summary.setting.items():
            values.setdefault(key, set()).add(value)
    return [key for key, found in values.items() if len(found) > 1 and all(map(_is_number, found))]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
