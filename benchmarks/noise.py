"""Seconds for a million draws of each noise, beside numpy's floating-point sampler, which is not private.

Run from the repository root: python -m benchmarks.noise
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from benchmarks.common import fastest
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import discrete as discrete_gaussian
from federation.mechanisms.noise import discrete as discrete_laplace
from federation.mechanisms.noise import l2_gamma
from federation.mechanisms.noise.additive import calibrate

DRAWS = 1_000_000
REPETITIONS = 5


def best_seconds(call: Callable[[], object]) -> float:
    """The fastest of a few warm repetitions."""
    return fastest(call, REPETITIONS)[0]


def main() -> None:
    """Prints one line per sampler, then the time of 100 releases of 60 numbers."""
    bits, unsafe = NoiseBits(0, "benchmark"), np.random.default_rng(0)
    laplace = best_seconds(lambda: unsafe.laplace(size=DRAWS))
    normal = best_seconds(lambda: unsafe.normal(size=DRAWS))
    print(f"{'sampler':40} {'seconds / 1e6':>14} {'numpy float':>12} {'ratio':>7}")
    for scale in (1, 2**16, 2**26):
        for name, sampler, baseline in (
            ("discrete Laplace", discrete_laplace.sample_discrete_laplace, laplace),
            ("discrete Gaussian", discrete_gaussian.sample_discrete_gaussian, normal),
        ):
            seconds = best_seconds(partial(sampler, bits, scale, DRAWS))
            print(f"{f'{name}, scale {scale}':40} {seconds:14.4f} {baseline:12.4f} {seconds / baseline:7.1f}")
    seconds = best_seconds(lambda: l2_gamma.sample(bits, 50, 1.0, DRAWS // 50))
    print(f"{'L2-Gamma, 50 dimensions, per number':40} {seconds:14.4f} {normal:12.4f} {seconds / normal:7.1f}")
    kinds: tuple[Literal["pure", "gaussian"], ...] = ("pure", "gaussian")
    for noise in kinds:
        tune = partial(calibrate, noise, sensitivity=1.0, dimension=60, epsilon=1.0, delta=1e-6)
        mechanism = tune()
        release = 1e3 * best_seconds(partial(mechanism.release, np.zeros(60), bits, 100))
        print(f"{mechanism.name}: 100 releases of 60 numbers {release:.2f} ms, ", end="")
        print(f"calibration {1e3 * best_seconds(tune):.2f} ms")


if __name__ == "__main__":
    main()
