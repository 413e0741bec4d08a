"""Kernels by name, and kernels and supports from the plain arrays that they are stored as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from aggregator.learners.kernels.exact import EnergyKernel, ExactSupport, GaussianKernel
from aggregator.learners.kernels.features import FeatureSupport, FourierKernel, LinearKernel, NystromKernel
from aggregator.learners.kernels.interface import Kernel
from federation.contract.errors import InputError, nearest_name
from federation.numerics.rows import Floats

KINDS = ("exact", "fourier", "nystrom", "energy", "linear")
WITH_BANDWIDTH = ("exact", "fourier", "nystrom")
_KERNELS = (GaussianKernel, EnergyKernel, FourierKernel, NystromKernel, LinearKernel)
_STORED: dict[str, type[Any]] = {kind.kind: kind for kind in (*_KERNELS, FeatureSupport, ExactSupport)}


def kernel(kind: str, rows: Floats, gamma: float = 1.0, features: int = 512, seed: int = 0) -> Kernel:
    """The kernel of that name for rows like the public `rows` (N, d).

    - "exact": exp(-gamma |x - y|^2). "energy": -|x - y|, exact too. "linear": x'y.
    - "fourier": `features` random features of the first, from the public seed.
    - "nystrom": approximation of the first by `features` landmarks drawn among `rows` with the public seed.

    Raises `InputError` for another name, and for gamma, features and rows as the kernels say.

    Examples:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=(300, 2))
        >>> for kind in KINDS:
        ...     support = kernel(kind, rows, gamma=0.5, features=128).support([rows[:100], rows[100:]])
        ...     print(f"{kind:8}", support.gram()[0].round(3))
        exact    [0.347 0.339]
        fourier  [0.342 0.333]
        nystrom  [0.347 0.339]
        energy   [-1.703 -1.749]
        linear   [0.015 0.007]
    """
    if kind == "exact":
        return GaussianKernel(float(gamma))
    if kind == "fourier":
        return FourierKernel.draw(rows.shape[1], gamma, features, seed)
    if kind == "nystrom":
        return NystromKernel.fit(rows, gamma, features, seed)
    if kind not in KINDS:
        raise InputError(f"kernel '{kind}' is not known; allowed: {', '.join(KINDS)}" + nearest_name(kind, KINDS))
    return EnergyKernel() if kind == "energy" else LinearKernel()


def from_arrays(description: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Any:
    """The kernel or support that `to_arrays` described; other arrays may be present. `InputError` for anything else.

    Examples:
        >>> import numpy as np
        >>> stored = GaussianKernel(0.5).support([np.ones((3, 2))]).to_arrays()
        >>> from_arrays(*stored).kernel
        GaussianKernel(gamma=0.5)
    """
    try:
        kind = _STORED[description["kind"]]
        return kind(**{field.name: _value(field.name, description, arrays) for field in fields(kind)})
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the description of a kernel cannot be read: {error!r}") from error


def _value(name: str, description: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Any:
    """A field: an array, the object that a nested description stands for, or the described value itself."""
    if name not in description:
        return arrays[name]
    value = description[name]
    if not isinstance(value, Mapping):
        return value
    prefix = f"{name}_"
    return from_arrays(value, {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)})
