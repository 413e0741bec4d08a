"""Figures of a run: a metric against epsilon, a swept number, the class share or the round; equal rows, equal files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.reports.axes import save, styled
from scenarios.reports.curves import Axis, Placed, Plot, panels
from scenarios.reports.looks import ALL, chosen, groups, looks
from scenarios.reports.panels import figure
from scenarios.reports.summary import VariantSummary, at, differing, epsilons, equals, is_number, middle_of, summarise
from scenarios.scores.metrics import AT_ROUND, AT_SHARE, primary
from scenarios.scores.results import Row
from scenarios.scores.tasks import ACCURACY, L1, MSE
from scenarios.settings.protocol_options import BASELINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS = (ACCURACY.name, "balanced_accuracy", L1.name, MSE.name)
_DPI = 150
_Entry = tuple[str, VariantSummary, float]  # a panel, a variant in it, and where its value stands on the axis


def draw(rows: Sequence[Row], directory: Path, title: str) -> list[Path]:
    """Write every figure of `figures` as PNG (150 dpi) and SVG into `directory`; the paths written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, drawn in figures(rows, title).items():
        with styled():
            written += save(drawn, directory / name, ("png", "svg"), _DPI)
    return written


def figures(rows: Sequence[Row], title: str) -> dict[str, Figure]:
    """The `plots` as figures for papers, by file name."""
    with styled():
        return {name: figure(plot, title) for name, plot in plots(rows).items()}


def plots(rows: Sequence[Row]) -> dict[str, Plot]:
    """Figures before they are drawn: METRIC over epsilon, and at the middle epsilon METRIC-KEY for swept numbers KEY.

    Errors at several class shares have l1-share too, as in Iyer et al. 2016, Figs. 2 and 3, and accuracies after
    several rounds accuracy-round, beside the baselines, as in Lacombe et al. 2021, Figure 1. A metric without rows has
    none. Settings of swept keys stand side by side as panels. Each shows six variants at most (`looks.chosen`); where
    there are more, another one, whose name ends in `ALL`, shows all of them in small groups side by side.
    """
    return dict(_plots(rows))


def _plots(rows: Sequence[Row]) -> Iterator[tuple[str, Plot]]:
    leading, measured = primary(rows).name, {metric: summarise(rows, metric) for metric in METRICS}
    compared = summarise(rows, leading)  # decide which variants are shown first, and how each looks, in every figure
    compared += [one for metric in METRICS if metric != leading for one in measured[metric]]
    shares, rounds = _numbered(rows, AT_SHARE), _numbered(rows, AT_ROUND)
    compared += [one for _, one, _ in (*shares, *rounds)]
    for metric, summaries in measured.items():
        if summaries:
            yield from _against_epsilon(metric, summaries, compared)
            for key, values in differing(one.setting for one in summaries).items():
                if all(map(is_number, values)):
                    entries = [
                        (one.place_but_for(key), one, float(one.setting[key]))
                        for one in summaries
                        if key in one.setting
                    ]
                    yield from _at_middle(f"{metric}-{key}", entries, summaries, compared, key, metric)
    if shares:
        every = [one for _, one, _ in shares]
        yield from _at_middle("l1-share", shares, every, compared, "share of the varied class", L1.name, bars=False)
    if rounds:
        rounds += [(s.place, s, math.inf) for s in measured[ACCURACY.name] if s.protocol in BASELINES]
        every = [one for _, one, _ in rounds]
        yield from _at_middle("accuracy-round", rounds, every, compared, "round", ACCURACY.name, bars=False)


def _numbered(rows: Sequence[Row], prefix: str) -> list[_Entry]:
    """Variants at the numbers, such as class shares, that follow `prefix` in names of metrics; two or more of them."""
    names = {row["metric"] for row in rows if row["metric"].startswith(prefix)}
    numbers = sorted((float(name.removeprefix(prefix)), name) for name in names)
    found = [(one.place, one, number) for number, name in numbers for one in summarise(rows, name)]
    return found if len(numbers) > 1 else []


def _against_epsilon(
    name: str, summaries: Sequence[VariantSummary], compared: Sequence[VariantSummary]
) -> Iterator[tuple[str, Plot]]:
    """Curves over the epsilons that are kept; where one was aimed at, it names what keeps another."""
    aims = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    ticks = set(aims)
    if len(aims) > 1:  # of several, those kept beyond them have ticks, too
        kept = [one.kept(aim) for one in summaries for aim in one.by_epsilon if math.isfinite(aim)]
        ticks |= {float(f"{end:.4g}") for end in (min(kept), max(kept)) if not aims[0] <= end <= aims[-1]}
    placed = [(one.place, one, {one.kept(aim): found for aim, found in one.by_epsilon.items()}) for one in summaries]
    notes = _notes(summaries, aims[0]) if len(aims) == 1 else {}
    plot = Plot((), Axis("ε", tuple(sorted(ticks)), True), summaries[0].metric)
    yield from _with_all(name, plot, placed, compared, notes)


def _at_middle(
    name: str,
    entries: Sequence[_Entry],
    summaries: Sequence[VariantSummary],
    compared: Sequence[VariantSummary],
    key: str,
    metric: str,
    *,
    bars: bool = True,
) -> Iterator[tuple[str, Plot]]:
    """One curve per variant over the numbers of its entries at the middle epsilon of all summaries, if there are any.

    `bars` is for swept numbers, whose axis may be logarithmic.
    """
    middle = middle_of(summaries)
    placed = [(panel, one, {number: spread}) for panel, one, number in entries if (spread := one.at(middle))]
    if placed:
        axis = Axis.of(key, [number for _, _, number in entries])
        plot = Plot(
            (),
            axis if bars else replace(axis, logarithmic=False),
            metric,
            at(middle) if math.isfinite(middle) else "",
            bars,
        )
        yield from _with_all(name, plot, placed, compared, _notes(summaries, middle))


def _with_all(
    name: str, plot: Plot, placed: Sequence[Placed], compared: Sequence[VariantSummary], notes: Mapping[str, str]
) -> Iterator[tuple[str, Plot]]:
    """The plot with panels of the variants that are shown first, and one of all in groups where there are more."""
    present = {one.variant for _, one, _ in placed}
    there = [one for one in compared if one.variant in present]
    known, parts = looks(compared), groups(there)
    yield name, replace(plot, panels=panels(placed, known, notes, chosen(there)))
    if parts and plot.of_one_value:  # with a row for each no group is needed
        yield f"{name}{ALL}", replace(plot, panels=panels(placed, known, notes, present))
    elif parts:
        every = [panel for names in parts for panel in panels(placed, known, notes, names)]
        yield f"{name}{ALL}", replace(plot, panels=tuple(every))


def _notes(summaries: Iterable[VariantSummary], epsilon: float) -> dict[str, str]:
    """For each variant that keeps other epsilons, in any panel, than the one that it aimed at, those that it keeps."""
    kept: dict[str, set[float]] = {}
    for summary in summaries:
        spread = summary.at(epsilon)
        if spread is not None and spread.kept is not None:
            kept.setdefault(summary.variant, set()).add(spread.kept)
    return {name: f"keeps {equals(*sorted({min(found), max(found)}))}" for name, found in kept.items()}
