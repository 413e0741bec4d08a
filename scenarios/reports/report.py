"""The self-contained page about a run or a comparison of runs: what was reached, who is protected, what it cost."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from federation.contract.errors import InputError, writing
from federation.contract.files import is_file, read_object, read_text
from scenarios.reports.assessment_texts import MARKS, bag_remarks
from scenarios.reports.evidence import spent_over_periods
from scenarios.reports.figures import chart, plots
from scenarios.reports.guarantee_page import GUARANTEE, template
from scenarios.reports.summary import NON_PRIVATE, summarise
from scenarios.reports.tables import (
    Cell,
    Line,
    Table,
    fitting,
    leaders,
    listed,
    measured,
    pivots,
    protection,
    results,
    said,
)
from scenarios.scores.results import AIMED, BALANCED, REMEDY, UNSCORED, Row, heading, primary, read_results
from scenarios.scores.scoring import ACCURACY, L1, MSE
from scenarios.settings.protocol_options import CONSTANT

_METRICS = (ACCURACY.name, BALANCED, "auc", L1.name, MSE.name)
_CHECKS = {
    "enforced": "enforced: the code makes it so",
    "checked": "checked: the run stops when it does not hold",
    "declared": "declared: nobody can check it here, whoever runs this vouches for it",
}
_UNTOLD = "What they are worth is not said: there is no baseline constant beside them."
_ALWAYS = "bytes_per_party"  # a metric of every release, scored or not
_SAID = ("non_private", "status", "worlds", "failures", "seconds", "peak_memory_mebibytes")  # of run.json, as it is
_RULE = ("protocol", "default", "rule", "validated")  # of each entry of "defaults" in run.json


def write_report(directories: Sequence[Path], path: Path, finished: Mapping[Path, list[Row]] | None = None) -> Path:
    """Write the page about one run, or comparing several, to `path`; returns `path`.

    Reads results.csv, ledger.json, run.json and scenario.yaml of each directory. Equal artefacts give
    equal pages. Raises `InputError` for a directory named twice, missing or damaged artefacts and a path that cannot
    be written. `finished`: what `finished_rows` has read already.
    """
    from jinja2 import TemplateError

    stored = finished_rows(directories) if finished is None else finished
    try:
        page = _page(stored, path)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, TemplateError) as error:
        raise InputError(
            f"the artefacts in {', '.join(map(str, stored))} do not belong together: {error!r}; {REMEDY}"
        ) from error
    with writing(f"the report to {path}", "name another --out"):
        path.write_text(page, encoding="utf-8")
    return path


def _page(stored: Mapping[Path, list[Row]], path: Path) -> str:
    names = _names(stored)
    runs = [
        _view(directory, stored[directory], name)
        | {"officer": quote(Path(os.path.relpath(directory / GUARANTEE, path.parent)).as_posix())}
        for directory, name in names.items()
    ]
    return template("report.html").render(
        title=runs[0]["name"] if len(runs) == 1 else f"Comparison of {len(runs)} runs",
        non_private=any(run["non_private"] for run in runs),
        exposure=_exposure([guarantee for run in runs for guarantee in run["guarantees"]]),
        comparison=_comparison(stored, names) if len(runs) > 1 else None,
        runs=runs,
        checks=_CHECKS,
    )


def finished_rows(directories: Sequence[Path]) -> dict[Path, list[Row]]:
    """The rows of results.csv of each run directory.

    Raises `InputError` for a directory named twice, or without anything finished.
    """
    if len(set(map(os.path.realpath, directories))) < len(directories):
        raise InputError("a run cannot be compared with itself; name each directory once")
    found = {}
    for directory in directories:
        path = directory / "results.csv"
        found[directory] = read_results(path) if is_file(path) else []
        if not found[directory]:
            raise InputError(
                f"there is no finished run in {directory}; `federation run --resume` finishes an interrupted one"
            )
    return found


def _names(stored: Mapping[Path, list[Row]]) -> dict[Path, str]:
    """Scenario names; the directory is added where several runs are of one scenario."""
    names = {directory: str(rows[0]["scenario"]) for directory, rows in stored.items()}
    several = Counter(names.values())
    return {at: name if several[name] == 1 else f"{name} in {at}" for at, name in names.items()}


def _view(directory: Path, rows: list[Row], name: str) -> dict[str, Any]:
    """Everything the template says about one run, as plain values."""
    ledger, run = (read_object(directory / name, REMEDY) for name in ("ledger.json", "run.json"))
    worlds = ledger.get("worlds", [])
    metric = primary(rows)
    compared, protected = summarise(rows, metric.name), _guarantees(worlds)
    return {
        **{key: run[key] for key in _SAID},
        "name": name,
        "facts": {"started": run["started"], "seed": run["seed"], "engine": run["engine"], **run["versions"]},
        "sayings": [
            (MARKS[one["finding"]], one["finding"] or "beside", one["sentence"]) for one in run.get("sayings", [])
        ],
        "readings": [
            measured(leaders(compared)) if compared else UNSCORED,
            *([_UNTOLD] if compared and CONSTANT not in {row["protocol"] for row in rows} else []),
            *(f"Remark: {line}." for line in bag_remarks(rows)),
        ],
        "protection": protection(leaders(compared or summarise(rows, _ALWAYS)), protected),
        "exposure": _exposure(protected),
        "metrics": _metrics(rows, name),
        "names": {one.variant: one.name for one in [*compared, *summarise(rows, _ALWAYS)]},
        "guarantees": protected,
        "together": [
            {"place": _place(world["swept"]), "budget": world["budget"], "totals": world["published_together"]}
            for world in worlds
            if world["published_together"]
        ],
        "over_periods": spent_over_periods(ledger),
        "failed_variants": run.get("failed_variants", []),
        "defaults": [[rule[part] for part in _RULE] for rule in run.get("defaults", [])],
        "bytes": [
            (summary.name, summary.place, next(iter(summary.by_epsilon.values())).mean)
            for summary in summarise(rows, _ALWAYS)
        ],
        "origins": run.get("origins", []),
        "scenario": read_text(directory / "scenario.yaml", REMEDY),
    }


def _place(swept: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in swept.items())


def _metrics(rows: Sequence[Row], page: str) -> list[dict[str, Any]]:
    """Return tables and charts of each metric that rows have, the leading one first; `page` is unique on the page."""
    found = []
    leading = primary(rows).name
    ordered = [leading, "auc"] if leading == BALANCED else [leading]  # accuracy of uneven classes comes last
    drawn = plots(rows)
    for metric in dict.fromkeys([*ordered, *_METRICS]):
        if summaries := summarise(rows, metric):
            name = heading(metric)
            charts = [chart(key, plot, page) for key, plot in drawn.items() if key.split("-")[0] == metric]
            tables = {"results": fitting(results(summaries)), "pivots": list(map(fitting, pivots(summaries)))}
            found.append({"name": name[0].upper() + name[1:], **tables, "charts": charts})
    return found


def _exposure(guarantees: Sequence[Mapping[str, Any]]) -> str:
    """Why something of a run that is not private is not."""
    unkept = [bool(guarantee["claimed"]) for guarantee in guarantees if guarantee["reason"]]
    reasons = [] if unkept and all(unkept) else ["noise is off for at least one variant"]
    if any(unkept):
        reasons.append("at least one variant claims a guarantee that it does not keep")
    return listed(reasons)


def _guarantees(worlds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry per variant, over all epsilons and swept settings."""
    entries: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    checks: dict[str, list[str]] = {}
    for world in worlds:
        for release in world["releases"]:
            guarantee, variant = release["guarantee"], release["variant"]
            epsilon = guarantee.get("claimed", [guarantee.get("epsilon")])[0]
            where = filter(None, (_place(world["swept"]), "" if epsilon is None else said(epsilon)))
            entries.setdefault(variant, []).append((", ".join(where), guarantee))
            checks.setdefault(variant, release["checks"])
    return [{"variant": name, "checks": checks[name], **_guarantee(found)} for name, found in entries.items()]


