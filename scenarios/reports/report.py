"""One self-contained page per run or comparison of runs: what was reached, who is protected, what it cost."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from federation.contract.errors import InputError
from scenarios.reports.figures import draw
from scenarios.reports.pivots import pivots
from scenarios.reports.readings import at, leaders, listed, protection, readings
from scenarios.reports.summary import CLAIMING, KEEPING, NON_PRIVATE, VariantSummary, epsilons, summarise
from scenarios.scores.metrics import heading, primary, shown
from scenarios.scores.results import AIMED, Row, read_results
from scenarios.scores.tasks import ACCURACY, L1, MSE

_METRICS = (ACCURACY.name, "balanced_accuracy", "auc", L1.name, MSE.name)
_BYTES = "bytes_per_party"
_CHECKS = {
    "enforced": "enforced: the code makes it so",
    "checked": "checked: the run stops when it does not hold",
    "declared": "declared: nobody can check it here, whoever runs this vouches for it",
}
_Placed = tuple[str, dict[str, Any], list[str]]  # where a release was made, its guarantee, what was verified


@dataclass(frozen=True)
class _Stored:
    """The artefacts of one run directory."""

    directory: Path
    rows: list[Row]
    worlds: list[dict[str, Any]]
    run: dict[str, Any]
    scenario: str


def write_report(directories: Sequence[Path], path: Path, finished: Mapping[Path, list[Row]] | None = None) -> Path:
    """Write the page about one run, or comparing several, to `path`; returns `path`.

    Reads results.csv, ledger.json, run.json, scenario.yaml and the figures of each directory. Equal artefacts give
    equal pages. Raises `InputError` for a directory named twice, missing or damaged artefacts and a path that cannot
    be written. `finished`: what `finished_rows` has read already.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    rows = finished_rows(directories) if finished is None else finished
    stored = [_read(directory, rows[directory]) for directory in directories]
    names = _names(stored)
    runs = [_guarded(run, name) for run, name in zip(stored, names, strict=True)]
    environment = Environment(
        loader=PackageLoader("scenarios"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html").render(
        title=names[0] if len(names) == 1 else f"Comparison of {len(names)} runs",
        non_private=any(run["non_private"] for run in runs),
        exposure=_exposure([guarantee for run in runs for guarantee in run["guarantees"]]),
        comparison=_comparison(stored, names) if len(names) > 1 else None,
        runs=runs,
        checks=_CHECKS,
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the report to {path}: {error.strerror}; name another --out") from error
    return path


def finished_rows(directories: Sequence[Path]) -> dict[Path, list[Row]]:
    """The rows of results.csv of each run directory.

    Raises `InputError` for a directory named twice, or without anything finished.
    """
    if len({directory.resolve() for directory in directories}) < len(directories):
        raise InputError("a run cannot be compared with itself; name each directory once")
    found = {}
    for directory in directories:
        path = directory / "results.csv"
        found[directory] = read_results(path) if path.is_file() else []
        if not found[directory]:
            raise InputError(
                f"there is no finished run in {directory}; `federation run --resume` finishes an interrupted one"
            )
    return found


def _read(directory: Path, rows: list[Row]) -> _Stored:
    return _Stored(
        directory,
        rows,
        _object(directory / "ledger.json").get("worlds", []),
        _object(directory / "run.json"),
        _text(directory / "scenario.yaml"),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}; name a directory that a run has written") from error


def _object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_text(path))
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged: it must hold an object, got {type(content).__name__}")
    return content


def _names(stored: Sequence[_Stored]) -> list[str]:
    """Scenario names; the directory is added where several runs are of one scenario."""
    names = [str(run.rows[0].get("scenario", run.directory.name)) for run in stored]
    return [
        name if names.count(name) == 1 else f"{name} in {run.directory}"
        for name, run in zip(names, stored, strict=True)
    ]


def _guarded(stored: _Stored, name: str) -> dict[str, Any]:
    try:
        return _view(stored, name)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"the artefacts in {stored.directory} do not belong together: {error!r}") from error


def _view(stored: _Stored, name: str) -> dict[str, Any]:
    """Everything the template says about one run, as plain values."""
    run = stored.run
    metrics = {metric: summarise(stored.rows, metric) for metric in (*_METRICS, _BYTES)}
    metric = primary(stored.rows)
    compared = metrics[metric.name]
    protected = _guarantees(stored.worlds)
    return {
        "name": name,
        "non_private": run["non_private"],
        "status": run["status"],
        "worlds": run["worlds"],
        "facts": {"started": run["started"], "seed": run["seed"], "engine": run["engine"], **run["versions"]},
        "readings": readings(compared, metric),
        "protection": protection(leaders(compared), protected),
        "exposure": _exposure(protected),
        "metrics": [_metric(metrics[name], stored.directory / "figures") for name in _METRICS if metrics[name]],
        "guarantees": protected,
        "together": [
            {"place": _place(world["swept"]), "budget": world["budget"], "totals": world["published_together"]}
            for world in stored.worlds
            if world["published_together"]
        ],
        "failures": run["failures"],
        "failed_variants": run.get("failed_variants", []),
        "phases": {
            phase: (seconds, run["peak_memory_mebibytes"].get(phase)) for phase, seconds in run["seconds"].items()
        },
        "bytes": [
            (summary.variant, summary.place, next(iter(summary.by_epsilon.values())).mean)
            for summary in metrics[_BYTES]
        ],
        "scenario": stored.scenario,
    }


