"""Audits a variant of class ratios end to end: holdings in, what a party sends out, on the worst pair of neighbours.

The aggregator's own code asks and the party's own code answers; only the holdings are made up here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from aggregator.world.inquiry import Inquiry
from aggregator.world.job import World
from aggregator.world.plan import VariantPlan, WorldPlan
from aggregator.world.views import Views
from federation.bag_messages import CountsQuestion, NoisyEmbeddingsQuestion
from federation.messages import Question, Submission
from federation.privacy.audit import AuditResult, audit
from federation.reference import Reference
from federation.registry import protocol, questions
from parties.bags import bags_of
from parties.holdings import Cohort, Holdings
from scenarios.data.catalogue import load
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import Variant, expand

Released = CountsQuestion | NoisyEmbeddingsQuestion

RUNS = 100_000

_LEAST = 10  # rows of every class beside those that change
_FEATURES = 2  # one random frequency: two rows can then be as far from each other as the sensitivity reckons
_TINY = 1e-9  # of a record: what stands for a share that was rounded to 0
SEED = 1


@dataclass(frozen=True)
class Setting:
    """What the audits of a scenario share: the claim asked for, the classes, and bags of a person (0: no persons)."""

    epsilon: float
    delta: float
    classes: int
    rows_per_person: int = 0

    @classmethod
    def of(cls, scenario: Scenario, epsilon: float) -> Setting:
        """The setting of the first point of a scenario's sweeps. Undeclared classes are counted in its data.

        Raises `InputError` when that is missing.
        """
        data = expand(scenario)[0].scenario.data
        names = data.positive and ("negative", "positive")
        names = names or data.classes or load(data.source, label=data.label).classes
        return cls(epsilon, scenario.privacy.delta, len(names), 0 if data.person is None else data.rows_per_person)

    @property
    def described(self) -> str:
        """The small world of the audits in words."""
        unit = "one row or label changes"
        if self.rows_per_person:
            unit = f"one person changes the labels of its rows, of which {self.rows_per_person} count"
        return f"one party, {self.classes} classes, {unit}"


@dataclass(frozen=True, eq=False)
class OneColumn:
    """Public rows of one column (`aggregator.world.plan.PublicTable`)."""

    rows: np.ndarray
    columns: tuple[str, ...] = ("x",)
    text_columns: tuple[int, ...] = ()


def public_rows() -> OneColumn:
    """Two rows: their distance decides the bandwidth."""
    return OneColumn(np.array([[0.0], [1.0]]))


class Neighbour:
    """A party with one row here or moved there for each of `units`, and `least` other rows of every class.

    Here a unit's rows have class 0 and the feature 0, there class 1 and the feature `far`. There are `bags` bags, all
    alike; units are persons who have two rows in each when `persons` says so (`parties.holdings.Provider`).
    """

    def __init__(
        self, moved: bool, units: int, bags: int, classes: int, least: int, persons: bool, far: float = 0.0
    ) -> None:
        of_units = units * (2 if persons else 1)
        labels = np.concatenate([np.full(of_units, int(moved)), np.repeat(np.arange(classes), least)])
        rows = np.zeros((len(labels), 1))
        rows[:of_units] = far * moved
        others = np.arange(bags * classes * least).reshape(bags, -1) + units
        people = [np.concatenate([np.arange(of_units) % units, some]) for some in others]
        self._holdings = Holdings(
            0,
            np.tile(rows, (bags, 1)),
            np.tile(labels, bags),
            np.repeat(np.arange(bags), len(labels)),
            np.concatenate(people) if persons else None,
        )

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        return self._holdings

    def evaluation(self) -> None:
        """Nothing to evaluate on."""
        return None


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbours and the question that both answer; `counts` (2, B, C) and `sums` (2, B, D) of their rows.

    `units` of them change, one being what a guarantee covers.
    """

    question: Released
    providers: tuple[Reference, Reference]
    counts: np.ndarray
    sums: np.ndarray

    def answer(self, side: int, purpose: str, runs: int) -> Submission:
        """What a party with one of the holdings sends of `runs` releases of independent noise."""
        noising = replace(self.question.noising, draws=runs, purpose=f"audit|{purpose}|{side}")
        asked = replace(self.question, noising=noising)
        respond = questions()[asked.kind].load()
        submission: Submission = respond(Cohort(self.providers[side].to_json(), 0, 1, SEED), asked)
        return submission

    def statistic(self, mechanism: str) -> Callable[[Mapping[str, np.ndarray]], np.ndarray]:
        """Of an answer's arrays without the party axis: one number per draw (draws,), by which sides are told apart.

        The log likelihood ratio up to scale for integer noise and, behind one sigma, Dirichlet shares.
        """
        first, second = self.counts
        if isinstance(self.question, NoisyEmbeddingsQuestion):
            sizes, weight = first.sum(axis=1), self.question.label_weight
            by_counts, by_means = weight**2 * (first - second), sizes[:, None] * (self.sums[0] - self.sums[1])
            return lambda sent: np.tensordot(sent["counts"], by_counts, 2) + np.tensordot(sent["means"], by_means, 2)
        if mechanism == "count_gaussian":
            return lambda sent: np.tensordot(sent["counts"], first - second, 2)
        if mechanism in ("lattice_laplace", "count_laplace"):
            return lambda sent: (np.abs(sent["counts"] - second) - np.abs(sent["counts"] - first)).sum(axis=(1, 2))
        shift = self.question.noising.mechanism.get("pseudo_count", 0)
        return lambda sent: np.tensordot(np.log(np.maximum(sent["counts"] + shift, _TINY)), first - second, 2)


