"""Sessions of `class_ratio`: they ask about bags, and fit an estimator to every noisy draw of the responses.

- `RatioSession` asks each party about bags of its own.
- `CommonSession` is for bags that are the same at all parties. Of counts and embeddings, only sums over the parties are
  seen.
- `Fitting` fits the estimator that the options name to the responses (`Labelled`).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np

from aggregator.collectors.collectors import Kept, Summed, asked_openly
from aggregator.collectors.one_query import QuerySession
from aggregator.collectors.robust_sums import Changes
from aggregator.learners.class_ratios import catalogue
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.kernels.exact import median_squared_distance
from aggregator.protocols.class_ratio.options import CORRECTED, KERNELLED, RatioOptions, conditioning
from aggregator.releases.models import Described
from aggregator.trial.trial import World
from federation.contract.errors import InputError
from federation.contract.query import OFF, Noise, PrivateQuestion, ReleaseId
from federation.features.feature_map import FeatureMap, with_fourier
from federation.mechanisms.counts.additive import exchangeable
from federation.numerics.rows import Floats
from federation.numerics.simplex import project
from federation.queries import bags


def shared_bags(*answers: Kept, least: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Party and number, (M,) each, of bags of `least` rows or more of which all answers say the same size; in order."""
    sizes = np.stack([answer.array("sizes") for answer in answers])
    found = (sizes[0] >= least) & (sizes == sizes[0]).all(axis=0)
    party, number = np.nonzero(found)
    return party, number


_CHECKS = ("answers about bags were checked on arrival; those out of form were left out",)