def _place(swept: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in swept.items())


def _metric(summaries: Sequence[VariantSummary], figures: Path) -> dict[str, Any]:
    """A metric's table (a header per epsilon, per variant its spreads) and its figures.

    Figures are images in data addresses: an image cannot run anything, whatever the names in it spell.
    """
    metric, columns = summaries[0].metric, epsilons(summaries)
    name = heading(metric)
    return {
        "name": name[0].upper() + name[1:],
        "key": metric,
        "shown": partial(shown, metric),
        "notes": [
            *([CLAIMING] if any(summary.claiming for summary in summaries) else []),
            *([KEEPING] if any(one.note for summary in summaries for one in summary.by_epsilon.values()) else []),
        ],
        "columns": [NON_PRIVATE if math.isinf(epsilon) else at(epsilon) for epsilon in columns],
        "rows": [(summary, [summary.by_epsilon.get(epsilon) for epsilon in columns]) for summary in summaries],
        "pivots": pivots(summaries),
        "figures": [
            (path.stem, "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode())
            for pattern in (f"{metric}.svg", f"{metric}-*.svg")
            for path in sorted(figures.glob(pattern))
        ],
    }


def _exposure(guarantees: Sequence[Mapping[str, Any]]) -> str:
    """Why something of a run that is not private is not."""
    unkept = [bool(guarantee["claimed"]) for guarantee in guarantees if guarantee["reason"]]
    reasons = [] if unkept and all(unkept) else ["noise is off for at least one variant"]
    if any(unkept):
        reasons.append("at least one variant claims a guarantee that it does not keep")
    return listed(reasons)


def _guarantees(worlds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry per variant, over all epsilons and swept settings."""
    entries: dict[str, list[_Placed]] = {}
    for world in worlds:
        for release in world["releases"]:
            guarantee, place = release["guarantee"], _place(world["swept"])
            epsilon = guarantee.get("claimed", [guarantee.get("epsilon")])[0]
            where = ", ".join(part for part in (place, "" if epsilon is None else at(epsilon)) if part)
            entries.setdefault(release["variant"], []).append((where, guarantee, release["checks"]))
    return [_guarantee(variant, releases) for variant, releases in entries.items()]


def _guarantee(variant: str, releases: Sequence[_Placed]) -> dict[str, Any]:
    guarantee, checks = releases[0][1:]
    if any(known.get("non_private") for _, known, _ in releases):
        return {"variant": variant, "reason": _reasons(releases), "claimed": _claims(releases), "checks": checks}
    names = list(dict.fromkeys(name for _, known, _ in releases for name in known["parameters"]))
    assumptions: dict[int, dict[tuple[str, str], list[str]]] = {}
    for where, known, _ in releases:
        for assumption in known["assumptions"]:
            texts = assumptions.setdefault(assumption["number"], {})
            texts.setdefault((assumption["text"], assumption["check"]), []).append(where)
    return {
        "variant": variant,
        "reason": "",
        "unit": guarantee["unit"],
        "adjacency": guarantee["adjacency"],
        "mechanism": listed(list(dict.fromkeys(known["mechanism"] for _, known, _ in releases))),
        "parameters": ["δ", *names],
        "rows": [
            (where, [_number(known["delta"]), *(_number(known["parameters"].get(name)) for name in names)])
            for where, known, _ in releases
        ],
        "assumptions": [
            (number, [(*kept, "; ".join(where) if len(texts) > 1 else "") for kept, where in texts.items()])
            for number, texts in sorted(assumptions.items())
        ],
        "checks": checks,
    }


def _reasons(releases: Sequence[_Placed]) -> str:
    """Why there is no guarantee, and where unless that is the same for all releases."""
    found: dict[str, list[str]] = {}
    for where, known, _ in releases:
        found.setdefault(known.get("reason", ""), []).append(where)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{', '.join(where)}: {reason}" for reason, where in found.items() if reason)


def _claims(releases: Sequence[_Placed]) -> str:
    """What is claimed without being kept; empty where nothing is."""
    claims = [known["claimed"] for _, known, _ in releases if "claimed" in known]
    return "; ".join(dict.fromkeys(f"{at(epsilon)}, δ = {delta:g}" for epsilon, delta in claims))


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _comparison(stored: Sequence[_Stored], names: Sequence[str]) -> dict[str, Any]:
    """The leading variants of all runs side by side, those with one metric together, and what is missing there.

    A run without a private variant is compared by all that it has.
    """
    rows: list[Row] = []
    missing = []
    for run, name in zip(stored, names, strict=True):
        metric, summaries = primary(run.rows), summarise(run.rows)
        leading = leaders(summaries)
        shown = {summary.variant for summary in leading or summaries}
        rows += [
            {**row, "variant": f"{name}: {row['variant']}", "default": 0}
            for row in run.rows
            if row["metric"] in (metric.name, AIMED) and row["variant"] in shown
        ]
        if not summaries:
            missing.append(f"{name} has no {metric.several}, so nothing of it stands here.")
        elif not leading:
            missing.append(f"{name} has no variant with a guarantee; what stands here is {NON_PRIVATE}.")
    with TemporaryDirectory() as folder:
        draw(rows, Path(folder), "default variants")
        found = [summaries for name in _METRICS if (summaries := summarise(rows, name))]
        return {"missing": missing, "metrics": [_metric(summaries, Path(folder)) for summaries in found]}
