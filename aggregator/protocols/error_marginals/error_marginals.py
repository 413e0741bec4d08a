"""Protocol `error_marginals` (EXPRIL; Lacombe, Jetley and Sebag 2021): learning from marginals of errors, in rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from aggregator.contract.option_rules import refuse_misplaced
from aggregator.contract.protocol import Place, Protocol, Refused, Requires, Trust
from aggregator.contract.public_numbers import Promise, PublicNumbers, Sent
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.limits import MOST_ROWS
from federation.contract.question import OFF
from federation.questions.marginals import PUBLISHED, MarginalsNoise

if TYPE_CHECKING:
    from aggregator.protocols.error_marginals.exchange_session import ExchangeSession
    from aggregator.protocols.error_marginals.exchange_settings import ExchangeSettings
    from aggregator.protocols.error_marginals.worst_exchange import WorstExchange
    from aggregator.world.world import World


@dataclass(frozen=True)
class ErrorMarginals(Protocol):
    """Parties are oracles: asked about a hypothesis, they count its errors in bins of each feature, with noise.

    The aggregator's public auxiliary rows are the source that it labels and trains on; no row and no label leaves a
    party. The number of queries is agreed on beforehand, and noise is for all of them.

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

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "classifier"
    requires: ClassVar[Requires] = Requires(two_classes=True, single_rows=True, features=("standardise",))
    why_default: ClassVar[str] = (
        "the default: noisy errors and noisy corrects, which protect a row; mean_operator needs one answer in place\n"
        "of rounds, and is the more accurate one on most data"
    )

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

    def idle(self) -> dict[str, str]:
        """Options that make no difference whatever their values, and beside which others."""
        return dict.fromkeys(("protect", "adjacency", "expected_rows"), "noise: off") if self.noise == OFF else {}

    @property
    def neighbours(self) -> Literal["add_remove", "replace"]:
        """The adjacency of what is protected."""
        return self.adjacency if self.protect == "row" else "replace"

    def settings(self, shifted: bool) -> ExchangeSettings:
        """What the learner is told; `shifted` says that source and target are drawn otherwise. Raises `InputError`."""
        from aggregator.protocols.error_marginals.exchange_settings import ExchangeSettings

        return ExchangeSettings(
            rounds=self.rounds,
            importance=shifted if self.importance == "auto" else self.importance == "always",
            memory=self.memory,
            labels=self.labels,
            rounding=self.rounding,
            learner=self.learner,
            hidden=self.hidden,
            epochs=self.epochs,
            bins="four_deviations" if self.bins is None and self.noise == PUBLISHED else self.bins,
            guard=self.guard,
            noisy_totals=self.protect == "row" and self.noise != OFF,
        )

    def noise_of(self, epsilon: float, delta: float) -> MarginalsNoise:
        """The noise that parties are asked for."""
        return MarginalsNoise(self.noise, epsilon, delta if self.noise in ("auto", "gaussian") else 0.0)

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, who trusts nobody."""
        return Place.NOWHERE if self.noise == OFF else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at, for all queries of an exchange together."""
        counts = Sent(f"up to {self.rounds + 1} answers of counts in bins", None, self.noise != OFF)
        if self.noise == OFF:
            return Promise(NoGuarantee("noise is off"), (counts,))
        noise = self.noise_of(epsilon, public.delta)
        adjacency = Adjacency(self.neighbours)
        return Promise(Guarantee(epsilon, noise.delta, Unit(self.protect), adjacency, type(self).__name__), (counts,))

    def begin(self, world: World, epsilon: float, draws: int) -> ExchangeSession:
        """A session of one exchange for each noise draw."""
        from aggregator.protocols.error_marginals.exchange_session import ExchangeSession

        return ExchangeSession(world, self, epsilon, draws)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstExchange:
        """One row or label, and queries that always ask about it."""
        from aggregator.protocols.error_marginals.worst_exchange import DESCRIBED, RUNS, WorstExchange
        from aggregator.protocols.mean_operator.worst_sums import WORLD

        change = "label" if self.protect == "label" else self.adjacency
        return WorstExchange(DESCRIBED, np.eye(2), RUNS, world=WORLD, units=units, change=change)
