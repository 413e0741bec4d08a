"""How much wtd-LBA, which adds no noise, reveals of one label in given bags of given data: a diagnostic, no guarantee.

The result depends on the data, so publishing it leaks, and other data may be revealed altogether: constant labels under
an intercept, bags of no more records than columns, a category that occurs once in a bag. `repaired` has a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from federation.contract.errors import InputError
from federation.contract.numbers import apart, required
from federation.mechanisms.bag_sums.perturbed_pair import pair_delta
from federation.mechanisms.labels.label_range import LabelRange
from federation.numerics.arrays import Floats, Integers, numbers

_RANK_CUT = 1e-10  # of a unit column, times sqrt(k)
_NO_RESIDUAL = 1e-12  # of the labels' squared norm, less their mean where rows have a constant
_ROUNDED = 1e-15  # of a label: what is left of labels may be due to how doubles hold them
_CANDIDATES = 9  # equally spaced changed labels that are tried first
_REFINEMENTS = 10  # golden-section steps around the worst of them
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class PerInstanceDelta:
    """What an attacker could learn of a label at `at_epsilon`, in the bags that were looked at. NOT a guarantee.

    Every value is the delta between this data set and one with the worst other label in the declared range, the bag
    known. `mean` is over all records of the bags, `mean_largest` over bags, of their most exposed record, `largest`
    over everything; `revealed` is the share of records with a delta of 1. A release that keeps bags secret has at most
    `inclusion` = m k/n times a record's mean over bags.
    """

    at_epsilon: float
    bags_seen: int
    size: int
    inclusion: float
    mean: float
    mean_largest: float
    largest: float
    revealed: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, with the warning."""
        renamed = {name: f"per_instance_delta_{name}" for name in ("mean", "mean_largest", "largest")}
        renamed["revealed"] = "revealed_share"
        values = {renamed.get(name, name): value for name, value in asdict(self).items()}
        return {"guarantee": None, "warning": DATA_DEPENDENT, **values}


DATA_DEPENDENT = (
    "these figures depend on the private labels: they are no (epsilon, delta) guarantee and must not be published"
)


def per_instance_delta(
    epsilon: float,
    rows: Floats,
    labels: Floats,
    bags: Integers,
    *,
    label_range: tuple[float, float],
    inclusion: float = 1.0,
) -> PerInstanceDelta:
    """Looks at every record of the given bags.

    `rows`: (n, d) with the constant column if the release has one; `labels`: (n,) in the declared `label_range`;
    `bags`: row numbers (m, k). Raises `InputError` for labels outside, non-finite numbers or epsilon outside [0, 700].

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> rows, labels = rng.normal(size=(40, 3)), rng.uniform(0, 1, 40)
        >>> found = per_instance_delta(1.0, rows, labels, np.arange(40).reshape(2, 20), label_range=(0.0, 1.0))
        >>> found.mean, found.largest, found.revealed
        (0.0002628, 0.001459, 0.0)
    """
    rows, labels, bags = numbers(rows, "rows"), numbers(labels, "labels"), np.asarray(bags)
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise InputError(f"rows must be (n, d) and labels (n,), got shapes {rows.shape} and {labels.shape}")
    if bags.ndim != 2 or bags.size == 0 or bags.dtype.kind not in "iu":
        raise InputError(f"bags must be row numbers (bags, size), at least one, got {bags.dtype} of shape {bags.shape}")
    if not 0 <= bags.min() <= bags.max() < len(rows):
        raise InputError(f"bags must be numbers of the {len(rows)} rows, from 0, got {bags.min()} to {bags.max()}")
    required("inclusion", inclusion, "lie in [0, 1]", lambda given: 0 <= given <= 1)
    found = np.stack([bag_deltas(epsilon, rows[bag], labels[bag], label_range=label_range) for bag in bags])
    worst = found.max(axis=1)
    mean, mean_largest, largest, revealed = map(float, (found.mean(), worst.mean(), worst.max(), (found == 1).mean()))
    return PerInstanceDelta(epsilon, len(bags), bags.shape[1], inclusion, mean, mean_largest, largest, revealed)


