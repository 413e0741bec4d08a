"""What several releases cost together, and how much noise one of them needs: exact accounting as plain functions.

Run it: python docs/examples/account_releases.py
"""

from __future__ import annotations

import numpy as np

from federation import Adjacency, Unit
from federation.contract import NoiseBits
from federation.mechanisms import calibrate_noise, compose, gaussian_delta, gaussian_epsilon


def main() -> None:
    """Calibrate, release, compose."""
    mechanism = calibrate_noise("gaussian", sensitivity=1.0, dimension=3, epsilon=1.0, delta=1e-6)
    promise = mechanism.guarantee(Unit.ROW, Adjacency.REPLACE)
    print("least noise for (1, 1e-6):", mechanism.parameters["scale"])

    total = np.array([12.0, -3.0, 7.5])
    print("released:", mechanism.release(total, NoiseBits(None, "example"), 1)[0])

    for releases in (1, 2, 4, 8):
        epsilon, delta = compose([promise] * releases, delta=1e-6)
        print(f"{releases} releases: ({epsilon:.3f}, {delta:.3g}), by the sum of epsilons {releases:.3f}")

    mu = promise.gaussian_mu
    print(
        "one curve: delta at epsilon 0.5 is",
        gaussian_delta(0.5, mu),
        "and epsilon at 1e-9 is",
        gaussian_epsilon(1e-9, mu),
    )


if __name__ == "__main__":
    main()
