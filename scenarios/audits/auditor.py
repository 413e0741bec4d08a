"""One auditor for all protocols: runs a variant on its worst pair of neighbours, end to end, and bounds epsilon.

The aggregator's own code asks, the party's own code answers, and the aggregator's own code makes its noise; only the
public rows and what parties hold are made up, by the protocol's `worst_case`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aggregator.contract.session import Perturbable, Session
from aggregator.contract.worst_case import PrivateWorstCase, Seen, TrustedWorstCase
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee
from federation.contract.query import OFF, Curve, Noise, PrivateQuestion, Question, ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import GaussianCurve
from federation.mechanisms.audits import AuditResult, audit
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate
from parties.guard.answering import answered
from scenarios.audits.small_worlds import begun, chosen_of, cohort
from scenarios.settings.sweep import Variant

CONFIDENCE = 0.999

Sampler = Callable[[bool, int], np.ndarray]  # of one side, so many runs: one number each


@dataclass(frozen=True)
class VariantAudit:
    """The audit of one variant, and of its twin with half the noise.

    `loose` is why no pair of neighbours shows that half of the noise is missing, where that is known.
    """

    variant: str
    described: str
    result: AuditResult
    twin: AuditResult
    loose: str = ""

    @property
    def powerful(self) -> bool:
        """Whether the same audit, with as many runs, refutes the same claim of the twin."""
        return not self.twin.passed

    @property
    def word(self) -> str:
        """What was found: without power, half of the noise may be missing and nobody would see it."""
        if not self.result.passed:
            return "REFUTED"
        return "stands" if self.powerful else "stands, no power here"

    @property
    def blind(self) -> str:
        """Why the audit has no power, in a sentence; empty where it has."""
        if self.powerful:
            return ""
        return (
            self.loose
            or f"these {self.result.runs:,} runs are too few, or another pair shows more; give more by --runs"
        )


def audit_variant(
    variant: Variant, epsilon: float, public: PublicNumbers, runs: int | None = None
) -> VariantAudit | None:
    """Audit one variant at an epsilon, and its broken twin; None where a given noise is too little for any promise.

    The claim is the least of what it promises beforehand and what it is charged. The twin is the worst case with two
    units that change, or half of the noise where the aggregator makes it. `runs` on each side, by default those of the
    worst case. Raises `InputError` where no noise serves.
    """
    one, two = (chosen_of(variant).worst_case(units, public) for units in (1, 2))
    runs = runs or one.runs
    if isinstance(one, PrivateWorstCase) and isinstance(two, PrivateWorstCase):
        pair = _of_parties(variant, one, two, epsilon, public, runs)
    elif isinstance(one, TrustedWorstCase):
        pair = _of_the_aggregator(variant, one, epsilon, public, runs)
    else:
        raise InputError(f"the worst case of '{variant.kind}' is of no kind that can be audited")
    return None if pair is None else VariantAudit(variant.name, one.described, *pair, one.loose)


def claim(variant: Variant, epsilon: float, public: PublicNumbers, charged: Guarantee) -> tuple[float, float]:
    """The least (epsilon, delta) that a variant claims of a release: before it is made, or when it is charged."""
    promised = chosen_of(variant).promised(public, epsilon).spends
    if isinstance(promised, NoGuarantee):
        return charged.epsilon, charged.delta
    return min(charged.epsilon, promised.epsilon), min(charged.delta, promised.delta)


def private_question(session: Session) -> PrivateQuestion:
    """The one question of a session's first round that is answered under a guarantee. Raises `InputError`."""
    found = [asked.question for asked in session.questions() if isinstance(asked.question, PrivateQuestion)]
    if len(found) != 1:
        raise InputError(f"an audit needs one private question in the first round, got {len(found)}")
    return found[0]


def sampler(worst: PrivateWorstCase, question: PrivateQuestion, name: str = "audit|release") -> Sampler:
    """What is seen of one side in many independent runs, as one number for each; `name` keys their noise."""

    def seen(there: bool, runs: int, noise: Noise) -> Seen:
        submissions = []
        with cohort(worst.side(there, question, runs), worst.parties(question, runs)) as node:
            for asked in worst.asked(question, runs):
                release = ReleaseId(f"{name}|{int(there)}", asked.release.queries, asked.release.query)
                submission = answered(node, replace(asked, noise=noise, release=release, seeded=True))
                if submission.failures:
                    raise InputError(f"a party of the worst case fails: {next(iter(submission.failures.values()))}")
                submissions.append(submission)
        return worst.seen(submissions)

    without = replace(question.noise, kind=OFF)
    statistic = worst.knowing(lambda there: seen(there, 1, without)).statistic(question)

    def sample(there: bool, runs: int) -> np.ndarray:
        return statistic(seen(there, runs, question.noise))

    return sample


