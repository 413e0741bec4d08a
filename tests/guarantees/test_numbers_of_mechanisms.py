"""Whatever number a public mechanism is given, it says what is wrong with it, or what it returns are numbers."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from federation import mechanisms
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import calibration
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import fit_shape

WRONG = [None, "1", -1, -0.5, math.nan, math.inf, 0, 1e-300, 0.5, 1e17, 1e300, 10**30, 10**400, True, [1.0], 1j]
BITS = NoiseBits(1, "arguments")
RANGE = (0.0, 1.0)
LEVEL = {"epsilon": 1.0, "delta": 0.01}
BAGS = {"records": 100, "bags": 5, "size": 10}
DESIGN = BagDesign(**BAGS, noisy=50)
ROWS = np.array([[0.5, 0.1], [0.2, 0.7], [-0.3, 0.2], [0.1, -0.4]])
SAMPLE = np.linspace(0.0, 1.0, 50)
ONCE = Guarantee(1.0, 0.0, Unit.ROW, Adjacency.REPLACE, "noise")
ADDED = ("pure", "gaussian")
SIGNS = {"sigma": 3.0, "label_range": RANGE, "epsilon": 1.0}
MOMENTS = {"dimension": 3, "rows": 10, "contributors": 0, "l1_bound": 1.5}
VECTOR = {"sensitivity": 1.0, "dimension": 3}
RANGED = {"epsilon": 1.0, "label_range": RANGE}
OF_DESIGN = {**RANGED, "design": DESIGN}
CELLS = {"features": 3, "queries": 4, "unit": Unit.ROW, "adjacency": Adjacency.ADD_REMOVE}
SAMPLES = {"sample_p": lambda runs: SAMPLE, "sample_q": lambda runs: SAMPLE, "statistic": lambda x: x}


@dataclass(frozen=True)
class Case:
    """A public function, arguments that it takes, and those of them that are numbers, or what is made of numbers."""

    call: Callable[..., Any]
    arguments: dict[str, Any]
    numbers: tuple[str, ...]


def case(call: Callable[..., Any], numbers: str, **arguments: Any) -> Case:
    return Case(call, arguments, tuple(numbers.split()))


CASES = {
    "compose": case(mechanisms.compose, "delta", guarantees=[ONCE], delta=0.01),
    "concentrated_epsilon": case(mechanisms.concentrated_epsilon, "delta rho", delta=0.01, rho=0.1),
    "gaussian_delta": case(mechanisms.gaussian_delta, "epsilon mu", epsilon=1.0, mu=0.5),
    "gaussian_epsilon": case(mechanisms.gaussian_epsilon, "delta mu", delta=0.01, mu=0.5),
    "discrete_gaussian_delta": case(
        mechanisms.discrete_gaussian_delta, "epsilon mu dimension sigma", epsilon=1.0, mu=0.5, dimension=2, sigma=40
    ),
    "calibrate_noise": case(
        mechanisms.calibrate_noise, "sensitivity dimension epsilon delta", noise="gaussian", **VECTOR, **LEVEL
    ),
    "calibrate_noise, pure": case(
        mechanisms.calibrate_noise, "sensitivity dimension epsilon", noise="pure", **VECTOR, **LEVEL
    ),
    "sample_discrete_gaussian": case(
        mechanisms.sample_discrete_gaussian, "sigma size", bits=BITS, sigma=Fraction(5, 2), size=3
    ),
    "sample_discrete_laplace": case(mechanisms.sample_discrete_laplace, "scale size", bits=BITS, scale=2, size=3),
    "sample_l2_gamma": case(
        mechanisms.sample_l2_gamma, "dimension scale draws", bits=BITS, dimension=2, scale=1.0, draws=3
    ),
    "minimiser_radius": case(mechanisms.minimiser_radius, "regularisation classes", regularisation=0.1, classes=3),
    "solver_slack": case(
        mechanisms.solver_slack, "gradient_tolerance regularisation", gradient_tolerance=0.1, regularisation=0.1
    ),
    "audit_mechanism": case(
        mechanisms.audit_mechanism, "epsilon delta runs confidence", **SAMPLES, **LEVEL, runs=50, confidence=0.9
    ),
    "delta_lower_bound": case(
        mechanisms.delta_lower_bound, "p q epsilon confidence", p=SAMPLE, q=SAMPLE, epsilon=1.0, confidence=0.9
    ),
    "epsilon_lower_bound": case(
        mechanisms.epsilon_lower_bound, "p q delta confidence", p=SAMPLE, q=SAMPLE, delta=0.1, confidence=0.9
    ),
    **{
        f"calibrate_counts, {noise}": case(
            mechanisms.calibrate_counts, f"epsilon delta {numbers}", noise=noise, classes=3, **LEVEL, **further
        )
        for noise, numbers, further in (
            ("auto", "classes", {}),
            ("gaussian", "classes", {}),
            ("published_gaussian", "", {}),
            ("dirichlet_floor", "floor", {"floor": 60}),
            ("dirichlet_shifted", "pseudo_count", {"pseudo_count": 60}),
        )
    },
    "recommended_counts": case(mechanisms.recommended_counts, "classes epsilon delta", classes=3, **LEVEL),
    "compare_counts": case(
        mechanisms.compare_counts,
        "counts epsilon delta floor pseudo_count",
        counts=np.array([90, 80, 70]),
        **LEVEL,
        floor=60,
        pseudo_count=60,
    ),
    "distortion": case(
        mechanisms.distortion,
        "counts draws seed",
        mechanism=mechanisms.calibrate_counts("pure", classes=3, **LEVEL),
        counts=np.array([9, 8, 7]),
        draws=20,
        seed=1,
    ),
    "published_dirichlet_delta": case(
        mechanisms.published_dirichlet_delta,
        "counts neighbour epsilon delta runs seed",
        counts=np.array([30, 20, 50]),
        neighbour=np.array([29, 21, 50]),
        **LEVEL,
        runs=20,
        seed=1,
    ),
    "calibrate_labels": case(
        mechanisms.calibrate_labels, "epsilon delta label_range", noise="gaussian", **LEVEL, label_range=RANGE
    ),
    **{
        f"calibrate_labels, {noise}": case(
            mechanisms.calibrate_labels, "epsilon label_range", noise=noise, **LEVEL, label_range=RANGE
        )
        for noise in ("laplace", "one_bit", "unbiased")
    },
    "calibrate_labels, bins": case(
        mechanisms.calibrate_labels, "epsilon points prior", noise="bins", **RANGED, delta=0.01, points=4
    ),
    "calibrate_labels, estimated_bins": case(
        mechanisms.calibrate_labels,
        "epsilon points share",
        noise="estimated_bins",
        **RANGED,
        delta=0.01,
        points=4,
        share=0.2,
    ),
    "LabelRange": case(LabelRange, "low high", low=0.0, high=1.0),
    "calibrate_label_sums": case(
        mechanisms.calibrate_label_sums,
        "rows epsilon delta",
        shape=fit_shape(ROWS),
        noise="gaussian",
        rows=4,
        **LEVEL,
        labels=LabelRange(*RANGE),
    ),
    "BagDesign": case(BagDesign, "records bags size noisy", **BAGS, noisy=50),
    "BagDesign, stratified": case(BagDesign, "per_bag", **BAGS, per_bag=5),
    "delta of bag sums": case(
        calibration.delta, "epsilon sigma label_range charge", **OF_DESIGN, sigma=1.0, charge=0.0
    ),
    "composed delta of bag sums": case(
        calibration.composed_delta,
        "epsilon sigma label_range releases charge",
        **OF_DESIGN,
        sigma=30.0,
        releases=3,
        charge=0.0,
    ),
    "smallest_sigma": case(
        mechanisms.smallest_sigma, "epsilon target label_range charge", **OF_DESIGN, target=0.1, charge=0.0
    ),
    "smallest_tau": case(
        mechanisms.smallest_tau, "epsilon target label_range charge", **RANGED, target=0.1, charge=0.0
    ),
    "noisy_bag_sums": case(mechanisms.noisy_bag_sums, "sigma label_range epsilon", **OF_DESIGN, sigma=1.0),
    "laplace_bag_sums": case(mechanisms.laplace_bag_sums, "records bags size label_range epsilon", **BAGS, **RANGED),
    "repaired_bag_sums": case(
        mechanisms.repaired_bag_sums, "records bags size tau label_range epsilon", **BAGS, **RANGED, tau=1.0
    ),
    "per_instance_delta": case(
        mechanisms.per_instance_delta,
        "epsilon rows labels bags label_range inclusion",
        **RANGED,
        rows=ROWS,
        labels=np.array([0.1, 0.9, 0.4, 0.5]),
        bags=np.arange(4)[None],
        inclusion=1.0,
    ),
    "theorem_delta": case(mechanisms.theorem_delta, "epsilon sigma label_range", **OF_DESIGN, sigma=1.0),
    "calibrate_marginals": case(
        mechanisms.calibrate_marginals, "features queries epsilon delta", noise="auto", **CELLS, **LEVEL
    ),
    **{
        f"calibrate_moments, {kind}": case(
            mechanisms.calibrate_moments,
            "dimension epsilon delta l1_bound rows contributors",
            noise=kind,
            **LEVEL,
            **MOMENTS,
        )
        for kind in ("auto", "laplace", "gaussian", "published_laplace")
    },
    "noise_quantile": case(
        mechanisms.noise_quantile,
        "probability",
        noise=mechanisms.calibrate_moments("auto", **LEVEL, **MOMENTS),
        probability=0.9,
    ),
    "release_moment": case(
        mechanisms.release_moment,
        "rows labels epsilon delta l1_bound",
        rows=ROWS,
        labels=np.array([0, 1, 1, 0]),
        **LEVEL,
        l1_bound=1.5,
    ),
    "Odds": case(mechanisms.Odds, "epsilon delta", **LEVEL),
    "Guarantee": case(
        Guarantee, "epsilon delta", **LEVEL, unit=Unit.ROW, adjacency=Adjacency.REPLACE, mechanism="noise"
    ),
}
MECHANISMS = {
    **{
        f"counts, {noise}": mechanisms.calibrate_counts(noise, classes=3, **LEVEL, **further)
        for noise, further in {
            "gaussian": {},
            "pure": {},
            "independent_laplace": {},
            "laplace_prior": {},
            "dirichlet_floor": {"floor": 60},
            "dirichlet_shifted": {"pseudo_count": 60},
        }.items()
    },
    **{
        f"labels, {noise}": mechanisms.calibrate_labels(noise, **LEVEL, label_range=RANGE)
        for noise in ("laplace", "gaussian", "one_bit", "unbiased", "bins", "estimated_bins")
    },
    **{f"noise, {kind}": mechanisms.calibrate_noise(kind, sensitivity=1.0, dimension=3, **LEVEL) for kind in ADDED},
    "noise of one number": mechanisms.calibrate_noise("pure", sensitivity=1.0, dimension=1, epsilon=1.0),
    "moments": mechanisms.calibrate_moments("laplace", **LEVEL, **MOMENTS),
    "label sums": CASES["calibrate_label_sums"].call(**CASES["calibrate_label_sums"].arguments),
    "bag sums": mechanisms.noisy_bag_sums(BagDesign(**BAGS, per_bag=5, weights="signs"), **SIGNS),
    "repaired": mechanisms.repaired_bag_sums(**BAGS, tau=1.0, label_range=RANGE, epsilon=1.0),
    "signs": mechanisms.laplace_bag_sums(**BAGS, label_range=RANGE, epsilon=1.0),
    **{
        f"marginals, {kind}": CASES["calibrate_marginals"].call(
            **CASES["calibrate_marginals"].arguments | {"noise": kind}
        )
        for kind in ADDED
    },
}
RELEASED = {  # what each of them is a release of
    "counts": (np.array([90, 80, 70]),),
    "noise,": (np.zeros(3),),
    "noise of": (np.zeros(1),),
    "moments": (np.zeros(3),),
    "label sums": (ROWS, np.array([0.1, 0.9, 0.4, 0.5])),
}
MADE = {"AdditiveMechanism", "AuditResult", "Distortion", "PerInstanceDelta", "PrivateMoment"}  # results, not asked for
NAMED = {"target": "delta", "neighbour": "counts", "low": "label_range", "high": "label_range"}
NAMED |= dict.fromkeys("pq", "a sample")
OPTIONAL = {"floor", "pseudo_count", "l1_bound", "prior", "noisy", "per_bag", "seed"}


def without_nan(value: object) -> bool:
    if isinstance(value, float | np.ndarray | np.floating):
        return not np.isnan(value).any()
    if is_dataclass(value):
        return all(without_nan(getattr(value, field.name)) for field in fields(value))
    return all(map(without_nan, value)) if isinstance(value, tuple | list) else True


# A second and more for each number; nothing and texts are fast to refuse.
LONG = ("composed delta of bag sums", "smallest_sigma", "published_dirichlet_delta", "compare_counts", "smallest_tau")


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=pytest.mark.slow if name in LONG else ())
        for name, one in CASES.items()
        for number in one.numbers
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_number_is_refused_by_name_or_has_a_result(name: str, number: str) -> None:
    known = CASES[name]
    assert number in {*known.arguments, *inspect.signature(known.call).parameters}
    for wrong in WRONG:
        try:
            result = known.call(**known.arguments | {number: wrong})
        except InputError as error:
            text = str(error)
        else:
            assert without_nan(result), (wrong, result)
            continue
        assert len(text) < 400, wrong


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, one in CASES.items() for number in one.numbers if number not in OPTIONAL],
)
def test_nothing_and_texts_are_refused_by_the_numbers_name(name: str, number: str) -> None:
    known = CASES[name]
    word = NAMED.get(number, number)
    for wrong in (None, "one"):
        with pytest.raises(InputError, match=word):
            known.call(**known.arguments | {number: wrong})


@pytest.mark.parametrize("name", MECHANISMS)
def test_delta_at_no_epsilon_is_refused(name: str) -> None:
    for wrong in (None, "1", -1, math.nan, math.inf, -(10**400), 1j, [1.0], True):
        with pytest.raises(InputError, match="epsilon"):
            MECHANISMS[name].delta_at(wrong)
    for epsilon in (0, 1e-300, Fraction(1, 2), np.float32(0.5), 1e300, 10**30):
        assert 0 <= MECHANISMS[name].delta_at(epsilon) <= 1


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name.startswith(tuple(RELEASED))])
def test_impossible_numbers_of_draws_are_refused(name: str) -> None:
    (given,) = [given for kind, given in RELEASED.items() if name.startswith(kind)]
    for wrong in (None, "1", -1, 0.5, 2.0, math.nan, 10**30, 1j, [1], True):
        with pytest.raises(InputError, match="draws"):
            MECHANISMS[name].release(*given, BITS, wrong)
    assert len(MECHANISMS[name].release(*given, BITS, 2)) == 2


def test_every_public_name_is_tried_and_takes_its_arguments() -> None:
    for name, known in CASES.items():
        assert without_nan(known.call(**known.arguments)), name
    tried = {name.partition(",")[0] for name in CASES}
    assert set(mechanisms.__all__) - tried == MADE
