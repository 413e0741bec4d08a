"""The mean operator from the label proportions of bags, by one pair of class means for all bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.learners.class_ratios.validation import checked
from aggregator.learners.mean_operators.moments import MomentEstimate
from federation.contract.errors import InputError

LARGEST_CONDITION = 1e3


@dataclass(frozen=True, eq=False)
class BagMeans:
    """What Mean Map sees of M bags: means (M, d), `shares` (M,) of the rows, and `positive` (M,), the shares of y = 1.

    `scatter` is the trace of the covariance of all rows, over the number of rows: the variance of their mean.
    """

    means: np.ndarray
    shares: np.ndarray
    positive: np.ndarray
    scatter: float

    @classmethod
    def of(cls, bags: Sequence[np.ndarray], proportions: np.ndarray) -> BagMeans:
        """From bags (n_i, d) and their label proportions (M, 2), that of y = 1 second.

        Raises `InputError` for bags or proportions that cannot be used: as `aggregator.learners.class_ratios.validation.checked`, for
        other than two classes, and where proportions are so nearly equal that the condition number of the equations
        for the two class means, bags weighted by their sizes, is above 1,000: those for classes of equal sizes where
        proportions deviate by less than 0.0005.
        """
        arrays, proportions, _ = checked(bags, proportions)
        if proportions.shape[1] != 2:
            raise InputError(
                f"the mean operator is for two classes, got proportions of {proportions.shape[1]}; put classes together"
            )
        sizes = np.array([len(bag) for bag in arrays], dtype=np.float64)
        shares, positive = sizes / sizes.sum(), np.clip(proportions[:, 1], 0.0, 1.0)
        condition = np.linalg.cond(np.sqrt(shares)[:, None] * np.column_stack([positive, 1 - positive]))
        if condition > LARGEST_CONDITION:
            raise InputError(
                f"proportions are too nearly equal to tell the classes apart: they lie from {positive.min():.6g} to "
                f"{positive.max():.6g}, and errors of the bags' means grow {condition:.3g} times, at most "
                f"{LARGEST_CONDITION:g} is allowed; use bags whose proportions differ more"
            )
        rows = np.concatenate(arrays)
        means = np.stack([bag.mean(axis=0) for bag in arrays])
        return cls(means, shares, positive, float(rows.var(axis=0).sum()) / len(rows))

    def combined(self, coefficients: np.ndarray) -> MomentEstimate:
        """The estimate sum_j c_j b_j of the mean operator from the bags' means b_j, coefficients (M,).

        Its variance: a class's rows in a bag of n rows, pi n of them positive, have a mean that varies by s / (pi n),
        and the estimate gives it the weight c pi where it should have p pi (p - c and 1 - pi for negative ones, p + c),
        p the bag's share of all rows. The trace s of the covariance within classes is bounded by that of all rows.
        Deviations from homogeneity are not in it.
        """
        errors = self.positive * (coefficients - self.shares) ** 2
        errors += (1 - self.positive) * (coefficients + self.shares) ** 2
        return MomentEstimate(coefficients @ self.means, self.scatter * float(np.sum(errors / self.shares)))


def mean_map(bags: Sequence[np.ndarray], proportions: np.ndarray) -> MomentEstimate:
    """Mean Map (Quadrianto et al. 2009): the mean operator of the rows of M bags from their label proportions.

    bags: arrays (n_i, d). proportions: (M, 2), those of y = -1 and of y = 1.

    Assumes homogeneity: rows of a class have the same mean in every bag, E[x | y, bag] = E[x | y]. Then the bags' means
    are pi_i C+ + (1 - pi_i) C-; least squares, bags weighted by their sizes, gives the class means, and the estimate is
    p C+ - (1 - p) C- with p the share of y = 1 in all rows. It is exact where every bag has one class. For its variance
    see `BagMeans.combined`.

    Raises `InputError` as `BagMeans.of`: in particular for equal proportions, which do not identify the class means.
    """
    known = BagMeans.of(bags, proportions)
    design = np.column_stack([known.positive, 1 - known.positive])
    overall = float(known.shares @ known.positive)
    weights = np.linalg.pinv(np.sqrt(known.shares)[:, None] * design) * np.sqrt(known.shares)
    return known.combined(overall * weights[0] - (1 - overall) * weights[1])
