"""Audits a variant for two classes whose noise is the parties' own end to end: holdings in, answers out.

The aggregator's own code asks and the party's own code answers; only the holdings are made up here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from federation.bag_releases import OFF
from federation.errors import InputError
from federation.guarantee import Guarantee, NoGuarantee
from federation.hypotheses import Hypothesis
from federation.label_messages import PrivateLabelsQuestion
from federation.marginal_messages import MarginalsQuestion
from federation.marginal_releases import exchange_guarantee
from federation.messages import Submission
from federation.moment_messages import MomentQuestion
from federation.moment_releases import moment_guarantee, moment_noise
from federation.numerics.binning import Bins
from federation.numerics.norms import within_norm
from federation.privacy.audit import AuditResult
from federation.reference import Reference
from federation.registry import questions
from parties.holdings import Cohort, Holdings
from scenarios.audits.audit_bags import SEED, Neighbours, asked_in, audit_pair, world_of
from scenarios.audits.audit_labels import RUNS as RUNS_OF_LABELS
from scenarios.audits.audit_labels import LabelPair
from scenarios.settings.sweep import Variant

TwoClassQuestion = MomentQuestion | PrivateLabelsQuestion | MarginalsQuestion
_Noised = TypeVar("_Noised", MomentQuestion, MarginalsQuestion)
_Statistic = Callable[[Mapping[str, np.ndarray]], np.ndarray]

RUNS_OF_SUMS = 200_000
RUNS_OF_EXCHANGES = 100_000

_PARTIES = 6  # of a summation
_QUORUM = 2 / 3  # of them: so many honest ones are enough, and the sum of theirs is the least that is ever seen
_ROWS = 4  # of a party
_FOURIER = 2  # random features: noise scales with their norm, which is the same for any number
_LINE = np.append(np.linspace(0.0, 10.0, 10_001), 1e6)  # along which the worst row is sought


@dataclass(frozen=True)
class TwoClassSetting:
    """What the audits of a scenario share: the claim asked for."""

    epsilon: float
    delta: float


def described(variant: Variant) -> str:
    """The small world of a variant's audits in words."""
    if variant.options.get("summation") == "secure":
        least = math.ceil(_QUORUM * _PARTIES)
        return f"{least} of {_PARTIES} parties, whose answers are seen in one sum only, one row or label changes"
    return "one party, one row or label changes"


class SumNeighbour:
    """Parties that hold the same `row` several times, and labels 0 and 1 by turns but for those that change.

    There are `changed` of these, at party 0: all are 1 when `moved`, else 0 (`parties.holdings.Provider`). So y x is
    replaced by its opposite, which no other row and label are further from.
    """

    def __init__(self, row: list[float], changed: int, moved: bool) -> None:
        position = np.arange(_ROWS)
        self._rows = np.tile(np.array(row), (_ROWS, 1))
        self._others = (position - changed) % 2 == 0
        self._labels = np.where(position < changed, moved, self._others)

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        return Holdings(party, self._rows, (self._others if party else self._labels).astype(np.int64))

    def evaluation(self) -> None:
        """Nothing to evaluate on."""
        return None


@dataclass(frozen=True, eq=False)
class SumPair:
    """Two neighbours and the question about a sum that both answer; `changed` rows differ, a guarantee covers one.

    What is seen is the sum of the answers of `parties`, party 0 among them: of it alone with its whole noise, or of
    several with shares of it. Colluders, who tell theirs, are not among these: whoever sees the sum of all takes theirs
    off it.
    """

    question: MomentQuestion
    changed: int
    parties: tuple[int, ...]

    def answer(self, side: int, purpose: str, runs: int) -> Submission:
        """What is seen of one side in `runs` independent releases, as if of one party."""
        noising = replace(self.question.noising, draws=runs, purpose=f"audit|{purpose}|{side}")
        sums = self._sum(side, replace(self.question, noising=noising))
        return _seen(self.question, {"sums": sums}, moment_guarantee(self.question))

    def statistic(self, mechanism: str) -> _Statistic:
        """The log likelihood ratio up to scale: by the norms of the noise that a sum would have on either side."""
        centres = [self._sum(side, _without_noise(self.question)) for side in (0, 1)]
        order, power = 1 if mechanism.endswith("laplace") else 2, 2 if mechanism.endswith("gaussian") else 1

        def ratio(seen: Mapping[str, np.ndarray]) -> np.ndarray:
            near, far = (np.linalg.norm(seen["sums"] - centre, ord=order, axis=1) ** power for centre in centres)
            return np.asarray(far - near)

        return ratio

    def _sum(self, side: int, question: MomentQuestion) -> np.ndarray:
        arguments = {"row": worst_row(self.question).tolist(), "changed": self.changed, "moved": bool(side)}
        sums = _sent(SumNeighbour, arguments, question, max(self.parties) + 1)["sums"]
        total: np.ndarray = sums[list(self.parties)].sum(axis=0)
        return total