def bag_deltas(epsilon: float, rows: Floats, labels: Floats, *, label_range: tuple[float, float]) -> Floats:
    """The delta (k,) of each record of one bag, for the worst other label in the range.

    That may be an inner one, for which the labels fit the rows best; it is searched for. Arguments and errors as in
    `per_instance_delta`.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> found = bag_deltas(1.0, rng.normal(size=(30, 2)), rng.uniform(0, 1, 30), label_range=(0.0, 1.0))
        >>> found.shape, float(found.max())
        ((30,), 0.0006402)
    """
    declared = LabelRange.of(label_range)
    low, high = declared.low, declared.high
    if not (np.all(np.isfinite(rows)) and np.all((labels >= low) & (labels <= high))):
        least, most = apart(low, high)
        raise InputError(f"rows must be finite and labels from {least} to {most}, the declared range; clip or refuse")
    leverage, residual = leverages_and_residuals(rows, labels)
    rss = float(residual @ residual)
    if rss == 0:
        return np.ones(len(labels))
    labels, high = labels - low, high - low  # differences keep the digits that labels far from zero have left

    def at(changed: Floats, coarse: bool = True) -> Floats:
        """Deltas at other labels, shape of `changed`: (c, k)."""
        change = changed - labels
        h, r = (np.broadcast_to(part, change.shape).ravel() for part in (leverage, residual))
        return pair_delta(epsilon, change.ravel(), h, r, rss, coarse=coarse).reshape(change.shape)

    # Where the label fits the rest of the bag best, the residual that hides it is smallest.
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = np.where(leverage < 1, labels - residual / (1 - leverage), 0.0)
    everyone = np.arange(len(labels))
    grid = np.repeat(np.linspace(0.0, high, _CANDIDATES)[:, None], len(labels), axis=1)
    candidates = np.sort(np.concatenate([grid, np.clip(fitting, 0.0, high)[None]]), axis=0)
    best = at(candidates).argmax(axis=0)
    ends = (candidates[np.clip(best + step, 0, len(candidates) - 1), everyone] for step in (-1, 1))
    refined = _golden_section(at, *ends)
    worst: Floats = at(np.stack([candidates[best, everyone], refined]), coarse=False).max(axis=0)
    return worst


def _golden_section(value: Callable[[Floats], Floats], left: Floats, right: Floats) -> Floats:
    """Where `value`, (2, k) -> (2, k), is largest between `left` and `right`, (k,) each."""
    for _ in range(_REFINEMENTS):
        first, second = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        below, above = value(np.stack([first, second]))
        left, right = np.where(above > below, first, left), np.where(above > below, right, second)
    return (left + right) / 2


def leverages_and_residuals(rows: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Of least squares of the labels (k,) on the rows (k, d): h_i and r_i, both (k,).

    Columns are scaled to unit length and a pivoted QR factorisation drops dependent ones, so that neither units nor
    duplicate columns matter; the residual is orthogonalised twice. It is exactly zero where the labels are a function
    of the rows up to rounding; where the rows have a constant, the labels' distance from zero does not matter.

    Examples:
        >>> leverages_and_residuals(np.ones((4, 1)), np.array([0.0, 0.0, 1.0, 3.0]))
        (array([0.25, 0.25, 0.25, 0.25]), array([-1., -1.,  0.,  2.]))
    """
    from scipy.linalg import qr

    lengths = np.linalg.norm(rows, axis=0)
    scaled = rows[:, lengths > 0] / lengths[lengths > 0]
    if scaled.shape[1] == 0:
        return np.zeros(len(labels)), labels.astype(float)
    basis, triangle, _ = qr(scaled, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(triangle)) > _RANK_CUT * math.sqrt(len(labels))).sum())
    basis = basis[:, :rank]

    def rest(values: Floats) -> Floats:
        once: Floats = values - basis @ (basis.T @ values)
        left: Floats = once - basis @ (basis.T @ once)
        return left

    held = _ROUNDED * math.sqrt(len(labels)) * float(np.abs(labels).max())
    if np.linalg.norm(rest(np.ones(len(labels)))) <= _RANK_CUT * math.sqrt(len(labels)):
        labels = labels - labels.mean()
    residual = rest(labels)
    if residual @ residual <= max(_NO_RESIDUAL * float(labels @ labels), held**2):
        residual = np.zeros(len(labels))
    return np.minimum(np.square(basis).sum(axis=1), 1.0), residual
