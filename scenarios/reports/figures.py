"""Figures of a run: a metric against epsilon, a swept number, the class share or the round; equal rows, equal files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.reports.curves import Axis, Curve, Style, curve, styles
from scenarios.reports.panels import panels, styled
from scenarios.reports.summary import Spread, VariantSummary, epsilons, equals, summarise
from scenarios.scores.metrics import AT_ROUND, AT_SHARE
from scenarios.scores.results import Row
from scenarios.scores.tasks import ACCURACY, L1, MSE
from scenarios.settings.protocol_options import BASELINES

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

    Errors at several class shares have l1-share too, accuracies after several rounds accuracy-round. A metric without
    rows has none. Settings of swept keys stand side by side as panels.
    """
    drawn: dict[str, Figure] = {}
    for metric in METRICS:
        summaries = summarise(rows, metric)
        if summaries:
            with styled():
                drawn[metric] = _against_epsilon(summaries, title)
                for key in _swept_numbers(summaries):
                    drawn[f"{metric}-{key}"] = _against_key(summaries, key, title)
    at_shares = _by_number(rows, AT_SHARE)
    if len(at_shares) > 1:
        with styled():
            drawn[f"{L1.name}-share"] = _against(at_shares, "share of the varied class", L1.name, title)
    at_rounds = _by_number(rows, AT_ROUND)
    if len(at_rounds) > 1:
        baselines = [summary for summary in summarise(rows, ACCURACY.name) if summary.protocol in BASELINES]
        with styled():
            drawn[f"{ACCURACY.name}-round"] = _against(at_rounds, "round", ACCURACY.name, title, baselines)
    return drawn


def _against_epsilon(summaries: Sequence[VariantSummary], title: str) -> Figure:
    """Curves over the epsilons that are kept; where one was aimed at, it names what keeps another."""
    aims = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    looks, notes = styles(summaries), _notes(summaries, aims[0]) if len(aims) == 1 else {}
    shown: dict[str, list[Curve]] = {}
    for summary in summaries:
        points = {summary.kept(aim): spread for aim, spread in summary.by_epsilon.items()}
        shown.setdefault(summary.place, []).append(curve(summary, looks, points, notes.get(summary.variant, "")))
    return panels(shown, Axis("ε", _ticks(aims, summaries), True), summaries, summaries[0].metric, title)


def _ticks(aims: Sequence[float], summaries: Iterable[VariantSummary]) -> tuple[float, ...]:
    """The epsilons that were aimed at and, of several, those kept beyond them."""
    if len(aims) < 2:
        return tuple(aims)
    kept = {summary.kept(aim) for summary in summaries for aim in summary.by_epsilon if math.isfinite(aim)}
    beyond = [float(f"{end:.4g}") for end in (min(kept), max(kept)) if not aims[0] <= end <= aims[-1]]
    return tuple(sorted([*aims, *beyond]))


def _against_key(summaries: Sequence[VariantSummary], key: str, title: str) -> Figure:
    """One curve per variant at the middle epsilon; panels for the other swept keys."""
    middle = _middle(summaries)
    points: dict[_Key, dict[float, Spread]] = {}
    known: dict[_Key, VariantSummary] = {}
    for summary in summaries:
        spread = summary.at(middle)
        if key in summary.setting and spread is not None:
            others = ", ".join(f"{name} = {value}" for name, value in summary.setting.items() if name != key)
            points.setdefault((others, summary.variant), {})[float(summary.setting[key])] = spread
            known[others, summary.variant] = summary
    numbers = tuple(sorted({value for values in points.values() for value in values}))
    axis = Axis(key, numbers, numbers[0] > 0 and numbers[-1] >= 10 * numbers[0])
    shown = _curves(points, known, styles(summaries), _notes(summaries, middle))
    return panels(shown, axis, summaries, summaries[0].metric, _titled(title, middle))


def _by_number(rows: Sequence[Row], prefix: str) -> dict[float, list[VariantSummary]]:
    """Summaries of the metrics whose names are `prefix` and a number, such as a class share, numbers rising."""
    names = {row["metric"] for row in rows if row["metric"].startswith(prefix)}
    return {number: summarise(rows, name) for number, name in sorted((float(n.removeprefix(prefix)), n) for n in names)}


def _against(
    by_number: Mapping[float, Sequence[VariantSummary]],
    name: str,
    metric: str,
    title: str,
    references: Sequence[VariantSummary] = (),
) -> Figure:
    """One curve per variant at the middle epsilon, as in Iyer et al. 2016, Figs. 2 and 3; panels for the swept keys.

    `references` are the same at every number (Lacombe et al. 2021, Figure 1).
    """
    everything = [*(summary for summaries in by_number.values() for summary in summaries), *references]
    middle = _middle(everything)
    points: dict[_Key, dict[float, Spread]] = {}
    known: dict[_Key, VariantSummary] = {}
    for number, summaries in by_number.items():
        for summary in summaries:
            spread = summary.at(middle)
            if spread is not None:
                points.setdefault((summary.place, summary.variant), {})[number] = spread
                known[summary.place, summary.variant] = summary
    for summary in references:
        points[summary.place, summary.variant] = dict(summary.by_epsilon)
        known[summary.place, summary.variant] = summary
    axis = Axis(name, tuple(by_number), False)
    shown = _curves(points, known, styles(everything), _notes(everything, middle))
    return panels(shown, axis, everything, metric, _titled(title, middle), bars=False)


def _curves(
    points: Mapping[_Key, Mapping[float, Spread]],
    known: Mapping[_Key, VariantSummary],
    looks: Mapping[str, Style],
    notes: Mapping[str, str],
) -> dict[str, list[Curve]]:
    """The curves of each panel; `notes` by variant."""
    shown: dict[str, list[Curve]] = {}
    for (place, variant), values in points.items():
        shown.setdefault(place, []).append(curve(known[place, variant], looks, values, notes[variant]))
    return shown


def _notes(summaries: Iterable[VariantSummary], epsilon: float) -> dict[str, str]:
    """For each variant what it keeps in any panel where it aimed at an epsilon; empty where it meets its aim."""
    kept: dict[str, set[float]] = {}
    for summary in summaries:
        spread = summary.at(epsilon)
        kept.setdefault(summary.variant, set()).update(() if spread is None or spread.kept is None else (spread.kept,))
    return {
        variant: f"keeps {equals(*sorted({min(found), max(found)}))}" if found else ""
        for variant, found in kept.items()
    }


def _middle(summaries: Iterable[VariantSummary]) -> float:
    """The middle of the epsilons that there are; infinity without any."""
    finite = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    return finite[len(finite) // 2] if finite else math.inf


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