def worst_row(question: MomentQuestion) -> np.ndarray:
    """The raw row which behind the map, cut as parties cut it, is the longest in the norm that the noise goes by."""
    columns = question.feature_map.columns
    rows = np.concatenate([np.outer(_LINE, direction) for direction in (np.ones(columns), np.eye(columns)[0])])
    cut = within_norm(question.feature_map.transform(rows), question.noising.mechanism.get("l1_bound"))
    order = 1 if moment_noise(question).name.endswith("laplace") else 2
    found: np.ndarray = rows[np.argmax(np.linalg.norm(cut, ord=order, axis=1))]
    return found


class CellNeighbour:
    """One party, and for each of `runs` two bins of every column, in which nothing lies but `units` rows of class 0.

    They lie in the first of the two. When `moved` they are gone if the `change` is "add_remove"; if it is "replace"
    they are in the second with class 1, and if "label" in the first with class 1. One row is in a bin beyond all of
    these (`parties.holdings.Provider`).
    """

    def __init__(self, columns: int, change: str, units: int, runs: int, moved: bool) -> None:
        bins = np.repeat(2 * np.arange(runs), units)
        if moved and change == "add_remove":
            bins = bins[:0]
        elif moved and change == "replace":
            bins = bins + 1
        rows = np.append(bins, 2 * runs).astype(np.float64)
        labels = np.append(np.full(len(bins), int(moved)), 0)
        self._holdings = Holdings(0, np.tile(rows[:, None], columns), labels)

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        return self._holdings

    def evaluation(self) -> None:
        """Nothing to evaluate on."""
        return None


@dataclass(frozen=True, eq=False)
class ExchangePair:
    """Two neighbours and an exchange that begins with `question`: `queries` about constant classes, 1 and 0 by turns.

    That is the worst that can be asked: whatever a query is chosen by, a unit moves no more cells than so, where it is
    an error or a correct row. `units` change, a guarantee covers one.
    """

    question: MarginalsQuestion
    units: int
    queries: int

    def answer(self, side: int, purpose: str, runs: int) -> Submission:
        """What one side says in `runs` independent exchanges, as if of one party: arrays (1, runs, Q, d, 2).

        One party says it all: every bin has noise of its own, so what it says of the bins of one unit is an exchange
        about that unit alone.
        """
        noising = replace(self.question.noising, purpose=f"audit|{purpose}|{side}")
        arrays = self._cells(side, replace(self.question, noising=noising), runs)
        return _seen(self.question, arrays, exchange_guarantee(self.question))

    def statistic(self, mechanism: str) -> _Statistic:
        """The log likelihood ratio up to scale, of all numbers that have noise."""
        centres = [self._noisy(self._cells(side, _without_noise(self.question), 1)) for side in (0, 1)]
        power = 2 if mechanism.endswith("gaussian") else 1

        def ratio(seen: Mapping[str, np.ndarray]) -> np.ndarray:
            noisy = self._noisy(seen)
            near, far = ((np.abs(noisy - centre) ** power).sum(axis=(1, 2, 3, 4)) for centre in centres)
            return np.asarray(far - near)

        return ratio

    def _cells(self, side: int, question: MarginalsQuestion, runs: int) -> dict[str, np.ndarray]:
        """What is said of the two bins of every feature and run, (runs, Q, d, 2)."""
        columns = question.feature_map.columns
        change = "label" if question.protect == "label" else question.adjacency
        arguments = {"columns": columns, "change": change, "units": self.units, "runs": runs, "moved": bool(side)}
        bins = Bins(np.tile(np.arange(2 * runs) + 0.5, columns), np.full(columns, 2 * runs + 1))
        answers = []
        for query in range(self.queries):
            asked = replace(
                question,
                bins=bins,
                asks="errors",
                hypothesis=Hypothesis.constant(columns, 1 - query % 2),
                exchange=replace(question.exchange, query=query),
                noising=replace(question.noising, purpose=f"{question.noising.purpose}|{query}"),
            )
            sent = _sent(CellNeighbour, arguments, asked)
            pairs = {name: cells.reshape(columns, -1)[:, :-1].reshape(columns, runs, 2) for name, cells in sent.items()}
            answers.append({name: cells.swapaxes(0, 1) for name, cells in pairs.items()})
        return {name: np.stack([answer[name] for answer in answers], axis=1) for name in answers[0]}

    def _noisy(self, seen: Mapping[str, np.ndarray]) -> np.ndarray:
        """Errors, and corrects where they are private as well: (runs, Q, d, 2, 1 or 2)."""
        rows = seen["rows"]
        errors = np.rint(seen["rates"] * rows) if "rates" in seen else seen["errors"]
        return np.stack([errors] if self.question.protect == "label" else [errors, rows - errors], axis=-1)


