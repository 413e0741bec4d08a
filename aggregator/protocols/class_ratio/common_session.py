"""The session of `class_ratio` where bags are the same at all parties, and nothing but sums over these is seen."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, cast

import numpy as np

from aggregator.answers.bag_answers import BagAnswers
from aggregator.answers.local_answers import SummedAnswers
from aggregator.answers.shared_bags import SharedBags
from aggregator.contract.premises import local_guarantee, summed
from aggregator.contract.session import Asked
from aggregator.protocols.class_ratio.ratio_fitting import Labelled, least_rows
from aggregator.protocols.class_ratio.ratio_session import RatioSession
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.query import ReleaseId
from federation.contract.trust import honest
from federation.mechanisms.counts.additive import exchangeable
from federation.numerics.rows import Floats
from federation.numerics.simplex import project
from federation.queries.bags import (
    BagTotalsQuestion,
    CountTotalsQuestion,
    EmbeddingTotalsQuestion,
    RowsQuestion,
    TotalsNoise,
)

_ROWS_CHECKED = "rows of bags, which are public, were checked on arrival; those out of form were left out"
_DEVIATIONS = 3.0  # of the noise on its size, which a bag must exceed where sizes have noise


class CommonSession(RatioSession):
    """Counts of each bag over all parties, with a noise that they share, and what the bag looks like.

    Rows are sent as they are, where options say so, and put together by bag. Of embeddings only the sums over all
    parties are seen; where rows are protected, the noise is on these, too, and how many rows a bag has follows from its
    noisy counts. Without noise answers are added in clear.
    """

    def _require_bags(self) -> None:
        plan = self._world.plan
        if plan.bags < len(plan.classes):
            raise InputError(
                f"{plan.bags} bags that are the same at all parties cannot tell {len(plan.classes)} classes apart: "
                "class ratios need at least as many bags as classes; choose another column for parties.bags"
            )

    def _ask(self, epsilon: float) -> tuple[list[Asked], Guarantee | NoGuarantee, ReleaseId]:
        """The totals, and the parties' rows where these are sent."""
        plan, question = self._world.plan, self._totals_question(epsilon)
        collector: SharedBags | SummedAnswers
        if question.shared:
            promised = local_guarantee(plan, question.promise(), summed(plan, question.mechanism().additive))
            collector = SharedBags(question, plan)
        else:
            promised, collector = question.promise(), SummedAnswers(question, plan.parties, None)
        self._totals = question
        asked = [Asked(question, self._view.training, collector)]
        if self._options.submit == "rows":
            rows = RowsQuestion(self._bags, self._features, plan.largest_bag)
            asked.append(Asked(rows, self._view.training, BagAnswers(rows, plan.parties, plan.largest_bag, None)))
        return asked, promised, question.release

    @property
    def checks(self) -> tuple[str, ...]:
        """How the sum was made, and what was verified of it."""
        totals = self.answers[0]
        if not isinstance(totals, SharedBags):
            return super(RatioSession, self).checks
        return (*totals.told, _ROWS_CHECKED) if self._options.submit == "rows" else totals.told

    def _totals_question(self, epsilon: float) -> BagTotalsQuestion:
        options, plan = self._options, self._world.plan
        noise = TotalsNoise(cast(Literal["auto", "pure", "gaussian", "off"], options.noise), epsilon, plan.delta)
        contributors = honest(plan.parties, plan.quorum, plan.colluding) if noise.aims else 1
        if options.submit == "rows":
            release = self._named(noise, "common")
            return CountTotalsQuestion(noise, self._bags, contributors, release=release, **self._answered)
        weight = self._label_weight if options.protect == "row" else 0.0
        # Other features are another release, from which equal noise would cancel.
        release = self._named(noise, "common", weight, options.dimensions, options.embedded_bandwidth)
        return EmbeddingTotalsQuestion(
            noise,
            self._bags,
            contributors,
            self._features,
            options.protect,
            weight,
            release=release,
            **self._answered,
        )

    def _of_draw(self, draw: int) -> tuple[Labelled, int]:
        """The bags that have rows enough, by what is known of one draw."""
        found = self._by_noisy_sizes(draw) if self._totals.protects_rows else self._by_sizes(draw)
        if len(found.sizes) < self._bags.classes:
            raise InputError(
                f"{len(found.sizes)} of {self._bags.count} bags have rows enough beside the noise, and to tell "
                f"{self._bags.classes} classes apart takes as many; choose a column with larger groups for "
                "parties.bags, or raise epsilon"
            )
        return found, 0

    @property
    def _variance(self) -> float:
        """Of the noise on each number."""
        totals = self.answers[0]
        return totals.variance if isinstance(totals, SharedBags) else 0.0

    @cached_property
    def _held(self) -> list[Floats]:
        """The rows of each bag, of one party after another."""
        answers = self.answers[1]
        rows, sizes = answers.array("rows"), answers.sizes.astype(np.int64)
        return [
            np.concatenate([rows[party, bag, : sizes[party, bag]] for party in range(len(sizes))])
            for bag in range(self._bags.count)
        ]

    def _by_sizes(self, draw: int) -> Labelled:
        """Where how many rows a bag has is public: counts are moved alike to that."""
        totals, classes = self.answers[0], self._bags.classes
        sizes, counts = totals.total("sizes"), totals.total("counts")[draw]
        kept = sizes >= least_rows(self._options)
        features: list[Floats] | Floats
        if self._options.submit == "rows":
            kept &= sizes == [len(rows) for rows in self._held]
            features = [self._held[bag] for bag in np.flatnonzero(kept)]
        else:
            features = (totals.total("sums")[kept] / sizes[kept, None])[None]
        counts, sizes = counts[kept], sizes[kept]
        counts = counts + (sizes - counts.sum(axis=1))[:, None] / classes
        one = exchangeable(self._variance * (1 - 1 / classes), classes)
        noise = np.tile(one, (len(sizes), 1, 1)) if self._totals.noise.aims else None
        return Labelled(sizes, counts[None], noise, features, 0.0, np.arange(len(sizes)))

    def _by_noisy_sizes(self, draw: int) -> Labelled:
        """Where it is not: the size is the sum of the noisy counts, whose noise is then also that of the size."""
        totals, classes, weight = self.answers[0], self._bags.classes, self._label_weight
        counts, sums = totals.total("counts")[draw] / weight, totals.total("sums")[draw]
        of_count = self._variance / weight**2
        sizes = counts.sum(axis=1)
        kept = sizes >= max(least_rows(self._options), _DEVIATIONS * np.sqrt(classes * of_count))
        counts, sums, sizes = counts[kept], sums[kept], sizes[kept]
        shares, every = project(counts / sizes[:, None]), np.ones(classes)
        # Of (c + e) / (n + sum e) to first order in e, whose entries are independent.
        mixed = shares[:, :, None] * every
        noise = of_count * (
            np.eye(classes) - mixed - mixed.swapaxes(1, 2) + classes * shares[:, :, None] * shares[:, None, :]
        )
        return Labelled(
            sizes,
            counts[None],
            noise if self._totals.noise.aims else None,
            (sums / sizes[:, None])[None],
            self._variance,
            np.arange(len(sizes)),
        )