def question_of(variant: Variant, setting: Setting) -> Released:
    """What the aggregator asks of a party under a guarantee for this variant; bags beyond those that count are there.

    Rows are protected behind random features of one frequency, whatever `dimensions` says: noise scales with the
    sensitivity, which is the same for any number.
    """
    options = dict(variant.options)
    if options["protect"] == "row":
        options["dimensions"] = _FEATURES
    plan = world_of(
        replace(variant, options=options),
        setting.epsilon,
        setting.delta,
        public="scenarios.audits.audit_bags:public_rows",
        classes=tuple(map(str, range(setting.classes))),
        parties=setting.classes,  # as many as class ratios need, of which one is asked
        bags=setting.rows_per_person + 1,
        largest_bag=_LEAST * setting.classes,
        rows_per_person=setting.rows_per_person,
    )
    [question] = [asked for asked in asked_in(plan) if isinstance(asked, Released)]
    return question


def world_of(variant: Variant, epsilon: float, delta: float, *, public: str, **fields: Any) -> WorldPlan:
    """The plan of a world with one variant; `public` makes its public rows, `fields` replace what else is plain.

    Noise is seeded, so that an audit finds the same each time.
    """
    known: dict[str, Any] = {
        "world": f"audit|{variant.name}",
        "directory": "",
        "noise_seed": SEED,
        "simulation": True,
        "split": 0,
        "parties": 1,
        "parties_per_node": 1,
        "quorum": 1.0,
        "timeout": None,
        "classes": (),
        "class_names": "",
        "public": Reference(public),
        "features": (),
        "classifier": {},
        "variants": (VariantPlan(variant.name, variant.kind, variant.options),),
        "epsilons": (epsilon,),
        "delta": delta,
        "budget": None,
        "draws": 1,
        "individual": 0,
    }
    return WorldPlan(**{**known, **fields})


def asked_in(plan: WorldPlan) -> list[Question]:
    """What the job of a plan's only variant asks of parties."""
    [variant] = plan.variants
    inquiry = Inquiry()
    protocol(variant.kind)(**variant.options).job(World(plan, Views(plan), inquiry), variant)
    return [asked for asked, _ in inquiry.questions()]


def worst_pair(question: Released, units: int = 1) -> Pair:
    """The holdings on which noise must do most: `units` of what is protected leave class 0 for class 1.

    All other rows are spread evenly: at the floor where one is declared, none where pseudo-counts stand in for them. A
    person has two rows in each bag, of which one counts, and is in one bag more than count.
    """
    known = question.noising.mechanism
    least = known.get("floor", 0 if "pseudo_count" in known else _LEAST)
    arguments: dict[str, Any] = {
        "units": units,
        "bags": question.bags.count,
        "classes": question.bags.classes,
        "least": least,
        "persons": bool(question.bags.rows_per_person),
        "far": _farthest(question),
    }
    here, there = (
        Reference("scenarios.audits.audit_bags:Neighbour", {**arguments, "moved": moved}) for moved in (False, True)
    )
    held = [bags_of(Cohort(provider.to_json(), 0, 1, SEED), 0, question.bags) for provider in (here, there)]
    sums = np.zeros((2, question.bags.count, 0))
    if isinstance(question, NoisyEmbeddingsQuestion):
        transform = question.feature_map.transform
        sums = np.array([
            [transform(bags.rows_of(bag)).sum(axis=0) for bag in range(question.bags.count)] for bags in held
        ])  # fmt: skip
    return Pair(question, (here, there), np.array([bags.counts for bags in held]), sums)


def _farthest(question: Released) -> float:
    """The feature whose row behind the map of one frequency is opposite to that of the feature 0."""
    if isinstance(question, CountsQuestion):
        return 0.0
    transform, candidates = question.feature_map.transform, np.linspace(0, 100, 100_001)
    here = transform(np.zeros((1, 1)))[0]
    return float(candidates[np.argmin(transform(candidates[:, None]) @ here)])


def audit_bags(
    variant: Variant, setting: Setting, *, runs: int | None, confidence: float
) -> tuple[AuditResult, AuditResult]:
    """The audits of one variant: of its claim, and of a twin with half the noise for what is protected.

    In the twin two labels, persons or rows change in place of one. Raises `InputError` where no noise serves.
    """
    question = question_of(variant, setting)
    one, two = (audit_pair(worst_pair(question, units), runs=runs or RUNS, confidence=confidence) for units in (1, 2))
    return one, two


class Neighbours(Protocol):
    """Two holdings that a guarantee makes hard to tell apart, and what shows best which of them answered."""

    def answer(self, side: int, purpose: str, runs: int) -> Submission:
        """What a party with one of the holdings sends of `runs` releases of independent noise."""
        ...

    def statistic(self, mechanism: str) -> Callable[[Mapping[str, np.ndarray]], np.ndarray]:
        """Of an answer's arrays without the party axis: one number per draw (draws,)."""
        ...


def audit_pair(pair: Neighbours, *, runs: int, confidence: float) -> AuditResult:
    """The audit of what parties promise with their answers to a pair's question."""
    promised = pair.answer(0, "promise", 1).guarantee
    assert promised is not None  # of a question that asks for private answers
    statistic = pair.statistic(promised.mechanism)

    def sampler(side: int) -> Callable[[int], np.ndarray]:
        def sample(count: int) -> np.ndarray:
            arrays = pair.answer(side, "release", count).arrays
            return statistic({name: array[0] for name, array in arrays.items()})

        return sample

    return audit(
        sampler(0),
        sampler(1),
        lambda values: values,
        epsilon=promised.epsilon,
        delta=promised.delta,
        runs=runs,
        confidence=confidence,
    )