def _guarantee(releases: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What releases of a variant promise, or why they do not, from where each was made and its guarantee."""
    promised = [known for _, known in releases]
    if any(known.get("non_private") for known in promised):
        claims = [known["claimed"] for known in promised if "claimed" in known]
        texts = dict.fromkeys(f"{said(epsilon)}, δ = {delta:g}" for epsilon, delta in claims)
        return {"reason": _reasons(releases), "claimed": "; ".join(texts)}
    names = list(dict.fromkeys(name for known in promised for name in known["parameters"]))
    assumptions: dict[int, dict[tuple[str, str], list[str]]] = {}
    for where, known in releases:
        for one in known["assumptions"]:
            texts_of = assumptions.setdefault(one["number"], {})
            texts_of.setdefault((one["text"], one["check"]), []).append(where)
    lines = [
        Line(where, [Cell(_number(known["delta"])), *(Cell(_number(known["parameters"].get(name))) for name in names)])
        for where, known in releases
    ]
    return {
        "reason": "",
        "unit": promised[0]["unit"],
        "adjacency": promised[0]["adjacency"],
        "mechanism": listed(list(dict.fromkeys(known["mechanism"] for known in promised))),
        "table": fitting(Table("", "release", ["δ", *names], lines, "Parameters of the mechanism")),
        "assumptions": [
            (number, [(*kept, "; ".join(where) if len(texts) > 1 else "") for kept, where in texts.items()])
            for number, texts in sorted(assumptions.items())
        ],
    }


def _reasons(releases: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Why there is no guarantee, and where unless that is the same for all releases."""
    found: dict[str, list[str]] = {}
    for where, known in releases:
        found.setdefault(known.get("reason", ""), []).append(where)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{', '.join(where)}: {reason}" for reason, where in found.items() if reason)


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _comparison(stored: Mapping[Path, list[Row]], names: Mapping[Path, str]) -> dict[str, Any]:
    """The leading variants of all runs side by side, those with one metric together, and what is missing there.

    A run without a private variant is compared by all that it has.
    """
    rows: list[Row] = []
    missing = []
    for directory, name in names.items():
        metric, summaries = primary(stored[directory]), summarise(stored[directory])
        leading = leaders(summaries)
        short = {summary.variant: summary.name for summary in leading or summaries}
        rows += [
            {**row, "variant": f"{name}: {short[row['variant']]}", "default": 0}
            for row in stored[directory]
            if row["metric"] in (metric.name, AIMED) and row["variant"] in short
        ]
        if not summaries:
            missing.append(f"{name} has no {metric.several}, so nothing of it stands here.")
        elif not leading:
            missing.append(f"{name} has no variant with a guarantee; what stands here is {NON_PRIVATE}.")
    return {"missing": missing, "metrics": _metrics(rows, "")}
