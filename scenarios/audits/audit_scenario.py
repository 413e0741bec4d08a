"""`federation audit SCENARIO`: audits a scenario's variants end to end, each on its worst pair of neighbours."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.mechanisms.audits import CurvePoint
from scenarios.audits.auditor import CONFIDENCE, VariantAudit, audit_variant
from scenarios.data.catalogue import entry, load
from scenarios.reports.summary import NON_PRIVATE, broken, name_width
from scenarios.settings.protocol_options import requires, spending
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import Variant, expand, variants

NO_POWER = 5  # the exit code
_TESTED = (
    "Tested: the point of a privacy curve that half of the runs choose, and how much of the delta claimed there "
    "the other half show. "
)
_BLIND = "No power: half of the noise could be missing, and these runs would not show it."
_ROUNDING = 1e-3  # relative, of a claim that is the epsilon asked for
_EPSILON_IN_REACH = 1.0  # bounds fall short of a claim much larger than the logarithm of the runs allows


def audit_scenario(target: str, as_json: bool, runs: int | None = None) -> int:
    """Audit every private variant of a scenario and print the findings; returns the exit code.

    It is 1 if a claim is refuted, else 5 if an audit has no power: if it would not refute the claim of half the noise.
    The scenario's data is not read but for the number of undeclared classes: variants are audited on a small world of
    their own, at the epsilon nearest to 1. Raises `InputError` for an unknown scenario and one without private
    variants.
    """
    scenario = resolve(target)
    epsilon = min(scenario.privacy.epsilon, key=lambda value: abs(np.log(value / _EPSILON_IN_REACH)))
    listed = variants(scenario)
    private = [v for v in listed if spending(v.kind, v.options, epsilon, scenario.privacy.delta) is not None]
    if not private:
        raise InputError(f"scenario '{scenario.name}' releases nothing under a guarantee, so there is nothing to audit")
    public = _public(scenario, private)
    audits = ((variant.kind, audit_variant(variant, epsilon, public, runs)) for variant in private)
    found = [(kind, finding) for kind, finding in audits if finding is not None]
    findings = [finding for _, finding in found]
    if not findings:
        raise InputError(f"scenario '{scenario.name}' has too little noise for any promise; give its sigma up")
    audited = {finding.variant for finding in findings}
    exposed = [variant.name for variant in listed if variant.name not in audited]
    if as_json:
        records = [_record(finding) for finding in findings]
        nothing = dict.fromkeys(records[0])
        records += [{**nothing, "variant": name, "verdict": NON_PRIVATE} for name in exposed]
        print(json.dumps(records, indent=2))
    else:
        worlds: dict[str, dict[str, None]] = {}  # and the kinds that were audited in them
        for kind, finding in found:
            worlds.setdefault(finding.described, {})[kind] = None
        named = [f"{world} ({', '.join(kinds)})" if len(worlds) > 1 else world for world, kinds in worlds.items()]
        Console().print(_table(findings, exposed, epsilon, scenario.privacy.epsilon, "; ".join(named)))
        for why in dict.fromkeys(finding.blind for finding in findings if finding.blind):
            alike = ", ".join(finding.variant for finding in findings if finding.blind == why)
            Console().print(f"No power for {alike}: {why}.", highlight=False, markup=False)
    return exit_code(
        refuted=any(not finding.result.passed for finding in findings),
        blind=any(not finding.powerful for finding in findings),
    )


def exit_code(*, refuted: bool, blind: bool) -> int:
    """Of audits: a refuted claim comes before an audit that has no power.

    Examples:
        >>> exit_code(refuted=True, blind=True), exit_code(refuted=False, blind=True)
        (1, 5)
    """
    return 1 if refuted else NO_POWER if blind else 0


def _public(scenario: Scenario, private: Sequence[Variant]) -> PublicNumbers:
    """The public numbers of the first point of a scenario's sweeps that a worst case keeps.

    Undeclared classes of bags are counted in its data, and a range that only a file holds is read there. Raises
    `InputError` when that is missing.
    """
    data, needs = expand(scenario)[0].scenario.data, [requires(variant.kind) for variant in private]
    names = data.positive and ("negative", "positive")
    if any(need.bags for need in needs):
        names = names or data.classes or load(data.source, label=data.label).classes
    label_range = None
    if any(need.labels == "real" for need in needs):
        known = entry(data.source)
        documented = None if known is None else known.label_range
        label_range = data.range or documented or load(data.source, label=data.label).label_range
    return PublicNumbers(
        scenario.privacy.delta,
        classes=None if names is None else len(names),
        label_range=label_range,
        rows_per_person=0 if data.person is None else data.rows_per_person,
    )


def tested(point: CurvePoint | None) -> dict[str, float | None]:
    """The fields of a record about the point of a privacy curve that was tested."""
    known = (None, None, None) if point is None else (point.epsilon, point.claimed, point.lower_bound)
    return dict(zip(("tested_epsilon", "tested_delta", "tested_delta_bound"), known, strict=True))


def _record(finding: VariantAudit) -> dict[str, object]:
    return {
        "variant": finding.variant,
        "epsilon": finding.result.claimed,
        "delta": finding.result.delta,
        "lower_bound": finding.result.lower_bound,
        **tested(finding.result.point),
        "claim_stands": finding.result.passed,
        "verdict": finding.word,
        "lower_bound_with_half_the_noise": finding.twin.lower_bound,
        "half_the_noise_caught": not finding.twin.passed,
        "why_no_power": finding.blind or None,
        "runs": finding.result.runs,
        "confidence": finding.result.confidence,
    }


def _table(
    findings: list[VariantAudit], exposed: list[str], epsilon: float, epsilons: Sequence[float], world: str
) -> Table:
    choice = f" alone, of {', '.join(f'{one:g}' for one in epsilons)}" if len(epsilons) > 1 else ""
    others = "Other epsilons and the" if choice else "The"
    points = any(finding.result.point for finding in findings)
    table = Table(
        Column("variant", no_wrap=True), "delta", "bound", *(["tested"] if points else []),
        Column("verdict", min_width=len(NON_PRIVATE)), "half noise", padding=(0, 0 if points else 1),
        title=f"Lower bounds at epsilon {epsilon:g}{choice}, end to end, confidence {CONFIDENCE:g}",
        caption=f"A small world of its own: {world}. {others} scenario's own data are not audited. "
        f"{_TESTED if points else ''}{_BLIND if any(finding.blind for finding in findings) else ''}".rstrip(),
    )  # fmt: skip
    width = name_width([*(finding.variant for finding in findings), *exposed])
    for finding in findings:
        result, twin = finding.result, finding.twin
        seen = "caught" if not twin.passed else "unseen"
        own = "" if math.isclose(result.claimed, epsilon, rel_tol=_ROUNDING) else f" of {result.claimed:.3g}"
        table.add_row(
            "\n".join(broken(finding.variant, width)),
            f"{result.delta:g}",
            f"{result.lower_bound:.3f}{own}",
            *([_tested(result.point)] if points else []),
            finding.word,
            f"{twin.lower_bound:.3f} {seen}",
        )
    for name in exposed:
        table.add_row("\n".join(broken(name, width)), "", "", *([""] if points else []), NON_PRIVATE, "")
    return table


def _tested(point: CurvePoint | None) -> str:
    if point is None:
        return ""
    return f"{point.lower_bound:.2g} of {point.claimed:.2g}\nat {point.epsilon:.2f}"
