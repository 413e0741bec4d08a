"""Kernels by name."""

from __future__ import annotations

import numpy as np

from aggregator.learners.kernels.exact import EnergyKernel, GaussianKernel
from aggregator.learners.kernels.fourier import FourierKernel
from aggregator.learners.kernels.interface import Kernel
from aggregator.learners.kernels.linear import LinearKernel
from aggregator.learners.kernels.nystrom import NystromKernel
from federation.contract.errors import InputError, nearest_name

KINDS = ("exact", "fourier", "nystrom", "energy", "linear")
WITH_BANDWIDTH = ("exact", "fourier", "nystrom")


def kernel(kind: str, rows: np.ndarray, gamma: float = 1.0, features: int = 512, seed: int = 0) -> Kernel:
    """The kernel of that name for rows like the public `rows` (N, d).

    - "exact": exp(-gamma |x - y|^2). "energy": -|x - y|, exact too. "linear": x'y.
    - "fourier": `features` random features of the first, from the public seed.
    - "nystrom": approximation of the first by `features` landmarks drawn among `rows` with the public seed.

    Raises `InputError` for another name, and for gamma, features and rows as the kernels say.
    """
    if kind == "exact":
        return GaussianKernel(float(gamma))
    if kind == "fourier":
        return FourierKernel.draw(rows.shape[1], gamma, features, seed)
    if kind == "nystrom":
        return NystromKernel.fit(rows, gamma, features, seed)
    if kind == "energy":
        return EnergyKernel()
    if kind == "linear":
        return LinearKernel()
    raise InputError(f"kernel '{kind}' is not known; allowed: {', '.join(KINDS)}" + nearest_name(kind, KINDS))
