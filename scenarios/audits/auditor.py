"""The auditor of all protocols: it runs a variant end to end on its worst-case neighbours, and bounds epsilon.

The aggregator's own code sends the query, the party's own code responds, and the aggregator's own code adds its noise.
Only the public rows and the party data are made up, by the protocol's `worst_case`. `audit_scenario` audits the
variants of a scenario for `federation audit SCENARIO`.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from aggregator.contract.ledger import Ledger
from aggregator.contract.protocol import Protocol
from aggregator.contract.registry import protocol
from aggregator.contract.session import Asked, Perturbable, RoundsOfNoise, RoundValue, Session
from aggregator.contract.worst_case import PrivateWorstCase, Rows, Seen, TrustedWorstCase, WorstCase
from aggregator.server.releasing import CentralNoise
from aggregator.trial.plan import KnownNumbers, PublicNumbers, ReleasePlan, RunPlan, TaskPlan, TrialPlan, VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee
from federation.contract.plugins import Reference
from federation.contract.query import OFF, Curve, Noise, PrivateQuestion, Question, ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.contract.trust import TrustTerms
from federation.engines.codec import question_digest
from federation.mechanisms.accounting.composition import GaussianCurve
from federation.mechanisms.audits import AuditResult, CurvePoint, audit
from federation.mechanisms.noise.additive import AdditiveMechanism
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort, Holdings
from scenarios.data.catalogue import entry, load
from scenarios.reports.summary import NON_PRIVATE, broken, name_width
from scenarios.settings.parties import LOGISTIC
from scenarios.settings.protocol_options import requires, spending
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import Variant, expand, variants
from scenarios.simulated.simulation import PublicRows

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
    statistic = worst.statistic(question, lambda there: seen(there, 1, without))

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
    if begun(worst, variant, epsilon, public.delta).rounds_of_noise() is not None:
        return _of_rounds(variant, worst, epsilon, public, runs)
    pair = [perturbable(worst, variant, epsilon, public.delta, there) for there in (False, True)]
    one = pair[0]
    mechanism, halved = (
        replace(one.planned, sensitivity=one.sensitivity / part).mechanism(epsilon, public.delta) for part in (1, 2)
    )
    charged = mechanism.guarantee(one.unit, Adjacency.REPLACE)
    claimed = claim(variant, epsilon, public, charged)
    curve = claimed_curve(claimed[1], charged)
    result, twin = (
        audit_sides(_additive(f"{name}|{epsilon!r}", pair, noise), claimed, runs, curve)
        for name, noise in ((variant.name, mechanism), (f"{variant.name}|half", halved))
    )
    return result, twin


@dataclass(frozen=True, eq=False)
class Replay:
    """Two sessions on the two sides of a worst case that were given the same noisy values in every round.

    `values` (2, rounds, D) are what the sides released before the noise, and `sessions` are theirs at the end.
    `differing` names the kind of a query that differed between the sides; empty where all were equal.
    """

    planned: RoundsOfNoise
    values: np.ndarray
    sessions: tuple[Session, Session]
    differing: str


def replayed(worst: TrustedWorstCase, variant: Variant, epsilon: float, delta: float) -> Replay:
    """Run all rounds on both sides with the same releases, those of the first side.

    Whatever the sides are asked depends on these releases alone, so that the values of all rounds are one pair of
    inputs for the composed mechanism. Raises `InputError` for a round, a sensitivity or a dimension beyond the plan.
    """
    here, there = (begun(worst, variant, epsilon, delta, there) for there in (False, True))
    planned, differing, values = here.rounds_of_noise(), "", []
    assert planned is not None
    made = CentralNoise(plan(worst, variant, epsilon, delta, there=False), variant.name, epsilon, planned, 1)
    while asked := [here.questions(), there.questions()]:
        if not asked[0]:
            break
        for one, other in zip(*asked, strict=True):
            if question_digest(one.question) != question_digest(other.question):
                differing = one.question.kind
        exact = [
            _taken(worst, side, session, due)
            for side, session, due in zip((False, True), (here, there), asked, strict=True)
        ]
        if exact[0] is None or exact[1] is None:
            continue
        values.append([np.broadcast_to(one.value, (1, planned.dimension))[0] for one in exact if one is not None])
        noisy = made.add(exact[0], Ledger(), ())
        for session in (here, there):
            session.release(noisy)
    return Replay(planned, np.array(values).swapaxes(0, 1), (here, there), differing)


def _taken(worst: TrustedWorstCase, there: bool, session: Session, asked: Sequence[Asked]) -> RoundValue | None:
    """What a session releases in a round after it has taken the responses of one side."""
    _collect(worst, there, asked)
    session.take([one.collector for one in asked])
    return session.value()


def _of_rounds(
    variant: Variant, worst: TrustedWorstCase, epsilon: float, public: PublicNumbers, runs: int
) -> tuple[AuditResult, AuditResult]:
    """Audit all that rounds release together, with the noise as it is made in a run."""
    found = replayed(worst, variant, epsilon, public.delta)
    runs_of = itertools.count()
    known = plan(worst, variant, epsilon, public.delta, there=False)

    def audited(part: int) -> AuditResult:
        planned = replace(found.planned, sensitivity=found.planned.sensitivity / part)

        def noise(draws: int) -> CentralNoise:
            return CentralNoise(known, variant.name, epsilon, planned, draws, f"audit|{part}|{next(runs_of)}")

        def sample(there: bool, count: int) -> np.ndarray:
            made, ledger = noise(count), Ledger()
            power = 2 if planned.noise == "gaussian" else 1
            total = np.zeros(count)
            for here, other in zip(*found.values, strict=True):
                noisy = made.add(RoundValue(other if there else here, planned.sensitivity), ledger, ())
                far, near = (np.linalg.norm(noisy - centre, axis=1) ** power for centre in (here, other))
                total += far - near
            return total

        return audit_sides(sample, claimed, runs, curve)

    charged = CentralNoise(known, variant.name, epsilon, found.planned, 1).guarantee
    if not isinstance(charged, Guarantee):
        raise InputError(f"'{variant.name}' has no noise to audit: {charged.reason}")
    claimed = claim(variant, epsilon, public, charged)
    curve = claimed_curve(claimed[1], charged)
    return audited(1), audited(2)


def perturbable(worst: TrustedWorstCase, variant: Variant, epsilon: float, delta: float, there: bool) -> Perturbable:
    """What a session has to perturb on one side of a worst case. Raises `InputError`."""
    session = begun(worst, variant, epsilon, delta, there)
    while asked := session.questions():
        _collect(worst, there, asked)
        session.take([one.collector for one in asked])
    return session.perturbable()


def _collect(worst: TrustedWorstCase, there: bool, asked: Sequence[Asked]) -> None:
    for one in asked:
        if refused := one.collector.add(_submission(worst, there, one.question)):
            raise InputError(f"an answer of the worst case is refused: {next(iter(refused.values()))}")


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

    def sample(there: bool, count: int) -> np.ndarray:
        """How much nearer the released weights are to one neighbour's than to the other's."""
        side = pair[there]
        weights = side.decode(mechanism.release(side.value, bits[there], count), mechanism).reshape(count, -1)
        return mechanism.log_ratio(weights, *centres)

    return sample


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
    """Return the exit code of audits: a refuted claim comes before an audit that has no power.

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


