"""A finished run, as Python sees it: what it measured, where it is, and its models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.reports.summary import summarise
from scenarios.reports.tables import results as as_table
from scenarios.reports.verdicts import Finding, Verdict
from scenarios.runs.costs import Costs
from scenarios.scores.results import COLUMNS, Row

if TYPE_CHECKING:  # imported where it is used, because it brings scikit-learn
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
