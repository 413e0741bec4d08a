"""`federation audit`: try to refute the claim of each mechanism, and show that known mistakes are refuted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from federation.contract.errors import InputError, nearest_name
from federation.contract.files import is_file
from scenarios.commands.completion import scenarios_and_mechanisms
from scenarios.commands.options import AsJson
from scenarios.commands.output import tell

if TYPE_CHECKING:
    from federation.mechanisms.audits import Verdict

_DIMENSION = re.compile(r"_\d+d$")
_OTHER_NAMES = {"gaussian": "discrete_gaussian"}


def audit(
    target: Annotated[
        str | None,
        Argument(
            help="A mechanism or a scenario; all mechanisms when omitted.", autocompletion=scenarios_and_mechanisms
        ),
    ] = None,
    runs: Annotated[int | None, Option(min=1000, help="Runs on each of the two neighbours.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check claimed epsilons against lower bounds from many runs.

    Exit codes: 1 if a claim is refuted, else 5 if an audit has no power, else 0.

    An audit of a scenario has power if it refutes the same claim, by as many runs, of a twin with half the noise, or
    with half the shares of a noise. That of a mechanism must refute all its twins, and show half of the claim.
    """
    from federation.mechanisms.audits import RUNS, audited_mechanisms, judge
    from scenarios.audits.audit_scenario import audit_scenario, exit_code, tested

    mechanisms = audited_mechanisms()
    spelled = (target or "").replace("-", "_")  # the audited ones; `federation privacy` has hyphens
    wanted = None if target is None else _OTHER_NAMES.get(spelled, spelled)
    chosen = [case for name, case in mechanisms.items() if wanted in (None, name, _family(name))]
    if not chosen and target is not None:
        _require_scenario(target, mechanisms)
        raise Exit(audit_scenario(target, as_json, runs))
    verdicts = [judge(case, runs=runs or RUNS) for case in chosen]
    first = verdicts[0].result
    text = [f"Confidence {first.confidence:g}, {first.runs:,} runs a side. Lower bounds of broken twins:"]
    for verdict in verdicts:
        name, stands = verdict.audited.name, verdict.result.passed
        for mistake, twin in verdict.twins:
            text.append(f"{name}: {'MISSED' if twin.passed else 'caught'} {twin.lower_bound:.2f}  {mistake}")
        if (point := verdict.result.point) is not None:
            text.append(
                f"{name}: tested at epsilon {point.epsilon:.2f}, of whose delta {point.claimed:.2g} the bound is "
                f"{point.lower_bound:.2g}"
            )
        if not verdict.as_expected:
            text.append(f"{name}: {'NO POWER' if stands else 'REFUTED'}")
    records = [_record(verdict) for verdict in verdicts]
    tell(as_json, records, text=text, hidden=("confidence", "runs", "event", "broken_twins", *tested(None)))
    refuted = any(not verdict.result.passed for verdict in verdicts)
    raise Exit(exit_code(refuted=refuted, blind=not all(verdict.as_expected for verdict in verdicts)))


def _record(verdict: Verdict) -> dict[str, Any]:
    from scenarios.audits.audit_scenario import tested

    result = asdict(verdict.result)
    del result["point"]
    return {
        "mechanism": verdict.audited.name,
        "epsilon": result.pop("claimed"),
        **result,
        **tested(verdict.result.point),
        "claim_stands": verdict.result.passed,
        "as_expected": verdict.as_expected,
        "broken_twins": [
            {"mistake": mistake, "lower_bound": twin.lower_bound, "caught": not twin.passed}
            for mistake, twin in verdict.twins
        ],
    }


def _family(name: str) -> str:
    """l2_gamma, which stands for the cases l2_gamma_2d and l2_gamma_3d; other names stand for themselves."""
    return _DIMENSION.sub("", name)


def _require_scenario(target: str, mechanisms: Iterable[str]) -> None:
    """Refuse a target that is neither a mechanism nor a scenario, naming both kinds."""
    from scenarios.settings.loader import library

    if target in library() or is_file(Path(target)):
        return
    families = list(dict.fromkeys(map(_family, mechanisms)))
    spelled = [*_OTHER_NAMES, *families, *mechanisms]
    hint = nearest_name(target, library()) or nearest_name(target.replace("-", "_"), spelled)
    raise InputError(
        f"there is no mechanism, scenario file or library scenario '{target}'; "
        f"mechanisms: {', '.join(families)}; library: {', '.join(library())}{hint}"
    )