def _of_parties(
    variant: Variant, one: PrivateWorstCase, two: PrivateWorstCase, epsilon: float, public: PublicNumbers, runs: int
) -> tuple[AuditResult, AuditResult] | None:
    session = begun(one, variant, epsilon, public.delta)
    question, charged = private_question(session), session.guarantee
    if isinstance(charged, NoGuarantee):
        return None
    claimed = claim(variant, epsilon, replace(public, features=session.feature_map.dimension), charged)
    curve = claimed_curve(claimed[1], charged, question.curve())
    result, twin = (audit_sides(sampler(worst, question), claimed, runs, curve) for worst in (one, two))
    return result, twin


def claimed_curve(delta: float, charged: Guarantee, known: Curve | None = None) -> Curve | None:
    """The deltas that a release claims at all epsilons: those that are known, or what a `gaussian_mu` says.

    None for pure claims, whose epsilon says it all.
    """
    if not delta:
        return None
    normal = GaussianCurve.of([charged])
    return known or (None if normal is None else normal.delta)


def audit_sides(sample: Sampler, claimed: tuple[float, float], runs: int, curve: Curve | None = None) -> AuditResult:
    """The audit of a claim with so many runs of either side, and of the curve of a mechanism that claims one."""
    (epsilon, delta), sides = claimed, (partial(sample, False), partial(sample, True))
    return audit(*sides, np.asarray, epsilon=epsilon, delta=delta, runs=runs, confidence=CONFIDENCE, curve=curve)


def _of_the_aggregator(
    variant: Variant, worst: TrustedWorstCase, epsilon: float, public: PublicNumbers, runs: int
) -> tuple[AuditResult, AuditResult]:
    pair = [perturbable(worst, variant, epsilon, public.delta, there) for there in (False, True)]
    one, target = pair[0], {"epsilon": epsilon, "delta": public.delta}
    mechanism, halved = (
        calibrate(one.noise, sensitivity=one.sensitivity / part, dimension=len(one.value), **target) for part in (1, 2)
    )
    charged = mechanism.guarantee(one.unit, Adjacency.REPLACE)
    claimed = claim(variant, epsilon, public, charged)
    curve = claimed_curve(claimed[1], charged)
    result, twin = (
        audit_sides(_additive(f"{name}|{epsilon!r}", pair, noise), claimed, runs, curve)
        for name, noise in ((variant.name, mechanism), (f"{variant.name}|half", halved))
    )
    return result, twin


def perturbable(worst: TrustedWorstCase, variant: Variant, epsilon: float, delta: float, there: bool) -> Perturbable:
    """What a session has to perturb on one side of a worst case. Raises `InputError`."""
    session = begun(worst, variant, epsilon, delta, there)
    while asked := session.questions():
        for one in asked:
            if refused := one.collector.add(_submission(worst, there, one.question)):
                raise InputError(f"an answer of the worst case is refused: {next(iter(refused.values()))}")
        session.take([one.collector for one in asked])
    return session.perturbable()


def _submission(worst: TrustedWorstCase, there: bool, question: Question) -> Submission:
    """What the parties of one side send."""
    if (sent := worst.sent(there, question)) is not None:
        return Submission(question.kind, np.arange(len(next(iter(sent.values())))), dict(sent))
    held = worst.side(there, question, 1)
    with cohort(held, len(held)) as node:
        return answered(node, question)


def _additive(purpose: str, pair: list[Perturbable], mechanism: AdditiveMechanism) -> Sampler:
    centres = [side.decode(side.value[None], mechanism).ravel() for side in pair]
    bits = [NoiseBits(1, f"audit|{purpose}", side) for side in (0, 1)]
    power = 1 if mechanism.gaussian_mu is None else 2

    def sample(there: bool, count: int) -> np.ndarray:
        """How much nearer the released weights are to one neighbour's than to the other's."""
        side = pair[there]
        weights = side.decode(mechanism.release(side.value, bits[there], count), mechanism).reshape(count, -1)
        far, near = (np.linalg.norm(weights - centre, axis=1) ** power for centre in centres)
        return np.asarray(far - near)

    return sample
