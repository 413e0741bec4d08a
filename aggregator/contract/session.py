"""Base classes of sessions: one release of a protocol in one trial, its queries in rounds, and its models.

A `Session` sends its queries round by round, and learns from the responses. `OneRound` sends all queries at once.

Where the aggregator makes the noise, a session hands over a `Perturbable`: a vector, its sensitivity, and the decoder
that turns noisy vectors into models. A session with several noisy rounds hands over `RoundsOfNoise` and `RoundValue`s.

An `Outlook` is the signal-to-noise warning of a release. It follows from public numbers, before any party is asked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Guarantee, NoGuarantee, Unit
from federation.contract.query import OFF, Question, ReleaseId, RoundQuestion
from federation.features.feature_map import FeatureMap
from federation.mechanisms.noise.additive import AdditiveMechanism, Noise, calibrate
from federation.queries.votes import Training


@dataclass(frozen=True)
class RoundsOfNoise:
    """The noise that the aggregator adds in every round of a session, planned before the first query.

    A session releases a noisy value of `dimension` numbers in at most so many `rounds`. Each value moves by at most
    `sensitivity` in the L2 norm when one `unit` is replaced, whatever was released in earlier rounds. `assumptions`
    say why. One calibration serves all rounds, and one guarantee covers them together. `noise` "off" adds none.
    """

    rounds: int
    sensitivity: float
    dimension: int
    assumptions: tuple[Assumption, ...] = ()
    unit: Unit = Unit.PARTY
    noise: Noise | Literal["off"] = "pure"

    def mechanism(self, epsilon: float, delta: float) -> AdditiveMechanism:
        """Calibrate the noise of each round, such that all rounds together spend (epsilon, delta).

        Raises `InputError` for numbers out of range, and without noise.
        """
        if self.noise == OFF:
            raise InputError("noise is off: there is nothing to calibrate")
        known = {"sensitivity": self.sensitivity, "dimension": self.dimension, "rounds": self.rounds}
        return calibrate(self.noise, epsilon=epsilon, delta=delta, **known)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RoundValue:
    """What one round releases, before the noise: `value` (D,), which one unit moves by at most `sensitivity` (L2).

    `value` is (draws, D) where each noise draw has queries, and so responses, of its own.
    """

    value: np.ndarray
    sensitivity: float


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, behind which training it belongs, and who collects the answers; `draw` whose noise draw it is for.

    Questions that serve all draws, as most do, are for draw 0.
    """

    question: Question
    training: Training
    collector: Any  # a `Collector`, whose further methods the session knows
    draw: int = 0


