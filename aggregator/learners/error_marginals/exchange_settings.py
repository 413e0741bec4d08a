"""What a learner of error marginals is told before its first query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from aggregator.learners.inputs.validation import require_flag, require_integer, require_one_of
from federation.contract.errors import InputError
from federation.contract.query import MOST_BINS, MOST_EPOCHS, MOST_ROUNDS, MOST_WIDTH

Memory = Literal["cumulative", "instantaneous"]
LabelEstimate = Literal["entropy", "least_squares"]
Rounding = Literal["soft", "hard"]
Learner = Literal["network", "linear"]


@dataclass(frozen=True)
class ExchangeSettings:
    """How hypotheses are learned from marginals of errors, fixed before the first query.

    Attributes:
        rounds: T >= 1, the hypotheses h_1..h_T that are trained; h_0..h_{T-1} are asked about.
        importance: ask first how the target's rows spread over the bins, and weight the source to match (Pb. 1).
            Without it source and target must have one distribution.
        memory: "cumulative" estimates labels from the answers of all rounds (C-EXPRIL), "instantaneous" from the last
            one only (I-EXPRIL).
        labels: "entropy" takes the labels of largest entropy that fit the answers, "least_squares" those nearest to 1/2
            within [0, 1], of which the published ones are a limit.
        rounding: "soft" trains on label estimates in [0, 1], "hard" on their nearest class, as published.
        learner: "network" of ReLU layers, as published, or "linear" logistic regression.
        hidden: widths of the network's hidden layers.
        epochs: passes over the source in which the network is trained. None for 40 with soft labels, too few to learn
            the noise of the answers, and 100 with hard ones, which minimise the cross-entropy as published; more of a
            small source.
        bins: bins of every feature at most; None for as many as tell most by public numbers (`bins_per_feature`), and
            "four_deviations" for the published number (`published_bins`).
        guard: release a constant class if noisy totals say that it errs less than every hypothesis asked about.
        noisy_totals: the numbers of rows per bin are released with the noise of the errors and corrects; False where
            they are exact because features are public.

    Raises `InputError` for values out of range.

    Examples:
        >>> ExchangeSettings(rounds=3, importance=True).queries
        4
        >>> ExchangeSettings(memory="all")
        Traceback (most recent call last):
        federation.contract.errors.InputError: memory must be one of cumulative, instantaneous, got 'all'
    """

    rounds: int = 2
    importance: bool = False
    memory: Memory = "cumulative"
    labels: LabelEstimate = "entropy"
    rounding: Rounding = "soft"
    learner: Learner = "network"
    hidden: tuple[int, ...] = (32, 32)
    epochs: int | None = None
    bins: int | Literal["four_deviations"] | None = None
    guard: bool = False
    noisy_totals: bool = True

    def __post_init__(self) -> None:
        require_integer("rounds", self.rounds, 1, 2, MOST_ROUNDS)
        for name in ("importance", "guard", "noisy_totals"):
            require_flag(name, getattr(self, name))
        kinds = {"memory": Memory, "labels": LabelEstimate, "rounding": Rounding, "learner": Learner}
        for name, kind in kinds.items():
            require_one_of(name, getattr(self, name), get_args(kind))
        if not self.hidden:
            raise InputError("hidden must name the width of at least one layer, got none; use learner: linear instead")
        for width in self.hidden:
            require_integer("hidden, the width of a layer,", width, 1, 32, MOST_WIDTH)
        if self.epochs is not None:
            require_integer("epochs", self.epochs, 1, 40, MOST_EPOCHS)
        if self.bins not in (None, "four_deviations"):
            require_integer("bins", self.bins, 1, 20, MOST_BINS)
        if self.guard and self.rounds < 2:
            raise InputError(
                "guard needs rounds of 2 or more, got 1: only then is a trained hypothesis asked about; "
                "raise rounds or leave guard out"
            )

    @property
    def queries(self) -> int:
        """Q, the queries for which noise must be calibrated: one per round, and one for importance weights."""
        return self.rounds + self.importance
