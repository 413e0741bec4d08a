"""Protocol `class_ratio` (Iyer, Nath and Sarawagi 2016): class ratios of unlabelled sets from set-labelled bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from aggregator.contract.limits import require_waves
from aggregator.contract.option_rules import refuse_misplaced, require_positive
from aggregator.contract.protocol import Place, Protocol, Refused, Requires, Trust
from aggregator.contract.public_numbers import Promise, PublicNumbers, Sent, product
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.question import OFF

if TYPE_CHECKING:
    from aggregator.protocols.class_ratio.ratio_session import RatioSession
    from aggregator.protocols.class_ratio.worst_bags import WorstBags
    from aggregator.world.world import World

_RUNS = 100_000  # of an audit
_OF_MEANS = ("whitened", "class_means")
_PURE = ("pure", "published_laplace", "laplace_prior")  # whatever delta is given


@dataclass(frozen=True)
class ClassRatio(Protocol):
    """Parties hold bags of rows; they release private label counts, and what the bags look like without labels.

    The default was the most accurate on census, particle and digit data, at any noise that left something to learn.
    `estimator: whitened` with `submit: embedding` is less accurate and needs of a bag a few hundred numbers, no row.

    estimator: `bag_classifier` (forward-corrected, with moment matching), `bag_classifier_em` (its EM form, which
        takes the classifier's probabilities for true and can be far off where they are not),
        `whitened` (class means in whitened coordinates of random features), `class_means` (without whitening), `mmd`
        (as published), `energy` (distances for a kernel) or `proportion_svm`.
    noise: of the label counts: `auto` (by public numbers, the less distorting of the next two), `gaussian` (discrete
        Gaussian), `laplace` (lattice Laplace at epsilon and delta), `pure` (lattice Laplace at delta 0),
        `independent_laplace`, `dirichlet_floor`, `dirichlet_shifted`, the baselines `published_laplace`,
        `published_gaussian` and `laplace_prior`, `published_dirichlet` (NON-PRIVATE: it does not hold what it
        claims) or `off` (NON-PRIVATE).
    submit: of each bag all `rows` without their labels, or for `whitened` and `class_means` only its `embedding`,
        the mean of random Fourier features.
    protect: one `label`, features being public; or with `submit: embedding` and Gaussian noise one whole `row`.
    kernel: of `submit: rows`: `fourier`, `nystrom` or `exact`.
    dimensions: of the random features.
    bandwidth: gamma of the kernel exp(-gamma |x-y|^2) times the median squared distance; null for the choice of the
        estimator: 1, or for `mmd` the published selection by held-out bags.
    ridge: of `whitened`, what is added to the covariance, in mean variances.
    corrected: of `whitened`, `class_means` and `energy`: account for the known noise of the counts.
    label_share: of `protect: row`, the part of the noise's budget that labels get.
    floor: of `dirichlet_floor`: every class has so many rows in every bag, which is declared, not checked.
    pseudo_count: of `dirichlet_shifted`: added to every count.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    task: ClassVar[str] = "class_ratio"
    model: ClassVar[str] = "class_ratio"
    requires: ClassVar[Requires] = Requires(bags=True, features=("scale",))  # the kernel does the rest
    why_default: ClassVar[str] = (
        "the default: the most accurate on census, particle and digit data; whitened with submit: embedding is\n"
        "the choice where rows should not leave a party, or where they are many"
    )

    estimator: Literal[
        "bag_classifier", "bag_classifier_em", "whitened", "class_means", "mmd", "energy", "proportion_svm"
    ] = "bag_classifier"
    noise: Literal[
        "auto", "gaussian", "laplace", "pure", "independent_laplace", "dirichlet_floor", "dirichlet_shifted",
        "published_laplace", "published_gaussian", "laplace_prior", "published_dirichlet", "off",
    ] = "auto"  # fmt: skip
    submit: Literal["rows", "embedding"] = "rows"
    protect: Literal["label", "row"] = "label"
    kernel: Literal["fourier", "nystrom", "exact"] = "fourier"
    dimensions: int = 512
    bandwidth: float | None = None
    ridge: float = 1.0
    corrected: bool = True
    label_share: float = 0.5
    floor: int | None = None
    pseudo_count: int | None = None

    def __post_init__(self) -> None:
        require_waves(self.dimensions)
        if self.bandwidth is not None:
            require_positive("bandwidth", self.bandwidth)
        require_positive("ridge", self.ridge)
        if not 0 < self.label_share < 1:
            raise InputError(f"label_share must lie between 0 and 1, got {self.label_share}")
        self._check_noise()
        means = self.estimator in _OF_MEANS
        if self.submit == "embedding" and not means:
            raise InputError(
                f"estimator: {self.estimator} needs the rows of bags; use submit: rows, or estimator: "
                f"{' or '.join(_OF_MEANS)}"
            )
        refuse_misplaced(self, ("kernel",), "submit: rows", self.submit == "rows")
        refuse_misplaced(self, ("ridge",), "estimator: whitened", self.estimator == "whitened")
        if self.estimator == "whitened" and self.kernel == "exact":
            raise InputError("estimator: whitened needs explicit features; use kernel: fourier or nystrom")
        corrected = means or self.estimator == "energy"
        refuse_misplaced(self, ("corrected",), "estimator: whitened, class_means or energy", corrected)
        refuse_misplaced(
            self, ("kernel", "bandwidth"), "estimator: whitened, class_means or mmd", means or self.estimator == "mmd"
        )
        refuse_misplaced(self, ("label_share",), "protect: row", self.protect == "row")
        featured = (means or self.estimator == "mmd") and self.kernel != "exact"
        refuse_misplaced(self, ("dimensions",), "estimator: whitened, class_means or mmd with features", featured)

    def _check_noise(self) -> None:
        for name, noise in (("floor", "dirichlet_floor"), ("pseudo_count", "dirichlet_shifted")):
            value = getattr(self, name)
            if (value is not None) != (self.noise == noise):
                text = f"noise: {noise} needs {name}" if value is None else f"{name} is for noise: {noise}"
                raise InputError(f"{text}; give both or neither")
            if value is not None and value < 1:
                raise InputError(f"{name} must be a whole number from 1, got {value}")
        if self.protect == "row" and (self.submit == "rows" or self.noise != "gaussian"):
            raise InputError(
                "protect: row needs submit: embedding and noise: gaussian, which covers labels and features together"
            )

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, who trusts nobody."""
        return Place.NOWHERE if self.noise == OFF else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """For all labels of a person where persons are known, one label, or a whole row.

        Raises `InputError` for a delta that `published_gaussian` cannot aim at.
        """
        sends = self._sends(public)
        if self.noise == OFF:
            return Promise(NoGuarantee("noise is off"), sends)
        if self.noise == "published_dirichlet":
            from federation.mechanisms.counts.published_dirichlet import published_guarantee

            return Promise(published_guarantee(epsilon, public.delta), sends)
        delta = 0.0 if self.noise in _PURE else public.delta
        if self.noise == "published_gaussian":  # may miss its aim, whatever the number of classes
            from federation.mechanisms.counts.calibration import calibrate

            shares = max(1, public.rows_per_person)
            one = calibrate("published_gaussian", classes=2, epsilon=epsilon / shares, delta=public.delta / shares)
            delta = shares * one.delta
        unit = Unit.ROW if self.protect == "row" else Unit.PERSON if public.rows_per_person else Unit.LABEL
        return Promise(Guarantee(epsilon, delta, unit, Adjacency.REPLACE, type(self).__name__), sends)

    def _sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        counts = Sent("label counts of its bags", product(public.bags, public.classes), self.noise != OFF)
        if self.submit == "rows":
            return counts, Sent(
                "the rows of its bags without labels", product(public.bags, public.largest_bag, public.features), False
            )
        means = Sent("the mean of each bag", product(public.bags, self.dimensions), self.protect == "row")
        return counts, means

    def begin(self, world: World, epsilon: float, draws: int) -> RatioSession:
        """A session that asks once, and fits an estimator to each noise draw."""
        from aggregator.protocols.class_ratio.ratio_session import RatioSession

        return RatioSession(world, self, epsilon, draws)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstBags:
        """One party; a unit leaves class 0 for class 1, and with `protect: row` one feature for one far away.

        Other rows are at the floor where one is declared, and there are none where pseudo-counts stand in for them.
        """
        from aggregator.protocols.class_ratio.worst_bags import LEAST, ONE_FREQUENCY, WorstBags

        classes, persons = public.classes or 2, public.rows_per_person
        unit = "one row or label changes"
        if persons:
            unit = f"one person changes the labels of its rows, of which {persons} count"
        return WorstBags(
            f"one party, {classes} classes, {unit}",
            np.array([[0.0], [1.0]]),
            _RUNS,
            world={
                "classes": tuple(map(str, range(classes))),
                "parties": classes,  # as many as class ratios need, of which one is asked
                "bags": persons + 1,
                "largest_bag": LEAST * classes,
                "rows_per_person": persons,
            },
            # Noise scales with the sensitivity, which is the same for any number of random features.
            options={"dimensions": ONE_FREQUENCY} if self.protect == "row" else {},
            units=units,
            classes=classes,
            rows_per_person=persons,
            least=self.floor or (0 if self.pseudo_count is not None else LEAST),
        )