class Session(ABC):
    """Begun by `Protocol.begin` for one epsilon and a number of noise draws; holds all state of the release.

    The skeleton (`aggregator.server.variants`) asks `questions` and hands the answers to `take` until there are no more
    questions. Where the aggregator makes the noise it then perturbs what `perturbable` returns; elsewhere it charges
    `guarantee` and calls `learn` for each draw. Methods may raise `FederationError`s: the variant then fails alone.

    A session with `rounds_of_noise` releases in every round instead. After each `take` the skeleton adds noise to the
    `value` of this round and hands the noisy value to `release`; in the end it calls `learn` for each draw. What such a
    session asks, and what it learns, may depend on responses through noisy values only.
    """

    @property
    @abstractmethod
    def feature_map(self) -> FeatureMap:
        """What raw rows pass before the released model."""

    @abstractmethod
    def questions(self) -> Sequence[Asked]:
        """What to ask in the next round; nothing at the end. Called once a round."""

    def longest(self, question: Question) -> Question:
        """The longest of all that it may ask in the place of a question of its first round, which it is by default.

        Of a protocol whose later questions follow from answers: real sites agree to their length beforehand. By default
        they differ in the number of their round only.
        """
        return replace(question, round=question.rounds - 1) if isinstance(question, RoundQuestion) else question

    @abstractmethod
    def take(self, answers: Sequence[Any]) -> None:
        """The collectors of the round's questions, in their order, with what parties answered.

        A collector may be that of another session which asked the same.
        """

    def outlook(self) -> "Outlook | None":
        """How loud its noise will be, by public numbers; None where it is quiet or no rule is known."""
        return None

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What the answers promise together, from the questions alone; of releases whose noise parties make.

        Known once `questions` was called the first time. Raises `InputError` unless a session overrides it.
        """
        raise InputError(f"{type(self).__name__} does not say what its answers promise; its package must be repaired")

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, in public words, for the ledger."""
        return ()

    @property
    def source(self) -> str | None:
        """The name of the noisy answers that it is made of: releases of one source are paid for once."""
        return None

    def perturbable(self) -> "Perturbable":
        """What gets the aggregator's noise. Raises `InputError` unless a session overrides it."""
        raise InputError(f"{type(self).__name__} has nothing to perturb; its package must be repaired")

    def rounds_of_noise(self) -> RoundsOfNoise | None:
        """Return the plan of a session that releases noisy values in every round; called once, before the first query.

        Public numbers alone decide it. None, the default, is for sessions without such rounds.
        """
        return None

    def value(self) -> RoundValue | None:
        """Return what the round that was just taken releases, before the noise; None where it releases nothing.

        Raises `InputError` unless a session with `rounds_of_noise` overrides it.
        """
        raise InputError(
            f"{type(self).__name__} plans rounds and has no value to release; its package must be repaired"
        )

    def release(self, noisy: np.ndarray) -> None:
        """Take the noisy value of this round, shape (draws, D); later queries may depend on it.

        Raises `InputError` unless a session with `rounds_of_noise` overrides it.
        """
        raise InputError(f"{type(self).__name__} plans rounds and takes no noisy value; its package must be repaired")

    def learn(self, draw: int) -> Any:
        """The model of one noise draw, as the protocol's kind of model describes one.

        Raises `InputError` unless a session overrides it.
        """
        raise InputError(f"{type(self).__name__} learns nothing without noise; its package must be repaired")

    def diagnostics(self) -> dict[str, float]:
        """Public numbers beside the release, for results.csv; asked for after the models were learned."""
        return {}


class OneRound(Session):
    """A session that asks all its questions at once.

    `asked` are its questions, `promised` what the answers promise together, and `release` that of the noisy ones, None
    where parties make no noise. After `take`, `answers` are the collectors in the order of the questions.
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        asked: Sequence[Asked],
        promised: Guarantee | NoGuarantee,
        release: ReleaseId | None = None,
    ) -> None:
        self._feature_map, self._due, self._promised, self._release = feature_map, list(asked), promised, release
        self.answers: list[Any] = [one.collector for one in asked]

    @property
    def feature_map(self) -> FeatureMap:
        """What raw rows pass before the released model."""
        return self._feature_map

    def questions(self) -> Sequence[Asked]:
        """All of them, once."""
        due, self._due = self._due, []
        return due

    def take(self, answers: Sequence[Any]) -> None:
        """Those of all questions."""
        self.answers = list(answers)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """Of all answers together."""
        return self._promised

    @property
    def source(self) -> str | None:
        """The release that parties made: what else is learned from it is paid for with it."""
        return None if self._release is None else self._release.name


Decode = Callable[[np.ndarray, AdditiveMechanism | None], np.ndarray]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Class scores of the auxiliary rows as a linear function of the perturbed vector, seen as blocks of r coordinates.

    `of` maps one noisy vector (D,) to scores (N, C), of which the largest in a row is the predicted class. `spread`
    maps noise variances (r,) of a block's coordinates, the same in all blocks, to (N,): the differences of row i's
    scores then vary like those of independent noise of that standard deviation in each class. `profile` (r,) says how
    the variance of the value itself may be expected to go over the coordinates, up to a factor.
    """

    of: Callable[[np.ndarray], np.ndarray]
    spread: Callable[[np.ndarray], np.ndarray]
    profile: np.ndarray

    @classmethod
    def of_features(cls, features: np.ndarray, mixing: np.ndarray, profile: np.ndarray) -> "LinearScores":
        """Scores F V' M' of values V (blocks, r) for features F (N, r) and an M (C, blocks).

        Rows of M must differ from each other by the same distance; class contrasts differ by sqrt(2).
        """
        apart = float(np.linalg.norm(mixing[0] - mixing[1])) / np.sqrt(2)
        squares = features**2

        def of(value: np.ndarray) -> np.ndarray:
            return np.asarray(features @ value.reshape(-1, features.shape[1]).T @ mixing.T)

        return cls(of, lambda variances: apart * np.sqrt(squares @ variances), profile)


