"""Options of `error_marginals`, which of them go together, and what follows from them."""

from dataclasses import dataclass, fields
from typing import Literal

from aggregator.contract.protocol import refuse_misplaced
from aggregator.learners.error_marginals.estimation import ExchangeSettings
from federation.contract.errors import InputError
from federation.contract.query import MOST_ROWS, OFF
from federation.queries.marginals import PUBLISHED, MarginalsNoise


@dataclass(frozen=True)
class ExchangeOptions:
    """What parties are asked in how many rounds, under which noise, and how hypotheses are learned from it.

    rounds: hypotheses that are trained, each from the errors of those before.
    noise: `auto` (by public numbers, the less of the next two), `pure` (discrete Laplace), `gaussian` (discrete
        Gaussian, uses delta), `published` (error rates with Laplace noise, as published; protects labels only) or `off`
        (NON-PRIVATE).
    protect: one whole `row`, or one `label`, features and numbers of rows being public.
    adjacency: of rows: one is added or removed (`add_remove`), or replaced, which needs more noise (`replace`).
    memory: labels are estimated from the answers of all rounds (`cumulative`) or the last one (`instantaneous`).
    labels: estimates of largest `entropy` that fit the answers, or by `least_squares` within [0, 1].
    rounding: of the estimates: `soft` (none) or `hard` (to the nearest class, as published).
    importance: ask first how rows spread, and weight the source to match: `auto` (where the scenario says that
        auxiliary rows are drawn otherwise than the parties'), `always` or `never`.
    learner: `network` or `linear`.
    hidden: widths of the network's layers.
    epochs: passes over the source in which it is trained; null is 40 with soft labels, which stops before it learns the
        noise of the answers, 100 with hard ones, and more of a small source.
    bins: of each feature, at most; null for as many as tell most under the noise of their counts, or with `noise:
        published` for the published number, `four_deviations` of noise worth of rows in each, which is not smaller.
    guard: release a constant class where the noisy totals say that it errs less than what was learned.
    expected_rows: of adjacency add_remove, where numbers of rows are private: a public guess of those of all parties,
        by which bins are chosen; null takes the number of auxiliary rows.
    """

    rounds: int = 2
    noise: Literal["auto", "pure", "gaussian", "published", "off"] = "auto"
    protect: Literal["row", "label"] = "row"
    adjacency: Literal["add_remove", "replace"] = "add_remove"
    memory: Literal["cumulative", "instantaneous"] = "cumulative"
    labels: Literal["entropy", "least_squares"] = "entropy"
    rounding: Literal["soft", "hard"] = "soft"
    importance: Literal["auto", "always", "never"] = "auto"
    learner: Literal["network", "linear"] = "network"
    hidden: tuple[int, ...] = (32, 32)
    epochs: int | None = None
    bins: int | Literal["four_deviations"] | None = None
    guard: bool = False
    expected_rows: int | None = None

    def __post_init__(self) -> None:
        if self.noise == PUBLISHED and self.protect != "label":
            raise InputError(
                "noise: published is private for one label only, as exact numbers of rows divide the errors; use "
                "protect: label, or noise: pure, which protects a row with noise of the same scale"
            )
        object.__setattr__(self, "hidden", tuple(self.hidden))  # of a scenario they are a list
        replaced = self.neighbours == "replace"
        refuse_misplaced(self, ("adjacency",), "protect: row", self.protect == "row")
        refuse_misplaced(self, ("hidden", "epochs"), "learner: network", self.learner == "network")
        refuse_misplaced(self, ("expected_rows",), "protect: row with adjacency: add_remove", not replaced)
        if self.expected_rows is not None and not 1 <= self.expected_rows <= MOST_ROWS:
            raise InputError(f"expected_rows must be a whole number from 1 to {MOST_ROWS}, got {self.expected_rows}")
        self.settings(shifted=False)

    @property
    def neighbours(self) -> Literal["add_remove", "replace"]:
        """The adjacency of what is protected."""
        return self.adjacency if self.protect == "row" else "replace"

    def settings(self, shifted: bool) -> ExchangeSettings:
        """What the learner is told; `shifted` says that source and target are drawn otherwise. Raises `InputError`."""
        known = {one.name: getattr(self, one.name) for one in fields(ExchangeSettings) if hasattr(self, one.name)}
        known["importance"] = shifted if self.importance == "auto" else self.importance == "always"
        if self.bins is None and self.noise == PUBLISHED:
            known["bins"] = "four_deviations"
        return ExchangeSettings(**known, noisy_totals=self.protect == "row" and self.noise != OFF)

    def noise_of(self, epsilon: float, delta: float) -> MarginalsNoise:
        """The noise that parties are asked for."""
        return MarginalsNoise(self.noise, epsilon, delta if self.noise in ("auto", "gaussian") else 0.0)
