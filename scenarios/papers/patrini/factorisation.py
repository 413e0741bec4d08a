"""Table 1 and Figure 1: losses as the sum of an even part and a linear one, as printed and as the library has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aggregator.learners.linear_odd.losses import NOT_LINEAR_ODD, LinearOddLoss, loss
from scenarios.reproductions.paper import EXACT, Observation

Function = Callable[[np.ndarray], np.ndarray]
MARGINS = np.linspace(-8, 8, 1001)
RHO = 1.0


@dataclass(frozen=True)
class Printed:
    """A row of Table 1, with f(x) - f(-x) = -a x; `ours` is the library's loss."""

    loss: Function
    even: Function
    a: float
    ours: LinearOddLoss


PRINTED = {
    "rho": Printed(
        lambda x: RHO * np.abs(x) - RHO * x + 1, lambda x: RHO * np.abs(x) + 1, 2 * RHO, loss("rho", rho=RHO)
    ),
    "linear": Printed(lambda x: -x, lambda x: 0 * x, 2.0, loss("linear")),
    # SPL of the generator -sqrt(u (1 - u)): its conjugate is (sqrt(1 + x^2) + x) / 2, and b = 1/2
    "SPL": Printed(
        lambda x: _conjugate(-x) / 0.5,
        lambda x: (_conjugate(x) + _conjugate(-x)) / (2 * 0.5),
        1 / 0.5,
        loss("symmetric_proper", generator="matsushita"),
    ),
    "logistic": Printed(
        lambda x: np.log(1 + np.exp(-x)), lambda x: np.log(2 + np.exp(x) + np.exp(-x)) / 2, 1.0, loss("logistic")
    ),
    "square": Printed(lambda x: (1 - x) ** 2, lambda x: 1 + x**2, 4.0, loss("square")),
    "Matsushita": Printed(lambda x: np.sqrt(1 + x**2) - x, lambda x: np.sqrt(1 + x**2), 2.0, loss("matsushita")),
}
FIGURE = ("logistic", "square", "Matsushita", "rho")
PLACES = ("-3", "-2", "-1", "0", "1", "2", "3")


def _conjugate(x: np.ndarray) -> np.ndarray:
    return np.asarray((np.sqrt(1 + x**2) + x) / 2)


def table_1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """The factor a of every row, and how far even and odd part together are from the loss; that of other losses too."""
    for setting, row in PRINTED.items():
        yield Observation(setting, "a", "published", "", EXACT, slope(row.loss))
        yield Observation(setting, "a", "default", "", EXACT, row.ours.slope)
        yield Observation(setting, "off by", "published", "", EXACT, off_by(row.loss, row.even, row.a))
        yield Observation(setting, "off by", "default", "", EXACT, off_by(row.loss, row.ours.even, row.ours.slope))
    for name, other in NOT_LINEAR_ODD.items():
        yield Observation(name, "off by", "published", "", EXACT, off_by(other, _even_of(other), slope(other)))


def figure_1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Losses, even and odd parts at some margins: as printed, and as the library computes them."""
    for setting in FIGURE:
        row = PRINTED[setting]
        for place in PLACES:
            x = np.array(float(place))
            for series, printed, ours in (
                ("loss", row.loss, row.ours.value),
                ("even", row.even, row.ours.even),
                ("odd", lambda at, a=row.a: -a / 2 * at, lambda at, a=row.ours.slope: -a / 2 * at),
            ):
                yield Observation(setting, series, "published", place, EXACT, float(printed(x)))
                yield Observation(setting, series, "default", place, EXACT, float(ours(x)))


def slope(loss: Function) -> float:
    """The a of f(x) - f(-x) = -a x, from x = 1."""
    return float(loss(np.array(-1.0)) - loss(np.array(1.0)))


def off_by(loss: Function, even: Function, a: float) -> float:
    """How far f(x) is from even(x) - a x / 2 at most, for margins from -8 to 8."""
    return float(np.abs(loss(MARGINS) - (even(MARGINS) - a / 2 * MARGINS)).max())


def _even_of(loss: Function) -> Function:
    return lambda x: (loss(x) + loss(-x)) / 2
