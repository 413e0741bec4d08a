"""One self-contained page per run or comparison of runs: what was reached, who is protected, what it cost."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from federation.errors import InputError
from scenarios.figures import draw
from scenarios.results import Row, read_results
from scenarios.summary import NON_PRIVATE, VariantSummary, epsilons, summarise

_MEANINGFUL_EPSILON = 10.0
_METRICS = ("accuracy", "balanced_accuracy", "auc")
_BYTES = "bytes_per_party"
_UNITS = {
    "party": "one party, with everything it holds",
    "party_and_auxiliary_row": "one party, with everything it holds, and one auxiliary row, together",
    "row": "one row of one party",
    "label": "the label of one row",
}
_CHANGES = {"replace": "is replaced by anything else", "add_remove": "is added or taken away"}
_CHECKS = {
    "enforced": "enforced: the code makes it so",
    "checked": "checked: the run stops when it does not hold",
    "declared": "declared: nobody can check it here, whoever runs this vouches for it",
}


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
    accuracies = metrics["accuracy"]
    protected = _guarantees(stored.worlds)
    return {
        "name": name,
        "non_private": run["non_private"],
        "status": run["status"],
        "worlds": run["worlds"],
        "facts": {"started": run["started"], "seed": run["seed"], "engine": run["engine"], **run["versions"]},
        "readings": _readings(accuracies),
        "protection": _protection(_leading(accuracies), protected),
        "metrics": [_metric(metrics[name], stored.directory / "figures") for name in _METRICS if metrics[name]],
        "guarantees": protected,
        "together": [
            {"place": _place(world["swept"]), "budget": world["budget"], "totals": world["published_together"]}
            for world in stored.worlds
            if world["published_together"]
        ],
        "failures": run["failures"],
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


def _at(epsilon: float) -> str:
    return f"ε\u00a0=\u00a0{epsilon:g}"  # never broken over two lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(parts: Sequence[str]) -> str:
    """One, one and two, or one, two and three."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _metric(summaries: Sequence[VariantSummary], figures: Path) -> dict[str, Any]:
    """A metric's table (a header per epsilon, per variant its spreads) and its figures.

    Figures are images in data addresses: an image cannot run anything, whatever the names in it spell.
    """
    metric, columns = summaries[0].metric, epsilons(summaries)
    return {
        "name": metric.upper() if metric == "auc" else metric.replace("_", " ").capitalize(),
        "columns": [NON_PRIVATE if math.isinf(epsilon) else _at(epsilon) for epsilon in columns],
        "rows": [(summary, [summary.by_epsilon.get(epsilon) for epsilon in columns]) for summary in summaries],
        "figures": [
            (path.stem, "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode())
            for pattern in (f"{metric}.svg", f"{metric}-*.svg")
            for path in sorted(figures.glob(pattern))
        ],
    }


def _leading(summaries: Iterable[VariantSummary]) -> list[VariantSummary]:
    """The default variant in every setting; without a default, the first variant that has a guarantee."""
    private = [summary for summary in summaries if not summary.non_private]
    chosen = next((s.variant for s in private if s.default), private[0].variant if private else None)
    return [summary for summary in private if summary.variant == chosen]


def _readings(summaries: Sequence[VariantSummary]) -> list[tuple[str, str]]:
    """(setting, plain-language reading) of the accuracies, one per setting of the swept keys."""
    leading = _leading(summaries)
    if not leading:
        return [("", "No variant of this run has a guarantee.")]
    return [(s.place, _reading(s, [o for o in summaries if o.place == s.place and o is not s])) for s in leading]


def _reading(leading: VariantSummary, others: Sequence[VariantSummary]) -> str:
    name = f"The {'default' if leading.default else 'first'} variant, {leading.variant},"
    reached = _listed([f"{spread.mean:.3f} at {_at(epsilon)}" for epsilon, spread in leading.by_epsilon.items()])
    first = next(iter(leading.by_epsilon.values()))
    sentences = [
        f"{name} reaches a mean accuracy of {reached}, over {_count(first.releases, 'release')} at each ε "
        f"({_count(first.splits, 'split')} of the data)."
    ]
    by_protocol = {other.protocol: next(iter(other.by_epsilon.values())).mean for other in others}
    if "pooled" in by_protocol:
        sentences.append(
            f"The parties' classifier trained on all their rows together (pooled, {NON_PRIVATE}) reaches "
            f"{by_protocol['pooled']:.3f}."
        )
    if "individual" in by_protocol:
        alone = by_protocol["individual"]
        sentences.append(
            f"A party that trains on its own rows alone (individual, {NON_PRIVATE}) reaches {alone:.3f}; "
            f"{_passing(leading, alone)}."
        )
    sentences += _ahead(leading, [other for other in others if not other.non_private])
    return " ".join(sentences)


def _passing(leading: VariantSummary, alone: float) -> str:
    """From which epsilon on the variant is better than a party alone."""
    passed: float | None = None
    for epsilon, spread in reversed(list(leading.by_epsilon.items())):
        if spread.mean <= alone:
            break
        passed = epsilon
    return f"{leading.variant} is better from {_at(passed)} on" if passed else f"{leading.variant} is not better"


def _ahead(leading: VariantSummary, rivals: Sequence[VariantSummary]) -> list[str]:
    """Where the best other private variant lies above the interval of the leading one's mean; one split has none."""
    found: dict[str, list[str]] = {}
    for epsilon, spread in leading.by_epsilon.items():
        known = [(rival.by_epsilon[epsilon].mean, rival) for rival in rivals if epsilon in rival.by_epsilon]
        best, rival = max(known, key=lambda pair: pair[0], default=(0.0, leading))
        if spread.interval is not None and best > spread.interval[1]:
            weaker = f", which has δ = {rival.delta:g}," if rival.delta > leading.delta else ""
            found.setdefault(f"{rival.variant}{weaker}", []).append(f"{best:.3f} at {_at(epsilon)}")
    return [f"Ahead of it is {name} with {_listed(values)}." for name, values in found.items()]


def _protection(leading: Sequence[VariantSummary], guarantees: Sequence[Mapping[str, Any]]) -> str:
    """Who is protected against what change by one release of the leading variant."""
    known = next((g for g in guarantees if leading and g["variant"] == leading[0].variant), None)
    if known is None or known["reason"]:
        return "Nobody is protected by these releases."
    known_epsilons = leading[0].by_epsilon
    meaningful = [epsilon for epsilon in known_epsilons if epsilon <= _MEANINGFUL_EPSILON]
    factors = _listed([f"{math.exp(epsilon):.3g} at {_at(epsilon)}" for epsilon in meaningful]) if meaningful else ""
    if len(meaningful) < len(known_epsilons):
        factors += f"{'; ' if factors else ''}beyond ε = {_MEANINGFUL_EPSILON:g} that is hardly a promise"
    slack = f", up to a probability of δ = {leading[0].delta:g}" if leading[0].delta else ""
    return (
        f"Protected is {_UNITS.get(known['unit'], known['unit'])}: when it {_CHANGES.get(known['adjacency'])}, no "
        f"probability of anything that one release may tell changes by more than the factor e^ε ({factors}){slack}. "
        "This holds for one release, under the assumptions listed below."
    )


def _guarantees(worlds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry per variant, over all epsilons and swept settings."""
    entries: dict[str, list[tuple[str, dict[str, Any], list[str]]]] = {}
    for world in worlds:
        for release in world["releases"]:
            guarantee, place = release["guarantee"], _place(world["swept"])
            where = ", ".join(
                part for part in (place, _at(guarantee["epsilon"]) if "epsilon" in guarantee else "") if part
            )
            entries.setdefault(release["variant"], []).append((where, guarantee, release["checks"]))
    return [_guarantee(variant, releases) for variant, releases in entries.items()]


def _guarantee(variant: str, releases: Sequence[tuple[str, dict[str, Any], list[str]]]) -> dict[str, Any]:
    guarantee, checks = releases[0][1:]
    if guarantee.get("non_private"):
        return {"variant": variant, "reason": guarantee["reason"], "checks": checks}
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
        "mechanism": _listed(list(dict.fromkeys(known["mechanism"] for _, known, _ in releases))),
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


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _comparison(stored: Sequence[_Stored], names: Sequence[str]) -> dict[str, Any]:
    """The accuracies of the leading variants of all runs side by side, and what is missing there.

    A run without a private variant is compared by all that it has.
    """
    rows: list[Row] = []
    missing = []
    for run, name in zip(stored, names, strict=True):
        summaries = summarise(run.rows)
        leading = {summary.variant for summary in _leading(summaries) or summaries}
        rows += [
            {**row, "variant": f"{name}: {row['variant']}", "default": 0}
            for row in run.rows
            if row["metric"] == "accuracy" and row["variant"] in leading
        ]
        if not summaries:
            missing.append(f"{name} has no accuracies, so nothing of it stands here.")
        elif not _leading(summaries):
            missing.append(f"{name} has no variant with a guarantee; what stands here is {NON_PRIVATE}.")
    with TemporaryDirectory() as folder:
        draw(rows, Path(folder), "default variants")
        return {"missing": missing, "metric": _metric(summarise(rows), Path(folder)) if rows else None}
