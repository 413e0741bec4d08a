"""Figures of a run: a metric against epsilon, a swept number, the class share or the round; equal rows, equal files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.reports.curves import Axis
from scenarios.reports.panels import panels, styled
from scenarios.reports.summary import VariantSummary, at, epsilons, equals, is_number, summarise, swept
from scenarios.scores.metrics import AT_ROUND, AT_SHARE
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

    Errors at several class shares have l1-share too, as in Iyer et al. 2016, Figs. 2 and 3, and accuracies after
    several rounds accuracy-round, beside the baselines, as in Lacombe et al. 2021, Figure 1. A metric without rows has
    none. Settings of swept keys stand side by side as panels.
    """
    drawn: dict[str, Figure | None] = {}
    with styled():
        for metric in METRICS:
            if summaries := summarise(rows, metric):
                drawn[metric] = _against_epsilon(summaries, title)
                for key, values in swept(summaries).items():
                    if all(map(is_number, values)):
                        entries = [
                            (one.place_but_for(key), one, float(one.setting[key]))
                            for one in summaries
                            if key in one.setting
                        ]
                        drawn[f"{metric}-{key}"] = _at_middle(entries, summaries, key, metric, title)
        if shares := _numbered(rows, AT_SHARE):
            every = [one for _, one, _ in shares]
            drawn["l1-share"] = _at_middle(shares, every, "share of the varied class", L1.name, title, bars=False)
        if rounds := _numbered(rows, AT_ROUND):
            rounds += [(s.place, s, math.inf) for s in summarise(rows, ACCURACY.name) if s.protocol in BASELINES]
            every = [one for _, one, _ in rounds]
            drawn["accuracy-round"] = _at_middle(rounds, every, "round", ACCURACY.name, title, bars=False)
    return {name: figure for name, figure in drawn.items() if figure}


def _numbered(rows: Sequence[Row], prefix: str) -> list[_Entry]:
    """Variants at the numbers, such as class shares, that follow `prefix` in names of metrics; two or more of them."""
    names = {row["metric"] for row in rows if row["metric"].startswith(prefix)}
    numbers = sorted((float(name.removeprefix(prefix)), name) for name in names)
    found = [(one.place, one, number) for number, name in numbers for one in summarise(rows, name)]
    return found if len(numbers) > 1 else []


def _against_epsilon(summaries: Sequence[VariantSummary], title: str) -> Figure:
    """Curves over the epsilons that are kept; where one was aimed at, it names what keeps another."""
    aims = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    ticks = set(aims)
    if len(aims) > 1:  # of several, those kept beyond them have ticks, too
        kept = [one.kept(aim) for one in summaries for aim in one.by_epsilon if math.isfinite(aim)]
        ticks |= {float(f"{end:.4g}") for end in (min(kept), max(kept)) if not aims[0] <= end <= aims[-1]}
    placed = [(one.place, one, {one.kept(aim): found for aim, found in one.by_epsilon.items()}) for one in summaries]
    notes = _notes(summaries, aims[0]) if len(aims) == 1 else {}
    return panels(placed, summaries, notes, Axis("ε", tuple(sorted(ticks)), True), summaries[0].metric, title)


def _at_middle(
    entries: Sequence[_Entry],
    summaries: Sequence[VariantSummary],
    name: str,
    metric: str,
    title: str,
    *,
    bars: bool = True,
) -> Figure | None:
    """One curve per variant over the numbers of its entries at the middle epsilon of all summaries; None without any.

    `bars` is for swept numbers, whose axis may be logarithmic (`panels`).
    """
    finite = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    middle = finite[len(finite) // 2] if finite else math.inf
    placed = [(panel, one, {number: spread}) for panel, one, number in entries if (spread := one.at(middle))]
    if not placed:
        return None
    numbers = tuple(sorted({number for _, _, number in entries if math.isfinite(number)}))
    axis = Axis(name, numbers, bars and numbers[0] > 0 and numbers[-1] >= 10 * numbers[0])
    whole = f"{title}, {at(middle)}" if finite else title
    return panels(placed, summaries, _notes(summaries, middle), axis, metric, whole, bars=bars)


def _notes(summaries: Iterable[VariantSummary], epsilon: float) -> dict[str, str]:
    """For each variant that keeps other epsilons, in any panel, than the one that it aimed at, those that it keeps."""
    kept: dict[str, set[float]] = {}
    for summary in summaries:
        spread = summary.at(epsilon)
        if spread is not None and spread.kept is not None:
            kept.setdefault(summary.variant, set()).add(spread.kept)
    return {name: f"keeps {equals(*sorted({min(found), max(found)}))}" for name, found in kept.items()}
