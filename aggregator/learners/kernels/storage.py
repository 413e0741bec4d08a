"""Kernels and supports from the plain arrays that they are stored as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from aggregator.learners.kernels.exact import EnergyKernel, ExactSupport, GaussianKernel
from aggregator.learners.kernels.features import FeatureSupport
from aggregator.learners.kernels.fourier import FourierKernel
from aggregator.learners.kernels.linear import LinearKernel
from aggregator.learners.kernels.nystrom import NystromKernel
from federation.contract.errors import InputError

_KINDS: dict[str, type[Any]] = {
    kind.kind: kind
    for kind in (
        GaussianKernel,
        EnergyKernel,
        FourierKernel,
        NystromKernel,
        LinearKernel,
        FeatureSupport,
        ExactSupport,
    )
}


def from_arrays(description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """The kernel or support that `to_arrays` described; other arrays may be present. `InputError` for anything else."""
    try:
        kind = _KINDS[description["kind"]]
        return kind(**{field.name: _value(field.name, description, arrays) for field in fields(kind)})
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the description of a kernel cannot be read: {error!r}") from error


def _value(name: str, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    if name not in description:
        return arrays[name]
    value = description[name]
    if not isinstance(value, Mapping):
        return value
    prefix = f"{name}_"
    return from_arrays(value, {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)})