SEED = 1

_held: dict[int, Sequence[Rows]] = {}  # by number; the parties of an audit are in this process
_numbers = itertools.count()


def public_table(rows: list[list[float]]) -> PublicRows:
    """Return public rows whose columns have numbers as names."""
    values = np.array(rows, dtype=np.float64)
    return PublicRows(values, tuple(map(str, range(values.shape[1]))), ())


class HeldRows:
    """Parties that hold rows by turns (`parties.party_data.cohort.Provider`)."""

    def __init__(self, number: int) -> None:
        self._rows = _held[number]

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        held = self._rows[party % len(self._rows)]
        return Holdings(party, held.rows, held.labels, held.bags, held.persons)

    def evaluation(self) -> None:
        """Nothing to evaluate on."""
        return None


@contextmanager
def cohort(rows: Sequence[Rows], parties: int) -> Iterator[Cohort]:
    """A simulation's node with so many parties that hold `rows` by turns."""
    number = next(_numbers)
    _held[number] = rows
    try:
        yield Cohort(Reference("scenarios.audits.auditor:HeldRows", {"number": number}).to_json(), 0, parties, SEED)
    finally:
        del _held[number]


def plan(worst: WorstCase, variant: Variant, epsilon: float, delta: float, there: bool) -> TrialPlan:
    """The plan of a worst case's world with one variant; noise is seeded, so that an audit finds the same each time."""
    public = worst.public_there if there and worst.public_there is not None else worst.public
    table = Reference("scenarios.audits.auditor:public_table", {"rows": public.tolist()})
    made = TrialPlan(
        f"audit|{variant.name}",
        KnownNumbers(delta, terms=TrustTerms(1, quorum=1.0)),
        TaskPlan(table, (), ("0", "1"), "", {"name": LOGISTIC, "parameters": {}}),
        (VariantPlan(variant.name, variant.kind, variant.options),),
        ReleasePlan((epsilon,)),
        RunPlan("", simulation=True, noise_seed=SEED),
    )
    return made.changed(**worst.world)


def begun(worst: WorstCase, variant: Variant, epsilon: float, delta: float, there: bool = False) -> Session:
    """The session of a variant in the world of a worst case, with the options that make it small."""
    small = replace(variant, options={**variant.options, **worst.options})
    world = plan(worst, small, epsilon, delta, there)
    return chosen_of(small).begin(World(world, Views(world)).of(world.variants[0]), epsilon, 1)


def chosen_of(variant: Variant) -> Protocol:
    """The protocol with a variant's options. Raises `InputError`."""
    return protocol(variant.kind)(**variant.options)
