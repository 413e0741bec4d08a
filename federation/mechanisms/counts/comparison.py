"""Comparison of all mechanisms for label counts, at counts that are invented or public.

`distortion` measures how far released class proportions lie from the true ones.
"""

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import require_delta, require_epsilon
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import AdditiveCounts, CountMechanism, checked_counts
from federation.mechanisms.counts.calibration import (
    CountNoise,
    calibrate,
    published_release,
    sigma_for_counts,
    true_delta,
)
from federation.mechanisms.counts.dirichlet import MAX_FLOOR, MeasuredDelta
from federation.mechanisms.counts.exact_laws import LatticeLaplace
from federation.mechanisms.noise.mechanism import Parameters, require_whole
from federation.numerics.rows import Floats, Integers
from federation.numerics.simplex import project

PUBLISHED_DIRICHLET = "published_dirichlet"
_RUNS = 2**20  # draws times classes of a measured delta
_NOISE_PARAMETERS = ("scale", "sigma", "floor", "pseudo_count", "least")


@dataclass(frozen=True)
class Candidate:
    """A mechanism at the asked (epsilon, delta), or in `note` why there is none.

    `delta` is what it claims or, when it is not `private`, what was measured, None where that was too small to measure.
    """

    noise: str
    parameters: Parameters
    delta: float | None
    distortion: "Distortion | None"
    private: bool = True
    note: str = ""


def recommended(classes: int, epsilon: float, delta: float) -> tuple[CountNoise, AdditiveCounts]:
    """What "auto" stands for at these public numbers, and the mechanism. Raises `InputError` as `calibrate`.

    Examples:
        >>> kind, noise = recommended(classes=3, epsilon=1.0, delta=1e-6)
        >>> kind, noise.expected_l1()
        ('pure', 3.665)
    """
    chosen = calibrate("auto", classes=classes, epsilon=epsilon, delta=delta)
    assert isinstance(chosen, AdditiveCounts)  # all that it chooses from are
    if chosen.name == "count_gaussian":
        return "gaussian", chosen
    return ("laplace" if chosen.delta > 0 else "pure"), chosen


