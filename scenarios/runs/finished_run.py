"""A finished run in Python: its results, its directory and its models, and its export to MLflow.

The export to MLflow contains settings, results, ledger, report and guarantees.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federation.contract.errors import InputError
from federation.contract.files import is_folder, read_object
from scenarios.reports.assessment import Finding, Verdict
from scenarios.reports.summary import VariantSummary, summarise
from scenarios.reports.tables import results as as_table
from scenarios.runs.progress import Costs
from scenarios.scores.results import AIMED, COLUMNS, NOBODY, REMEDY, Row, read_results
from scenarios.settings.loader import flattened
from scenarios.settings.loader import load as read_scenario

if TYPE_CHECKING:
    from scenarios.scores.estimators import ReleasedClassifier, ReleasedRatioEstimator, ReleasedRegressor

_ROWS_SHOWN = 20
_VARIANTS_SHOWN = 4


class Results(list[Row]):
    """The rows of `results.csv` as dicts, which notebooks show as a table.

    Libraries of data frames take it as it is: `pandas.DataFrame(results)`, `polars.DataFrame(results)`, and what reads
    Arrow streams. An epsilon without a guarantee is infinite.

    Examples:
        >>> found = Results([{"variant": "soft_vote", "epsilon": 1.0, "metric": "accuracy", "value": 0.5}])
        >>> found
        Results(1 row)
        >>> from pyarrow import RecordBatchReader
        >>> RecordBatchReader.from_stream(found).read_all().column("value").to_pylist()
        [0.5]
    """

    def __repr__(self) -> str:
        return f"Results({len(self)} row{'' if len(self) == 1 else 's'})"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows as an Arrow stream (the PyCapsule interface)."""
        import pyarrow

        return pyarrow.Table.from_pylist(list(self)).__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        columns = list(self[0]) if self else list(COLUMNS)
        lines = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row.values()] for row in self]
        more = f"<p>{len(self)} rows, of which the first {_ROWS_SHOWN}</p>" if len(self) > _ROWS_SHOWN else ""
        return _html(columns, lines[:_ROWS_SHOWN]) + more


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run: its directory, its measured values, what it cost, and failed parties of all worlds by cause.

    `failed_variants` says which variants failed in which worlds, and why: `variant`, `world` and `cause` of each.
    `verdicts` are what the default's releases are worth, `sayings` the same in sentences, each with its
    finding, or None where it only helps to read that. Notebooks show the table of results.
    """

    directory: Path
    rows: list[Row]
    costs: Costs
    failures: dict[str, int]
    failed_variants: list[dict[str, str]]
    verdicts: list[Verdict] = field(default_factory=list)
    sayings: list[tuple[Finding | None, str]] = field(default_factory=list)

    @property
    def results(self) -> Any:
        """The rows as a pandas DataFrame when pandas is installed, as `Results`, a list of dicts, otherwise."""
        try:
            import pandas
        except ImportError:
            return Results(self.rows)
        return pandas.DataFrame(self.rows)

    def model(
        self, variant: str = "default", *, epsilon: float | None = None, split: int = 0, draw: int = 0
    ) -> ReleasedClassifier | ReleasedRegressor | ReleasedRatioEstimator:
        """A released model as a fitted estimator: `scenarios.load` of this run's directory.

        Models of the default variant stay, or all with `keep_models`. Raises `InputError` naming what there is.
        """
        from scenarios.scores.estimators import load

        return load(self.directory, variant, epsilon=epsilon, split=split, draw=draw)

    def __repr__(self) -> str:
        names = list(dict.fromkeys(row["variant"] for row in self.rows))
        more = f" and {len(names) - _VARIANTS_SHOWN} more" if len(names) > _VARIANTS_SHOWN else ""
        kept = sorted({row["epsilon"] for row in self.rows if math.isfinite(row["epsilon"])})
        promised = f"; epsilon {', '.join(f'{epsilon:g}' for epsilon in kept)}" if kept else ""
        name = self.rows[0]["scenario"] if self.rows else "nothing finished"
        return f"Run('{name}': {', '.join(names[:_VARIANTS_SHOWN])}{more}{promised}; in {self.directory})"

    def _repr_html_(self) -> str:
        table = as_table(summarise(self.rows))
        if not table.lines:
            return f"<p>{escape(repr(self))}: nothing was scored</p>"
        lines = [[" ".join([line.name, line.mark, *line.place]), *(c.text for c in line.cells)] for line in table.lines]
        where = f"<p>{escape(table.title)}; {escape(table.caption)}; <code>{escape(str(self.directory))}</code></p>"
        return _html([table.corner, *table.columns], lines) + where


def _html(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table of texts."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


_EXTRA = "pip install 'multiparty-federation[mlflow]'"
_LONGEST = 6000  # characters of a parameter, which MLflow limits
_BATCH = 100  # parameters or tags that it takes at a time
_DESCRIPTION = "mlflow.note.content"  # a tag that its pages show as the description
_UNCOVERED = (
    "The parties are simulated. What a guarantee covers is the released models alone: metrics, files and references of "
    "this run were computed from exact data and are covered by none."
)
_SEEDED = " Its noise follows from a seed that stands in the scenario, so that no model of it may be published either."
_TELLING = ("adjacency", "mechanism")  # of a guarantee in the ledger, beside what results.csv says

Plain = dict[str, Any]


def log_to_mlflow(run: Run | str | Path, *, experiment: str | None = None, tracking_uri: str | None = None) -> str:
    """Log a finished run, or the directory of one, to MLflow; the identifier of the MLflow run.

    `experiment` is one's name, by default the scenario's, and is made where there is none; `tracking_uri` a server or
    store, by default MLflow's own (MLFLOW_TRACKING_URI). The MLflow run has the scenario's keys as parameters and the
    run's files (results, ledger, report, scenario) as artefacts. Below it is one for each variant at each epsilon, and
    in each setting of a sweep, with the mean of every metric, its standard deviation `..._sd`, and the guarantee as
    tags `guarantee.epsilon`, `.delta`, `.unit`, `.adjacency` and `.mechanism`; `guarantee` is `none (NON-PRIVATE)`
    where there is none.

    Scores and files of a simulation are covered by no guarantee, as the description of each MLflow run says: whoever
    sees the server may see them. Unless MLflow is imported already its telemetry is switched off, as by
    MLFLOW_DISABLE_TELEMETRY=true; set that to false to send it. Raises `InputError` where MLflow is not installed or
    refuses, and for a directory without a finished run.

    Examples:
        >>> from scenarios import log_to_mlflow, run
        >>> done = run("quickstart")  # doctest: +SKIP
        >>> log_to_mlflow(done, tracking_uri="http://127.0.0.1:5000")  # doctest: +SKIP
        '6d0b2f6e4d1f4c5c8d2a3c3b3f1f9b0a'
    """
    directory = Path(run) if isinstance(run, str | Path) else run.directory
    if not is_folder(directory):
        raise InputError(f"there is no run in {directory}; {REMEDY}")
    rows = read_results(directory / "results.csv")
    settings = read_scenario(directory / "scenario.yaml").value
    state, ledger = (read_object(directory / name, REMEDY) for name in ("run.json", "ledger.json"))
    if "mlflow" not in sys.modules:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise InputError(f"log_to_mlflow needs MLflow, which is not installed; {_EXTRA}") from error
    try:
        log = _Log(MlflowClient(tracking_uri), experiment or str(settings["name"]))
        status = "FINISHED" if state["status"] == "done" else "FAILED"
        said = {_DESCRIPTION: _UNCOVERED + (_SEEDED if _seeded(ledger) else "")}
        source = {"mlflow.source.name": "federation", **said}
        parameters = {key: each if isinstance(each, str) else json.dumps(each) for key, each in flattened(settings)}
        whole = log.run(str(settings["name"]), parameters, {}, source, status)
        for path in sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith(".")):
            log.client.log_artifact(whole, str(path))
        for name, parameters, metrics, tags in _releases(rows, ledger):
            log.run(name, parameters, metrics, {"mlflow.parentRunId": whole, **said, **tags}, status)
    except MlflowException as error:
        why = " ".join(str(error).split())
        raise InputError(f"MLflow does not take the run: {why}") from error
    return whole


class _Log:
    """Writes MLflow runs of one experiment."""

    def __init__(self, client: Any, experiment: str) -> None:
        self.client = client
        found = client.get_experiment_by_name(experiment)
        self._experiment = client.create_experiment(experiment) if found is None else found.experiment_id

    def run(
        self,
        name: str,
        parameters: Mapping[str, str],
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        status: str,
    ) -> str:
        """A run that is over; its identifier."""
        from mlflow.entities import Metric, Param

        made: str = self.client.create_run(self._experiment, tags=dict(tags), run_name=name).info.run_id
        known = [Param(key, value[:_LONGEST]) for key, value in parameters.items()]
        for start in range(0, len(known), _BATCH):
            self.client.log_batch(made, params=known[start : start + _BATCH])
        self.client.log_batch(made, metrics=[Metric(key, value, 0, 0) for key, value in metrics.items()])
        self.client.set_terminated(made, status)
        return made


def _releases(
    rows: Sequence[Row], ledger: Plain
) -> Iterator[tuple[str, dict[str, str], dict[str, float], dict[str, str]]]:
    """The name, parameters, metrics and tags of each variant at each epsilon and in each setting."""
    names = dict.fromkeys(row["metric"] for row in rows if row["metric"] != AIMED)
    found: dict[tuple[str, str, float], tuple[VariantSummary, dict[str, float]]] = {}
    for metric in names:
        for summary in summarise(rows, metric):
            for aim, spread in summary.by_epsilon.items():
                _, values = found.setdefault((summary.variant, summary.place, aim), (summary, {}))
                values[metric] = spread.mean
                if spread.deviation is not None:
                    values[f"{metric}_sd"] = spread.deviation
    for (variant, place, aim), (summary, values) in found.items():
        promised = "" if math.isinf(aim) else f"epsilon {aim:g}"
        name = ", ".join(part for part in (variant, promised, place) if part)
        parameters = {"variant": variant, "protocol": summary.protocol, "epsilon": f"{aim:g}", **summary.setting}
        finite = {metric: value for metric, value in values.items() if math.isfinite(value)}
        yield name, parameters, finite, _guarantee(summary, aim, ledger)


def _guarantee(summary: VariantSummary, aim: float, ledger: Plain) -> dict[str, str]:
    """What the releases of a variant that aimed at an epsilon promise, as tags."""
    default = {"default": str(summary.default).lower()}
    if summary.unit == NOBODY:
        return {**default, "guarantee": "none (NON-PRIVATE)"}
    kept = summary.kept(aim)
    tags = {"epsilon": f"{kept:g}", "unit": summary.unit}
    for world in ledger["worlds"]:
        if {key: str(value) for key, value in world["swept"].items()}.items() >= summary.setting.items():
            for entry in world["releases"]:
                told = entry["guarantee"]
                if entry["variant"] == summary.variant and math.isclose(told.get("epsilon", math.inf), kept):
                    tags["delta"] = f"{told['delta']:g}"
                    tags |= {key: str(told[key]) for key in _TELLING}
    told_all = ", ".join(f"{key}={value}" for key, value in tags.items())
    return {**default, "guarantee": told_all, **{f"guarantee.{key}": value for key, value in tags.items()}}


def _seeded(ledger: Plain) -> bool:
    """Whether anybody who has the scenario can take the noise of a release away."""
    releases = (entry["guarantee"] for world in ledger["worlds"] for entry in world["releases"])
    return any(told.get("parameters", {}).get("entropy") == "seed" for told in releases)
