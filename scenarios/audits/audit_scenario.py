"""Audits a scenario's variants end to end, on their worst pair of neighbours: votes in, released weights out.

Of tasks whose noise parties add themselves: holdings in, answers out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from aggregator.audits.worst_answers import neighbours
from aggregator.audits.worst_case import PARTIES
from aggregator.central.perturbation import Perturbable
from federation.errors import InputError
from federation.privacy.additive import Noise, calibrate
from federation.privacy.audit import AuditResult, audit
from federation.randomness import NoiseBits
from federation.registry import protocol
from scenarios.audits.audit_bags import Setting, audit_bags
from scenarios.audits.audit_labels import LabelSetting, audit_labels
from scenarios.audits.audit_two_classes import TwoClassSetting, audit_two_classes, described
from scenarios.reports.summary import broken, name_width
from scenarios.scores.metrics import CLASS_RATIO, CLASSIFICATION, REGRESSION
from scenarios.settings.protocol_options import protects_single_rows, spending, task
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import Variant, variants

RUNS = 400_000
RUNS_OF_A_SOLVER = {"erm": 4_000, "discrepancy": 20_000, "votes": 100_000}  # where releases need optimisations
CONFIDENCE = 0.999
NON_PRIVATE = "NON-PRIVATE"
_ROUNDING = 1e-3  # relative, of a claim that is the epsilon asked for
_EPSILON_IN_REACH = 1.0  # bounds fall short of a claim much larger than the logarithm of the runs allows


@dataclass(frozen=True)
class VariantAudit:
    """The audit of one variant, and of its twin with half the noise."""

    variant: str
    result: AuditResult
    twin: AuditResult

    @property
    def word(self) -> str:
        """What was found: without power, even missing noise might go unseen."""
        if not self.result.passed:
            return "REFUTED"
        return "stands" if self.result.lower_bound >= self.result.claimed / 2 else "stands, no power here"


def audit_scenario(target: str, as_json: bool, runs: int | None = None) -> int:
    """Audit every private variant of a scenario and print the findings; returns the exit code, 1 if one is refuted.

    The scenario's data is not read but for the number of undeclared classes: variants are audited on a small world of
    their own, at the epsilon nearest to 1. Raises `InputError` for an unknown scenario, one of another task and one
    without private variants.
    """
    scenario = resolve(target)
    epsilon = min(scenario.privacy.epsilon, key=lambda value: abs(np.log(value / _EPSILON_IN_REACH)))
    known, delta = task(protocol.kind for protocol in scenario.protocols), scenario.privacy.delta
    if known not in (CLASSIFICATION, CLASS_RATIO, REGRESSION):
        raise InputError(
            f"scenario '{scenario.name}' has the task {known}, whose variants cannot be audited end to end"
        )
    listed = variants(scenario)
    private = [v for v in listed if spending(v.kind, v.options, epsilon, delta) is not None]
    if not private:
        raise InputError(f"scenario '{scenario.name}' releases nothing under a guarantee, so there is nothing to audit")
    findings, world = _findings(scenario, known, private, epsilon, runs)
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
        Console().print(_table(findings, exposed, epsilon, scenario.privacy.epsilon, world))
    return 0 if all(finding.result.passed for finding in findings) else 1


def _findings(
    scenario: Scenario, known: str, private: list[Variant], epsilon: float, runs: int | None
) -> tuple[list[VariantAudit], str]:
    """The audits of the variants that promise something at this epsilon, and the small worlds of them in words."""
    delta = scenario.privacy.delta
    if known == CLASS_RATIO:
        setting = Setting.of(scenario, epsilon)
        pairs = {variant.name: audit_bags(variant, setting, runs=runs, confidence=CONFIDENCE) for variant in private}
        return [VariantAudit(name, *pair) for name, pair in pairs.items()], setting.described
    if known == REGRESSION:
        labels = LabelSetting.of(scenario, epsilon)
        found = {variant.name: audit_labels(variant, labels, runs=runs, confidence=CONFIDENCE) for variant in private}
        return [VariantAudit(name, *pair) for name, pair in found.items() if pair is not None], labels.described
    two_classes = TwoClassSetting(epsilon, delta)
    findings: list[VariantAudit] = []
    worlds: dict[str, dict[str, None]] = {}  # and the kinds that were audited in them
    for variant in private:
        if protects_single_rows(variant.kind):
            two = audit_two_classes(variant, two_classes, runs=runs, confidence=CONFIDENCE)
            findings.append(VariantAudit(variant.name, *two))
            world = described(variant)
        else:
            findings.append(audit_variant(variant, epsilon, delta, runs))
            world = f"{PARTIES} parties and 2 classes, one party changes all it sends"
        worlds.setdefault(world, {})[variant.kind] = None
    named = [f"{world} ({', '.join(kinds)})" if len(worlds) > 1 else world for world, kinds in worlds.items()]
    return findings, "; ".join(named)


def audit_variant(variant: Variant, epsilon: float, delta: float, runs: int | None = None) -> VariantAudit:
    """Audit one variant at the given claim; 5 parties stand for any number, as noise scales with sensitivity."""
    chosen = protocol(variant.kind)(**variant.options)
    pair = [chosen.prepare(ensemble) for ensemble in neighbours(chosen)]
    slow = [RUNS_OF_A_SOLVER[value] for value in variant.options.values() if value in RUNS_OF_A_SOLVER]
    runs = runs or min(slow, default=RUNS)
    result = _audit(variant.name, pair, chosen.noise, epsilon, delta, runs)
    halved = [replace(side, sensitivity=side.sensitivity / 2) for side in pair]
    return VariantAudit(
        variant.name, result, _audit(f"{variant.name}|half", halved, chosen.noise, epsilon, delta, runs)
    )


def _audit(purpose: str, pair: list[Perturbable], noise: Noise, epsilon: float, delta: float, runs: int) -> AuditResult:
    mechanism = calibrate(
        noise,
        sensitivity=pair[0].sensitivity,
        dimension=len(pair[0].value),
        epsilon=epsilon,
        delta=delta,
    )
    centres = [side.decode(side.value[None], mechanism).ravel() for side in pair]

    def sampler(side: int) -> Callable[[int], np.ndarray]:
        bits = NoiseBits(1, f"audit|{purpose}|{epsilon!r}", side)
        one = pair[side]
        return lambda n: one.decode(mechanism.release(one.value, bits, n), mechanism).reshape(n, -1)

    def gap(weights: np.ndarray) -> np.ndarray:
        """How much nearer the released weights are to one neighbour's than to the other's."""
        far, near = (np.linalg.norm(weights - centre, axis=1) for centre in centres)
        return far - near

    claimed = 0.0 if mechanism.delta == 0 else delta
    return audit(sampler(0), sampler(1), gap, epsilon=epsilon, delta=claimed, runs=runs, confidence=CONFIDENCE)


def _record(finding: VariantAudit) -> dict[str, object]:
    return {
        "variant": finding.variant,
        "epsilon": finding.result.claimed,
        "delta": finding.result.delta,
        "lower_bound": finding.result.lower_bound,
        "claim_stands": finding.result.passed,
        "verdict": finding.word,
        "lower_bound_with_half_the_noise": finding.twin.lower_bound,
        "half_the_noise_caught": not finding.twin.passed,
        "runs": finding.result.runs,
        "confidence": finding.result.confidence,
    }


def _table(
    findings: list[VariantAudit], exposed: list[str], epsilon: float, epsilons: Sequence[float], world: str
) -> Table:
    choice = f" alone, of {', '.join(f'{one:g}' for one in epsilons)}" if len(epsilons) > 1 else ""
    table = Table(
        Column("variant", no_wrap=True), "delta", "bound", "verdict", "half noise",
        title=f"Lower bounds at epsilon {epsilon:g}{choice}, end to end, confidence {CONFIDENCE:g}",
        caption=f"A small world of its own: {world}. "
        f"{'Other epsilons and the' if choice else 'The'} scenario's own data are not audited. No power: the bound is "
        "below half the claim, which is loose for this pair or has a delta too small to test.",
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
            finding.word,
            f"{twin.lower_bound:.3f} {seen}",
        )
    for name in exposed:
        table.add_row("\n".join(broken(name, width)), "", "", NON_PRIVATE, "")
    return table
