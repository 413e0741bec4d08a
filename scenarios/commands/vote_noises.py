"""What `federation privacy soft-vote` and `majority-vote` say: sensitivities, and the noise that they ask for."""

from __future__ import annotations

from typing import Any, Literal

from federation.features.feature_map import Ball
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import AdditiveMechanism, Noise, calibrate
from federation.mechanisms.sums import shared_sums as vector_sums
from federation.mechanisms.sums import shares

_NOISES: tuple[tuple[Noise, Literal["scale", "sigma"]], ...] = (("pure", "scale"), ("gaussian", "sigma"))
_UNIT = "shares of norm 1, trust:"
_TOLD = (
    "delta is that of Gaussian noise. Parameters are weights on features of norm at most 1 (an inexact solver adds its "
    "slack); the statistic's whitened coordinates have norm at most 1. Compare noise with what it perturbs."
)


def vote_noises(
    *,
    majority: bool,
    parties: int,
    classes: int,
    regularisation: float,
    epsilon: float,
    delta: float,
    dimension: int,
    contributors: int | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The record, with a row for each sensitivity, and what to say with it; `dimension` is that of features.

    With `contributors` also the mean of shares of norm 1: with an aggregator's noise, and with shares of noise of which
    so many are whole, where all parties add theirs. Raises `InputError` for numbers that no noise fits.
    """
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    bound = sensitivity.majority_vote if majority else sensitivity.soft_vote
    parameters, contrasts = dimension * (1 if classes == 2 else classes), dimension * (classes - 1)
    reaches = {
        f"parameters, {form}": (
            bound(form, regularisation=regularisation, parties=parties, classes=classes),
            parameters,
        )
        for form in ("published", "tight", "diameter")
    }
    reaches["soft vote statistic"] = (sensitivity.statistic(parties), contrasts)
    if contributors is not None:
        reaches[f"{_UNIT} aggregator"] = (2 / parties, contrasts)
    rows = [
        _row(what, [calibrate(noise, sensitivity=reach, dimension=size, **target) for noise, _ in _NOISES])
        for what, (reach, size) in reaches.items()
    ]
    text = [_TOLD]
    if contributors is not None:
        known: dict[str, Any] = {
            "ball": Ball(1.0, scaled=True),
            "dimension": contrasts,
            "contributors": contributors,
            **target,
        }
        wholes = [vector_sums.calibrate_vector_sums(noise, **known).additive for noise, _ in _NOISES]
        rows.append(_row(f"{_UNIT} secure", [shares.in_mean(whole, contributors, parties) for whole in wholes]))
        text.append(f"Of the shares of noise {contributors} are whole, and all {parties} parties add theirs.")
    return {**target, "rows": rows}, text


def _row(what: str, noises: list[AdditiveMechanism]) -> dict[str, Any]:
    row: dict[str, Any] = {"what": what, "dimension": noises[0].dimension, "sensitivity": noises[0].sensitivity}
    for (name, scale), noise in zip(_NOISES, noises, strict=True):
        row |= {f"{name}_{scale}": noise.parameters["scale"], f"{name}_noise_norm": noise.expected_noise_norm()}
    return row