def two_class_question_of(variant: Variant, setting: TwoClassSetting) -> TwoClassQuestion:
    """What the aggregator asks of a party under a guarantee for this variant, in a small world; first of an exchange.

    Raises `InputError` for a protocol that asks anything else.
    """
    options = dict(variant.options)
    if options.get("expansion") == "fourier":
        options["dimensions"] = _FOURIER
    plan = world_of(
        replace(variant, options=options),
        setting.epsilon,
        setting.delta,
        public="scenarios.audits.audit_labels:public_rows",
        classes=("0", "1"),
        parties=_PARTIES,
        quorum=_QUORUM,
        largest_bag=_ROWS,
        private_rows=_PARTIES * _ROWS,
    )
    found = [asked for asked in asked_in(plan) if isinstance(asked, TwoClassQuestion)]
    if len(found) != 1:
        raise InputError(f"variants of {variant.kind} cannot be audited end to end, such as '{variant.name}'")
    return found[0]


def audit_two_classes(
    variant: Variant, setting: TwoClassSetting, *, runs: int | None, confidence: float
) -> tuple[AuditResult, AuditResult]:
    """The audits of one variant: of its claim, and of a twin with half the noise for what is protected.

    In the twin two rows or labels change in place of one, or half of the shares are missing. Raises `InputError` where
    no noise serves.
    """
    question = two_class_question_of(variant, setting)
    pairs: tuple[Neighbours, Neighbours]
    if isinstance(question, PrivateLabelsQuestion):
        usual, pairs = RUNS_OF_LABELS, (LabelPair(question, 1), LabelPair(question, 2))
    elif isinstance(question, MomentQuestion):
        parties = tuple(range(question.contributors or 1))
        half = parties[: len(parties) // 2]
        twin = SumPair(question, 1, half) if half else SumPair(question, 2, parties)
        usual, pairs = RUNS_OF_SUMS, (SumPair(question, 1, parties), twin)
    else:
        agreed = question.exchange.queries
        usual, pairs = RUNS_OF_EXCHANGES, (ExchangePair(question, 1, agreed), ExchangePair(question, 2, agreed))
    one, two = (audit_pair(pair, runs=runs or usual, confidence=confidence) for pair in pairs)
    return one, two


def _sent(
    provider: type[SumNeighbour | CellNeighbour], arguments: dict[str, Any], question: _Noised, parties: int = 1
) -> Mapping[str, np.ndarray]:
    """What parties with these holdings answer."""
    reference = Reference(f"{provider.__module__}:{provider.__name__}", arguments)
    sent: Submission = questions()[question.kind].load()(Cohort(reference.to_json(), 0, parties, SEED), question)
    assert not sent.failures  # or the holdings that were made up are at fault
    return sent.arrays


def _seen(question: _Noised, arrays: Mapping[str, np.ndarray], guarantee: Guarantee | NoGuarantee) -> Submission:
    """As if of one party: what is seen of several, or in several answers, and what it all promises together."""
    promised = guarantee if isinstance(guarantee, Guarantee) else None
    whole = {name: array[None] for name, array in arrays.items()}
    return Submission(question.kind, np.zeros(1, dtype=np.int64), whole, promised)


def _without_noise(question: _Noised) -> _Noised:
    known = {**question.noising.mechanism, "noise": OFF}
    return replace(question, noising=replace(question.noising, mechanism=known))
