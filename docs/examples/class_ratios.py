"""Shares of classes among unlabelled rows, from a few bags with noisy counts.

Three wards report how many of their patients are ill, with noise that hides every single patient. What share is ill
among new patients of whom nobody was examined? Run it: python docs/examples/class_ratios.py
"""

from __future__ import annotations

import numpy as np

from aggregator.learners import BagClassifier
from federation.contract import NoiseBits
from federation.mechanisms import calibrate_counts

WARDS = {"north": 0.15, "west": 0.4, "east": 0.75}
SIZE = 500


def patients(share: float, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two measurements of each, and whether they are ill."""
    ill = rng.random(size) < share
    return np.where(ill[:, None], [1.0, 0.5], [-0.5, 0.0]) + rng.normal(size=(size, 2)), ill


def main() -> None:
    """Release counts, learn, and answer for new sets of any mix."""
    rng = np.random.default_rng(3)
    mechanism = calibrate_counts("auto", classes=2, epsilon=0.5, delta=1e-6)
    bags, proportions = [], []
    for ward, share in WARDS.items():
        rows, ill = patients(share, SIZE, rng)
        counts = np.array([np.sum(~ill), np.sum(ill)])
        noisy = mechanism.release(counts, NoiseBits(None, "example"), 1)[0]
        print(f"{ward}: {counts[1]} ill, released {noisy[1]:.0f}")
        bags.append(rows)
        proportions.append(np.clip(noisy, 0, None) / np.clip(noisy, 0, None).sum())
    estimator = BagClassifier().fit(bags, np.array(proportions))
    for share in (0.05, 0.5, 0.9):
        new, ill = patients(share, 400, rng)
        print(f"a share of {np.mean(ill):.3f} is estimated as {estimator.predict(new)[1]:.3f}")


if __name__ == "__main__":
    main()
