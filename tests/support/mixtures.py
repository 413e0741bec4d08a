"""Bags and sets of rows from Gaussian classes whose best classifier is known."""

import numpy as np
from scipy.special import softmax


class Mixtures:
    """C classes N(m_y, I) in d dimensions, the means `distance` from the origin in directions drawn from a seed."""

    def __init__(self, classes: int, distance: float = 2.0, columns: int = 6, seed: int = 0) -> None:
        drawn = np.random.default_rng(seed).normal(size=(columns, classes))
        self.means = distance * np.linalg.qr(drawn)[0].T

    def rows(self, ratios: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
        """`size` rows, in random order, of which exactly the rounded shares `ratios` (C,) are in each class."""
        ends = np.rint(np.cumsum(ratios) * size).astype(int)
        labels = np.repeat(np.arange(len(self.means)), np.diff(ends, prepend=0))
        return self.means[random.permutation(labels)] + random.normal(size=(size, self.means.shape[1]))

    def bags(self, proportions: np.ndarray, size: int, random: np.random.Generator) -> list[np.ndarray]:
        """One bag of `size` rows for every row of proportions (M, C)."""
        return [self.rows(shares, size, random) for shares in proportions]

    def posteriors(self, rows: np.ndarray, ratios: np.ndarray) -> np.ndarray:
        """p(y | x) (n, C) where the classes have those ratios."""
        scores = rows @ self.means.T - (self.means**2).sum(axis=1) / 2 + np.log(ratios)
        return softmax(scores, axis=1)


def l1(found: np.ndarray, ratios: np.ndarray) -> float:
    """The distance of two vectors of ratios."""
    return float(np.abs(found - ratios).sum())


def noisy(shares: np.ndarray, deviation: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shares (M, C) with Gaussian noise that sums to zero, and its covariances."""
    bags, classes = shares.shape
    drawn = deviation * random.normal(size=shares.shape)
    covariance = np.tile(deviation**2 * (np.eye(classes) - 1 / classes), (bags, 1, 1))
    return shares + drawn - drawn.mean(axis=1, keepdims=True), covariance


def skewed(classes: int, small: float) -> np.ndarray:
    """Proportions (C, C) of C bags: `small` for all classes but another one in every bag."""
    return np.where(np.eye(classes, dtype=bool), 1 - (classes - 1) * small, small)
