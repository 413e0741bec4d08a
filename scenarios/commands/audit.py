"""`federation audit`: try to refute the claim of each mechanism, and show that known mistakes are refuted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from federation.contract.errors import InputError, nearest_name

if TYPE_CHECKING:
    from federation.mechanisms.audit.audited import Verdict

_DIMENSION = re.compile(r"_\d+d$")
_OTHER_NAMES = {"gaussian": "discrete_gaussian"}


def audit(
    target: str | None = typer.Argument(None, help="A mechanism or a scenario; all mechanisms when omitted."),
    runs: int | None = typer.Option(None, min=1000, help="Runs on each of the two neighbours."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """Check claimed epsilons against lower bounds from many runs; exit code 1 if one is refuted."""
    from federation.mechanisms.audit.audited import RUNS, audited_mechanisms, judge

    mechanisms = audited_mechanisms()
    wanted = None if target is None else _mechanism(target)
    chosen = [case for name, case in mechanisms.items() if wanted is None or wanted in (name, _family(name))]
    if not chosen and target is not None:
        from scenarios.audits.audit_scenario import audit_scenario

        _require_scenario(target, mechanisms)
        raise typer.Exit(audit_scenario(target, as_json, runs))
    verdicts = [judge(case, runs=runs or RUNS) for case in chosen]
    if as_json:
        typer.echo(json.dumps([_record(verdict) for verdict in verdicts], indent=2))
    else:
        Console().print(_table(verdicts))
    raise typer.Exit(0 if all(verdict.as_expected for verdict in verdicts) else 1)


def _mechanism(name: str) -> str:
    """A mechanism as `federation privacy` spells it, in the spelling of the audited ones."""
    spelled = name.replace("-", "_")
    return _OTHER_NAMES.get(spelled, spelled)


def _family(name: str) -> str:
    """l2_gamma, which stands for the cases l2_gamma_2d and l2_gamma_3d; other names stand for themselves."""
    return _DIMENSION.sub("", name)


def _require_scenario(target: str, mechanisms: Iterable[str]) -> None:
    """Refuse a target that is neither a mechanism nor a scenario, naming both kinds."""
    from scenarios.settings.loader import library

    if target in library() or Path(target).exists():
        return
    families = list(dict.fromkeys(map(_family, mechanisms)))
    spelled = [*_OTHER_NAMES, *families, *mechanisms]
    hint = nearest_name(target, library()) or nearest_name(target.replace("-", "_"), spelled)
    raise InputError(
        f"there is no mechanism, scenario file or library scenario '{target}'; "
        f"mechanisms: {', '.join(families)}; library: {', '.join(library())}{hint}"
    )


def _record(verdict: Verdict) -> dict[str, Any]:
    result = verdict.result
    return {
        "mechanism": verdict.audited.name,
        "epsilon": result.claimed,
        "delta": result.delta,
        "lower_bound": result.lower_bound,
        "confidence": result.confidence,
        "runs": result.runs,
        "event": result.event,
        "claim_stands": result.passed,
        "as_expected": verdict.as_expected,
        "broken_twins": [
            {"mistake": mistake, "lower_bound": twin.lower_bound, "caught": not twin.passed}
            for mistake, twin in verdict.twins
        ],
    }


def _table(verdicts: list[Verdict]) -> Table:
    first = verdicts[0].result
    title = (
        f"Lower bounds on epsilon of mechanisms and of broken twins, confidence {first.confidence:g}, "
        f"{first.runs:,} runs a side"
    )
    table = Table(Column("mechanism", no_wrap=True), "claim", "lower bound", "verdict", "twins", title=title)
    for verdict in verdicts:
        result = verdict.result
        delta = f", delta={result.delta:g}" if result.delta else ""
        twins = [
            f"{'caught' if not twin.passed else 'MISSED'} {twin.lower_bound:.2f}  {mistake}"
            for mistake, twin in verdict.twins
        ]
        table.add_row(
            verdict.audited.name,
            f"epsilon={result.claimed:g}{delta}",
            f"{result.lower_bound:.3f}",
            _word(verdict),
            "\n".join(twins),
        )
    return table


def _word(verdict: Verdict) -> str:
    if not verdict.result.passed:
        return "REFUTED"
    return "stands" if verdict.as_expected else "NO POWER"