class RatioSession(QuerySession):
    """Counts of all bags and what the bags look like, and an estimator from each noise draw of the answers."""

    _noised: PrivateQuestion

    def __init__(self, world: World, options: RatioOptions, epsilon: float, draws: int) -> None:
        self._world, self._options, self._draws = world, options, draws
        self._found: dict[str, float] = {}
        plan = world.plan
        self._bags = bags.Bags(plan.public.bags, len(plan.task.classes), plan.public.rows_per_person)
        self._require_bags()
        self._noised = self._noisy_question(epsilon)
        after = [asked_openly(question, world.view.training, plan) for question in self._open_questions()]
        super().__init__(world, self._noised, feature_map=self._features, after=after)

    def _require_bags(self) -> None:
        plan = self._world.plan
        parties, most, classes = plan.terms.parties, plan.public.bags, len(plan.task.classes)
        if parties * most < classes:
            raise InputError(
                f"{parties} parties with at most {most} bags cannot tell {classes} classes apart: "
                "class ratios need at least as many bags as classes; raise parties.count or parties.bags"
            )

    def _open_questions(self) -> list[bags.RowsQuestion | bags.EmbeddingsQuestion]:
        """Queries for bags without labels and noise. There are none where the noisy responses contain the means."""
        if self._options.submit == "rows":
            return [bags.RowsQuestion(self._bags, self._features, self._world.plan.public.largest_bag)]
        counted = isinstance(self._noised, bags.CountsQuestion)
        return [bags.EmbeddingsQuestion(self._bags, self._features)] if counted else []

    @property
    def _features(self) -> FeatureMap:
        """What rows pass before the estimator: random Fourier features at the end when embeddings are sent."""
        return self._world.once(("features", self._options), self._fit_features)

    @property
    def _shapes(self) -> Kept:
        """The responses with rows or mean embeddings of bags, and with class counts where rows are protected."""
        found: Kept = self.answers[-1]
        return found

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, and how many answers were scaled."""
        return (*_CHECKS, *Changes.of([self.collected.changes]))

    def learn(self, draw: int) -> Described:
        """The estimator of one noise draw."""
        estimator = self._fitting.fit(*self._of_draw(draw))
        if draw == 0:
            self._found = dict(estimator.diagnostics_)
        return estimator.to_arrays()

    def diagnostics(self) -> dict[str, float]:
        """How well the first draw's proportions tell classes apart, and what its estimator found about the bags."""
        return {**self._of_draw(0)[0].conditioning(), **self._found}

    def _of_draw(self, draw: int) -> tuple[Labelled, int]:
        """What is known of the bags, and which of its noisy versions is that of the draw."""
        return self._labelled, draw

    @property
    def _fitting(self) -> Fitting:
        known = (self._options, self.feature_map, self._world.view.public.rows, self._world.plan.task.split)
        return self._world.once(("fitting", self._options), lambda: Fitting(*known))

    def _fit_features(self) -> FeatureMap:
        public, options = self._world.view.public, self._options
        if options.submit == "rows":
            return public.feature_map
        gamma = options.embedded_bandwidth / median_squared_distance(public.rows)
        return with_fourier(public.feature_map, gamma, options.dimensions, self._world.plan.task.split)

    @property
    def _label_weight(self) -> float:
        """Weight of counts beside sums of rows.

        Counts move by sqrt 2 and sums by 2, and labels get their share of squares.
        """
        share = self._options.label_share
        return math.sqrt(2 * share / (1 - share))

    def _noisy_question(self, epsilon: float) -> PrivateQuestion:
        options, delta = self._options, self._world.plan.public.delta
        if options.protect == "row":
            joint = bags.JointNoise("gaussian", epsilon, delta)
            # Other features are another release, from which equal noise would cancel.
            sent = self._sent(joint, options.label_share, options.dimensions, options.embedded_bandwidth)
            return bags.NoisyEmbeddingsQuestion(joint, self._bags, self._features, self._label_weight, **sent)
        noise = bags.CountsNoise(options.noise, epsilon, delta, options.floor, options.pseudo_count)
        extra = [value for value in (options.floor, options.pseudo_count) if value is not None]
        return bags.CountsQuestion(noise, self._bags, **self._sent(noise, *extra))

    def _sent(self, noise: Noise, *parts: Any) -> dict[str, Any]:
        """The release of a query, and how often it is answered.

        It is not named after the variant: estimators of the same noisy answers are one release to the parties.
        """
        release = ReleaseId(self._world.named(self._options.protect, *noise.named, *parts))
        return {"release": release, **self._world.drawn(self._draws)}

    @cached_property
    def _labelled(self) -> Labelled:
        """The bags of which everything is known, and that are large enough to learn from."""
        party, number = shared_bags(self.collected, self._shapes, least=least_rows(self._options))
        sizes = self.collected.array("sizes")[party, number]
        counts = self.collected.array("counts").swapaxes(1, 2)[party, number].swapaxes(0, 1)
        covariance, variance = self._noise_of(sizes)
        # Parties, or bags that are the same at all, are persons or places where there are enough to leave some out.
        place = number if self._world.plan.public.common_bags else party
        return Labelled(
            sizes=sizes,
            counts=counts,
            count_noise=covariance,
            features=self._looks(party, number),
            sum_variance=variance,
            groups=place if len(np.unique(place)) >= self._bags.classes + 2 else np.arange(len(place)),
        )

    def _looks(self, party: np.ndarray, number: np.ndarray) -> list[Floats] | Floats:
        """Rows of each bag, or the means (draws or 1, M, D) of all."""
        if self._options.submit == "rows":
            rows, sizes = self._shapes.array("rows"), self._shapes.array("sizes")
            return [rows[k, b, : int(sizes[k, b])] for k, b in zip(party, number, strict=True)]
        means: Floats = self._shapes.array("means")
        if self._options.protect == "row":
            means = means.swapaxes(1, 2)[party, number].swapaxes(0, 1)
        else:
            means = means[party, number][None]
        return means

    def _noise_of(self, sizes: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Covariances (M, C, C) of the bags' counts, None when not known; variance of a bag's sum of rows."""
        question, classes = self._noised, self._bags.classes
        if isinstance(question, bags.NoisyEmbeddingsQuestion):
            variance = float(question.mechanism().parameters["scale"]) ** 2
            centring = np.eye(classes) - 1 / classes
            return np.tile(centring * variance / question.label_weight**2, (len(sizes), 1, 1)), variance
        if self._options.noise in (OFF, bags.PUBLISHED):
            return None, 0.0
        mechanism = question.mechanism()
        distinct, position = np.unique(sizes, return_inverse=True)
        return np.stack([mechanism.covariance(int(size)) for size in distinct])[position], 0.0


_ROWS_CHECKED = "rows of bags, which are public, were checked on arrival; those out of form were left out"
_DEVIATIONS = 3.0  # of the noise on its size, which a bag must exceed where sizes have noise


class CommonSession(RatioSession):
    """Counts of each bag over all parties, with a noise that they share, and what the bag looks like.

    Rows are sent as they are, where options say so, and put together by bag. Of embeddings only the sums over all
    parties are seen; where rows are protected, the noise is on these, too, and how many rows a bag has follows from its
    noisy counts. Without noise answers are added in clear.
    """

    _noised: bags.BagTotalsQuestion

    def _require_bags(self) -> None:
        count, classes = self._world.plan.public.bags, len(self._world.plan.task.classes)
        if count < classes:
            raise InputError(
                f"{count} bags that are the same at all parties cannot tell {classes} classes apart: class ratios "
                "need at least as many bags as classes; choose another column for parties.bags"
            )

    @property
    def checks(self) -> tuple[str, ...]:
        """How the sum was made, and what was verified of it."""
        if isinstance(self.collected, Summed):
            return _CHECKS
        told = tuple(self.collected.told)
        return (*told, _ROWS_CHECKED) if self._options.submit == "rows" else told

    def _noisy_question(self, epsilon: float) -> PrivateQuestion:
        options, plan = self._options, self._world.plan
        kind = cast(Literal["auto", "pure", "gaussian", "off"], options.noise)
        noise = bags.TotalsNoise(kind, epsilon, plan.public.delta)
        known = (noise, self._bags, plan.terms.honest if noise.aims else 1)
        if options.submit == "rows":
            return bags.CountTotalsQuestion(*known, **self._sent(noise, "common"))
        weight = self._label_weight if options.protect == "row" else 0.0
        # Other features are another release, from which equal noise would cancel.
        sent = self._sent(noise, "common", weight, options.dimensions, options.embedded_bandwidth)
        return bags.EmbeddingTotalsQuestion(*known, self._features, options.protect, weight, **sent)

    def _of_draw(self, draw: int) -> tuple[Labelled, int]:
        """The bags that have rows enough, by what is known of one draw."""
        found = self._by_noisy_sizes(draw) if self._noised.protects_rows else self._by_sizes(draw)
        if len(found.sizes) < self._bags.classes:
            raise InputError(
                f"{len(found.sizes)} of {self._bags.count} bags have rows enough beside the noise, and to tell "
                f"{self._bags.classes} classes apart takes as many; choose a column with larger groups for "
                "parties.bags, or raise epsilon"
            )
        return found, 0

    @cached_property
    def _held(self) -> list[Floats]:
        """The rows of each bag, of one party after another."""
        answers = self.answers[1]
        rows, sizes = answers.array("rows"), answers.array("sizes").astype(np.int64)
        return [
            np.concatenate([rows[party, bag, : sizes[party, bag]] for party in range(len(sizes))])
            for bag in range(self._bags.count)
        ]

    def _by_sizes(self, draw: int) -> Labelled:
        """Bags whose numbers of rows are public: all counts of a bag are moved alike to sum to its number."""
        totals, classes = self.collected, self._bags.classes
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
        one = exchangeable(self.collected.variance * (1 - 1 / classes), classes)
        noise = np.tile(one, (len(sizes), 1, 1)) if self._noised.noise.aims else None
        return Labelled(sizes, counts[None], noise, features, 0.0, np.arange(len(sizes)))

    def _by_noisy_sizes(self, draw: int) -> Labelled:
        """Bags of private size: it is the sum of the noisy counts, whose noise is then also that of the size."""
        totals, classes, weight = self.collected, self._bags.classes, self._label_weight
        counts, sums = totals.total("counts")[draw] / weight, totals.total("sums")[draw]
        of_count = self.collected.variance / weight**2
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
            noise if self._noised.noise.aims else None,
            (sums / sizes[:, None])[None],
            self.collected.variance,
            np.arange(len(sizes)),
        )


def least_rows(options: RatioOptions) -> int:
    """The rows that a bag must have to be of use: two where kernels of different rows of a bag are averaged."""
    pairs = options.estimator == "energy" or (options.estimator, options.kernel) == ("class_means", "exact")
    return 2 if pairs else 1


@dataclass(frozen=True, eq=False)
class Labelled:
    """What is known of M bags: `sizes` (M,), noisy label `counts` (draws, M, C), and what the bags look like.

    `features` are the rows (n_i, d) of each bag, or mean embeddings (draws, M, D), or (1, M, D) for all draws.
    `count_noise` (M, C, C) are covariances of the bags' counts, None when unknown or without noise, and `sum_variance`
    is the variance per coordinate of a bag's sum of rows. Bags of equal `groups` (M,) may have rows of the same person
    or place.
    """

    sizes: Floats
    counts: Floats
    count_noise: Floats | None
    features: list[Floats] | Floats
    sum_variance: float
    groups: np.ndarray

    def proportions(self, draw: int) -> Floats:
        """Label proportions (M, C), unbiased, so that noisy ones may leave the simplex."""
        return np.asarray(self.counts[draw] / self.sizes[:, None])

    def noise(self) -> Floats | None:
        """Covariance (M, C, C) of the proportions, None without noise."""
        if self.count_noise is None:
            return None
        return self.count_noise / (self.sizes**2)[:, None, None]

    def conditioning(self) -> dict[str, float]:
        """How well the proportions of the first draw tell the classes apart; metrics of results.csv."""
        found = {name.replace(" ", "_"): value for name, value in conditioning(self.proportions(0)).items()}
        if self.count_noise is None:
            return found
        deviations = np.sqrt(np.diagonal(self.count_noise, axis1=1, axis2=2)).sum(axis=1) / self.sizes
        # Expected L1 distance by Gaussian noise over 2, that of the two proportions that are furthest apart.
        return {**found, "noise_to_signal": float(np.sqrt(2 / np.pi) * deviations.mean() / 2)}


class Fitting:
    """Estimators as the options say, behind `feature_map`; `public` are the public rows (N, d) before the Fourier step.

    `seed` is public: it draws random features and folds.
    """

    def __init__(self, options: RatioOptions, feature_map: FeatureMap, public: np.ndarray, seed: int) -> None:
        self._options, self._feature_map, self._public, self._seed = options, feature_map, public, seed

    def fit(self, labelled: Labelled, draw: int) -> RatioEstimator:
        """The estimator of one noise draw. Raises `InputError` when the bags cannot tell the classes apart."""
        estimator = catalogue.estimator_class(self._options.estimator)(**self._parameters())
        known = {"groups": labelled.groups} if self._options.estimator == "auto" else {}
        proportions, noise, features = labelled.proportions(draw), labelled.noise(), labelled.features
        with warnings.catch_warnings():  # what an estimator warns of stands in the options, or in its diagnostics
            warnings.simplefilter("ignore", UserWarning)
            if isinstance(features, list):
                return estimator.fit(features, proportions, noise, **known)
            found: RatioEstimator = estimator.fit_means(
                features[draw if len(features) > 1 else 0],
                labelled.sizes,
                proportions,
                noise,
                covariance=self._covariance,
                mean_noise=labelled.sum_variance / labelled.sizes**2,
                covariance_rows=len(self._public),
                **known,
            )
            return found

    def _parameters(self) -> dict[str, Any]:
        """The estimator's own parameters among the options."""
        options, found = self._options, {}
        if options.estimator in KERNELLED:
            kernel = "linear" if options.submit == "embedding" else options.kernel
            automatic = "auto" if options.estimator == "mmd" else 1.0
            found = {"kernel": kernel, "bandwidth": options.bandwidth or automatic, "features": options.dimensions}
        if options.estimator == "proportion_svm" and options.bandwidth is not None:
            found = {"bandwidth": options.bandwidth, "features": options.dimensions}
        if options.estimator in CORRECTED:
            found["corrected"] = options.corrected
        return found if options.estimator == "energy" else {**found, "seed": self._seed}

    @cached_property
    def _covariance(self) -> np.ndarray:
        """Covariance (D, D) of random features among the public rows, whose class shares are like a bag's or not."""
        features = self._feature_map.steps[-1].apply(self._public)
        return np.cov(features, rowvar=False)