@dataclass(frozen=True, eq=False)
class Decoder:
    """What turns noisy values (draws, D) into models, and what diagnostics know of the value without noise.

    As for `Perturbable`, whose value nobody has here: parties made the noise.
    """

    decode: Decode
    scores: LinearScores | None = None
    largest_norm: float | None = None


@dataclass(frozen=True)
class Perturbable(RoundValue):
    """A private vector, how far one unit can move it, the law of its noise, and what turns noisy copies into models.

    `value` (D,) has L2 sensitivity `sensitivity` when one `unit` is replaced. `decode` maps noisy values (draws, D),
    with the mechanism that made them (None without noise), to weights (draws, C, d); it sees public data only
    (for a protected auxiliary row, its own arguments only). For diagnostics: `largest_norm` is the largest norm that
    any votes can give the value, of a mean over the declared parties only, whose noise falls as their number grows;
    `scores` is its linear effect on the auxiliary rows where there is one.
    """

    decode: Decode
    assumptions: tuple[Assumption, ...]
    checks: tuple[str, ...]
    unit: Unit = Unit.PARTY
    largest_norm: float | None = None
    scores: LinearScores | None = None
    noise: Noise = "pure"

    @property
    def planned(self) -> RoundsOfNoise:
        """Its noise, which is added in one round."""
        return RoundsOfNoise(1, self.sensitivity, len(self.value), self.assumptions, self.unit, self.noise)


USEFUL = 4.0  # signal over noise from which a release is hardly ever worse than a constant answer
_HOPELESS = 1.0


@dataclass(frozen=True)
class Outlook:
    """The largest signal that the declared parties can give over the expected noise, and how many parties would do."""

    signal_to_noise: float
    parties_needed: int


def told(outlooks: Mapping[str, Mapping[float, Outlook]], parties: int) -> Iterator[str]:
    """One line for the variants of which the same is to be said; `outlooks` by variant and epsilon.

    Examples:
        >>> few = {0.1: Outlook(0.4, 1000), 1.0: Outlook(3.0, 100)}
        >>> print(*told({"soft_vote": few, "parameter_average": few}, parties=70))
        soft_vote, parameter_average: at epsilon 0.1 the noise is louder than all that 70 parties can say (signal to
        noise 0.4): it may hide most of that, and a constant answer may be as good; to count on more it takes about
        1000 parties; at epsilon 1 a constant answer may be as good (signal to noise 3); to count on more it takes about
        100 parties
    """
    alike: dict[tuple[tuple[float, Outlook], ...], list[str]] = {}
    for variant, by_epsilon in outlooks.items():
        alike.setdefault(tuple(by_epsilon.items()), []).append(variant)
    for found, variants in alike.items():
        few = [(epsilon, one) for epsilon, one in found if one.signal_to_noise < _HOPELESS]
        some = [(epsilon, one) for epsilon, one in found if _HOPELESS <= one.signal_to_noise < USEFUL]
        lines = []
        if few:
            louder = f"the noise is louder than all that {parties} parties can say ({_ratios(few)})"
            feared = "it may hide most of that, and a constant answer may be as good"
            lines.append(f"at epsilon {_epsilons(few)} {louder}: {feared}; {_needed(few)}")
        if some:
            equal = f"a constant answer may be as good ({_ratios(some)})"
            lines.append(f"at epsilon {_epsilons(some)} {equal}; {_needed(some)}")
        if lines:
            yield f"{', '.join(variants)}: {'; '.join(lines)}"


def _epsilons(found: Sequence[tuple[float, Outlook]]) -> str:
    return ", ".join(f"{epsilon:g}" for epsilon, _ in found)


def _ratios(found: Sequence[tuple[float, Outlook]]) -> str:
    return f"signal to noise {', '.join(f'{one.signal_to_noise:.2g}' for _, one in found)}"


def _needed(found: Sequence[tuple[float, Outlook]]) -> str:
    return f"to count on more it takes about {', '.join(str(one.parties_needed) for _, one in found)} parties"