def compare(
    counts: Integers, epsilon: float, delta: float, *, floor: int | None = None, pseudo_count: int | None = None
) -> list[Candidate]:
    """Every kind of noise that `calibrate` knows except "auto", the smallest distortion first, impossible ones last.

    `counts` (C,) are invented or public. `floor` defaults to their smallest, `pseudo_count` to half their sum, and
    neither to more than 10^6.
    Raises `InputError` for counts that are none, and numbers out of range.

    Examples:
        >>> found = compare(np.array([500, 300, 200]), epsilon=1.0, delta=1e-6)
        >>> for row in found[:3]:
        ...     print(row.noise, row.distortion)
        laplace Distortion(mean=0.003665, standard_error=0.0)
        pure Distortion(mean=0.003665, standard_error=0.0)
        independent_laplace Distortion(mean=0.00514, standard_error=0.0)
    """
    counts = checked_counts(counts, np.size(counts))
    require_epsilon(epsilon)
    require_delta(delta)
    for name, given in (("floor", floor), ("pseudo_count", pseudo_count)):
        if given is not None:
            require_whole(name, given, 0, MAX_FLOOR)
    half = min(max(1, int(counts.sum()) // 2), MAX_FLOOR)
    extra = {
        "dirichlet_floor": {"floor": min(int(counts.min()), MAX_FLOOR) if floor is None else floor},
        "dirichlet_shifted": {"pseudo_count": half if pseudo_count is None else pseudo_count},
    }
    kinds = [noise for noise in get_args(CountNoise) if noise != "auto"]
    found = [_candidate(noise, counts, epsilon, delta, extra.get(noise, {})) for noise in kinds]
    return sorted(found, key=lambda row: np.inf if row.distortion is None else row.distortion.mean)


def published_dirichlet(counts: Integers, epsilon: float, delta: float) -> Candidate:
    """The scaled Dirichlet as published at these counts, with the delta measured to its neighbours: not private.

    `counts` (C,) are invented or public: sigma is computed from them. Raises `InputError` for counts that are none.

    Examples:
        >>> print(published_dirichlet(np.array([7, 993]), epsilon=1.0, delta=1e-3).note)
        NOT differentially private: sigma comes from the counts; its true delta to 6,994 is 0.577, 5.8e+02
        times the claim
    """
    counts = checked_counts(counts, np.size(counts))
    try:
        sigma = sigma_for_counts(counts, epsilon, delta)
    except InputError as error:
        return Candidate(PUBLISHED_DIRICHLET, {}, None, None, private=False, note=str(error))
    neighbour = _neighbour(counts)
    if sigma is None or neighbour is None:
        note = "NOT differentially private: no sigma serves these counts, and that it fails here tells them from others"
        return Candidate(PUBLISHED_DIRICHLET, {}, None, None, private=False, note=note)
    runs = max(2**9, _RUNS // len(counts)) if len(counts) > 2 else None  # exact for two classes
    pairs = ((counts, neighbour), (neighbour, counts))
    both = (true_delta(here, there, epsilon, delta, runs=runs or 1) for here, there in pairs)
    worst = max(both, key=lambda found: found.value)
    note = (
        f"NOT differentially private: sigma comes from the counts; its true delta to {_text(neighbour)} is "
        f"{_measured(worst, delta, runs)}"
    )
    bits = NoiseBits(1, "distortion of published_dirichlet")
    released = published_release(counts, epsilon, delta, bits, affordable(DRAWS, len(counts)))
    expected = sampled(released, counts)
    shown = worst.value if worst.value or runs is None else None
    return Candidate(PUBLISHED_DIRICHLET, {"sigma": sigma}, shown, expected, private=False, note=note)


def _measured(found: MeasuredDelta, claimed: float, runs: int | None) -> str:
    """In words, what was found with so many `runs`, or exactly if None."""
    if runs and not found.value:
        return f"too small for {runs} draws to show, likely below {3 / runs:.1g} (claimed: {claimed:g})"
    spread = f" +- {found.standard_error:.1g}" if found.standard_error else ""
    return f"{found.value:.3g}{spread}, {found.value / claimed:.2g} times the claim"


def _candidate(noise: CountNoise, counts: Integers, epsilon: float, delta: float, extra: dict[str, int]) -> Candidate:
    floor = extra.get("floor", 0)
    if floor > counts.min():
        note = f"the smallest count, {counts.min()}, is below the floor {floor}: such a bag would break its promise"
        return Candidate(noise, {}, None, None, note=note)
    try:
        mechanism = calibrate(noise, classes=len(counts), epsilon=epsilon, delta=delta, **extra)
        expected = distortion(mechanism, counts)
    except InputError as error:
        return Candidate(noise, {}, None, None, note=str(error))
    parameters = {name: mechanism.parameters[name] for name in _NOISE_PARAMETERS if mechanism.parameters.get(name)}
    return Candidate(noise, parameters, mechanism.delta, expected, note=_reservation(mechanism.delta, delta, floor))


def _reservation(claimed: float, wanted: float, floor: int) -> str:
    if floor:
        return f"only for bags whose classes all hold {floor} records or more, before and after the change"
    if claimed > wanted:
        return "its theorem does not hold at this epsilon: the noise is too small for the wanted delta"
    return ""


def _neighbour(counts: Integers) -> Integers | None:
    """One record of the smallest class counted in the largest; None when the smallest is empty."""
    order = np.argsort(counts, kind="stable")
    moved = counts.copy()
    moved[order[[0, -1]]] += (-1, 1)
    return None if moved.min() < 0 else moved


def _text(counts: Integers) -> str:
    return ",".join(map(str, counts))


DRAWS = 20_000
_NEGLIGIBLE = 1e-9  # probability that the projection moves anything
_MOST_NUMBERS = 2_000_000  # that all draws together may take
_OF_A_SHARE = 8.0  # such numbers are as much work as a Dirichlet share


@dataclass(frozen=True)
class Distortion:
    """E sum_i |released proportion_i - true proportion_i|, in [0, 2], after projection onto the simplex.

    `standard_error` is that of the mean of seeded draws, 0 where the expectation is computed exactly.
    """

    mean: float
    standard_error: float


def affordable(draws: int, classes: int, each: float = _OF_A_SHARE) -> int:
    """So many draws, or fewer for many classes, each of which takes `each` numbers; at least 2.

    The mean error of many classes is as exact with few draws as that of few classes is with many.
    """
    return int(max(2, min(draws, _MOST_NUMBERS / (classes * each))))


def distortion(mechanism: CountMechanism, counts: Integers, draws: int = DRAWS, seed: int = 1) -> Distortion:
    """The expected L1 distortion if a bag had these counts, shape (C,); they must be invented or public.

    Exact where the projection is needed with probability below 1e-9, otherwise by `draws` releases (see
    `affordable`), of which integer noise needs to say only what the projection changes. Raises `InputError` for
    counts that are none.

    Examples:
        >>> from federation.mechanisms.counts.exact_laws import calibrate_lattice_laplace as calibrate
        >>> distortion(calibrate(3, epsilon=1.0, delta=0.0), np.array([500, 300, 200]))
        Distortion(mean=0.003665, standard_error=0.0)
    """
    counts = checked_counts(counts, mechanism.classes)
    require_whole("draws", draws, 1)
    size = int(counts.sum())
    additive = mechanism if isinstance(mechanism, AdditiveCounts) else None
    if additive and sum(map(additive.escape, counts)) < _NEGLIGIBLE:
        return Distortion(additive.expected_l1() / size, 0.0)
    bits = NoiseBits(seed, f"distortion of {mechanism.name}")
    if isinstance(mechanism, LatticeLaplace):
        each = math.sqrt(math.pi * mechanism.classes)  # proposals for a draw
    else:
        each = _OF_A_SHARE if additive is None else 1.0
    released = mechanism.release(counts, bits, affordable(draws, len(counts), each))
    return sampled(released, counts, additive.expected_l1() / size if additive else None)


def sampled(released: Floats, counts: Integers, unprojected: float | None = None) -> Distortion:
    """The mean distortion of released counts (draws, C), draws >= 2, and its standard error.

    `unprojected` is the expected distortion before projection, where known: a control variate, which counts as much as
    the draws show it to matter, hence not at all for noise far above the counts.
    """
    size = int(np.sum(counts))
    errors = np.abs(project(released / size) - counts / size).sum(axis=1)
    if unprojected is not None:
        known = np.abs(released - counts).sum(axis=1) / size
        about = known - known.mean()
        spread = float(about @ about)
        if spread > 0:
            errors += about @ errors / spread * (unprojected - known)
    return Distortion(float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(len(errors))))
