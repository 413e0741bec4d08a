"""Theory of Patrini et al. 2015 as numbers: Theorems 6, 9 and 10, Table 1, Figure 1, and mean maps on bags.

- The theorems' bounds stand beside measured values.
- Table 1 and Figure 1 write losses as the sum of an even part and a linear part, as printed and as in this library.
- Mean Map and Laplacian Mean Map estimate the mean operator of tumour data from bags and their label proportions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aggregator.learners.linear_odd.losses import NOT_LINEAR_ODD, LinearOddLoss, loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.learners.mean_operators.classifiers import MeanOperatorClassifier
from aggregator.learners.mean_operators.moments import laplacian_mean_map, mean_map
from aggregator.trial.feature_fitting import fit
from federation.contract.randomness import generator
from scenarios.data.catalogue import load
from scenarios.reproductions.paper import EXACT, Observation, Role, both

EQUAL, UNEQUAL, DRIFTING = "equal bags", "one large bag", "one large bag, classes drift"
SETTINGS = (EQUAL, UNEQUAL, DRIFTING)
_BAGS, _LARGE = 8, 0.5  # the share of rows in the large one
_SPREAD = 0.9  # of the shares of a class, as far as there are rows for them
_REGULARISATION = 1e-3


@dataclass(frozen=True, eq=False)
class Bags:
    """Rows of bags, with the codes of their classes, and the proportions (M, 2) that a learner is told."""

    rows: Sequence[np.ndarray]
    codes: Sequence[np.ndarray]

    @property
    def proportions(self) -> np.ndarray:
        """The proportions of both classes in every bag."""
        positive = np.array([codes.mean() for codes in self.codes])
        return np.column_stack([1 - positive, positive])

    @property
    def moment(self) -> np.ndarray:
        """The mean operator of all rows."""
        signs = 2.0 * np.concatenate(self.codes) - 1
        return np.asarray(signs @ np.concatenate(self.rows) / len(signs))


def moments(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """How far the estimates are from the mean operator, in units of its norm."""
    for setting, split, bags, _, _ in _worlds(quick, data_dir):
        for series, role, moment in estimates(bags):
            error = float(np.linalg.norm(moment - bags.moment) / np.linalg.norm(bags.moment))
            yield Observation(setting, series, role, "", split, error)


def accuracies(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Yield accuracies on rows in no bag: of classifiers from the estimates, and of those from all labels."""
    for setting, split, bags, rows, codes in _worlds(quick, data_dir):
        known: list[tuple[str, Role, np.ndarray]] = [("labels", "published", bags.moment), *estimates(bags)]
        for series, role, moment in known:
            model = MeanOperatorClassifier(regularisation=_REGULARISATION)
            model.fit_moment(np.concatenate(bags.rows), moment)
            yield Observation(setting, series, role, "", split, float(np.mean(model.predict(rows) == codes)))


def estimates(bags: Bags) -> Iterator[tuple[str, Role, np.ndarray]]:
    """By both methods: as published, where every bag counts as one (D_w = I), and by default, where its rows count."""
    told = bags.proportions
    alike = [rows.mean(axis=0, keepdims=True) for rows in bags.rows]  # of one row each, and so of equal weight
    yield "Mean Map", "published", mean_map(alike, told).moment
    yield "Mean Map", "default", mean_map(bags.rows, told).moment
    yield "Laplacian Mean Map", "published", laplacian_mean_map(alike, told).moment
    yield "Laplacian Mean Map", "default", laplacian_mean_map(bags.rows, told).moment


def in_bags(rows: np.ndarray, codes: np.ndarray, setting: str, random: np.random.Generator) -> Bags:
    """Bags of rising shares of the second class; in one setting the rows of a class come sorted, and so drift."""
    sizes = np.full(_BAGS, len(rows) // _BAGS)
    if setting != EQUAL:
        sizes[:] = len(rows) * (1 - _LARGE) / (_BAGS - 1)
        sizes[-1] = len(rows) * _LARGE
    order = random.permutation(len(rows))
    if setting == DRIFTING:
        order = order[np.argsort(rows[order, 0], kind="stable")]
    left = [list(order[codes[order] == code]) for code in (0, 1)]
    places = np.linspace(-1, 1, _BAGS)
    places -= np.average(places, weights=sizes)
    overall, found = float(codes.mean()), []
    shares = overall + _SPREAD * min(overall, 1 - overall) * places / np.abs(places).max()
    for size, share in zip(sizes, shares, strict=True):
        wanted = min(round(size * share), len(left[1]))
        wanted = max(wanted, size - len(left[0]))
        found.append([left[0].pop() for _ in range(size - wanted)] + [left[1].pop() for _ in range(wanted)])
    return Bags([rows[bag] for bag in found], [codes[bag] for bag in found])


def _worlds(quick: bool, data_dir: Path | None) -> Iterator[tuple[str, int, Bags, np.ndarray, np.ndarray]]:
    """Setting, split, bags, and test rows with their classes."""
    table = load("breast_cancer", data_dir=data_dir)
    for setting in SETTINGS:
        for split in range(5 if quick else 20):
            random = generator(split, "bags of tumours")
            train, test = np.split(random.permutation(len(table)), [len(table) * 7 // 10])
            known = fit(["standardise", "constant", "unit_norm"], table.rows(train), table.text)
            rows, labels = known.transform(table.rows(train)), table.labels
            yield (
                setting,
                split,
                in_bags(rows, labels[train], setting, random),
                known.transform(table.rows(test)),
                labels[test],
            )


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


def _conjugate(x: np.ndarray) -> np.ndarray:
    return np.asarray((np.sqrt(1 + x**2) + x) / 2)


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


def table_1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """The factor a of every row, and how far even and odd part together are from the loss; that of other losses too."""
    for setting, row in PRINTED.items():
        yield from both(setting, "a", "", EXACT, slope(row.loss), row.ours.slope)
        printed, ours = off_by(row.loss, row.even, row.a), off_by(row.loss, row.ours.even, row.ours.slope)
        yield from both(setting, "off by", "", EXACT, printed, ours)
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
                yield from both(setting, series, place, EXACT, float(printed(x)), float(ours(x)))


def slope(loss: Function) -> float:
    """The a of f(x) - f(-x) = -a x, from x = 1."""
    return float(loss(np.array(-1.0)) - loss(np.array(1.0)))


def off_by(loss: Function, even: Function, a: float) -> float:
    """How far f(x) is from even(x) - a x / 2 at most, for margins from -8 to 8."""
    return float(np.abs(loss(MARGINS) - (even(MARGINS) - a / 2 * MARGINS)).max())


def _even_of(loss: Function) -> Function:
    return lambda x: (loss(x) + loss(-x)) / 2


SOURCES = {"breast cancer": "breast_cancer", "digits": "digits"}
LOSSES = {  # by setting; the scale 1/8 makes a = 8 of a loss that is a multiple of the square one
    "logistic": loss("logistic"),
    "Matsushita": loss("matsushita"),
    "square": loss("square"),
    "twice the square": loss("symmetric_proper", generator="gini", scale=0.125),
}
DIMENSIONS = (2, 10, 22, 50)
DELTA = 0.05
_DRAWS, _LAMBDA = 4000, 1.0


def theorem_6(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """lambda |theta - theta~| / |mu - mu~| of some changes of mu, beside what is allowed."""
    random = generator(1, "changes of the mean operator")
    rows = random.normal(size=(200, 3)) / 100  # short rows: there the even part hardly matters, and the bound is tight
    for setting, each in LOSSES.items():
        moment = random.normal(size=3) / 10
        changes = random.normal(size=(20, 3)) / 100
        found = minimise_linear_odd(each, rows, np.vstack([moment, moment + changes]), _LAMBDA, tolerance=1e-9).weights
        moved = np.linalg.norm(found[1:] - found[0], axis=1) / np.linalg.norm(changes, axis=1)
        for split, distance in enumerate(moved):
            yield Observation(setting, "moved", "published", "", split, _LAMBDA * float(distance))
            yield from both(setting, "allowed", "", split, 1.0, each.slope / 4)


def theorem_9(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """The label privacy that Algorithm 2 keeps at alpha = 1 on rows of L2 norm 1: their largest L1 norm."""
    for setting, source in SOURCES.items():
        table = load(source, data_dir=data_dir)
        rows = table.rows(np.arange(len(table)))
        rows = fit(["standardise", "constant", "unit_norm"], rows, table.text).transform(rows)
        yield from both(setting, "alpha", "", EXACT, float(np.abs(rows).sum(axis=1).max()), 1.0)
        yield Observation(setting, "alpha for all rows", "published", "", EXACT, rows.shape[1] ** 0.5)


def theorem_10(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """How often Laplace noise is longer than the bound of the proof, at delta 0.05, and with its root of d."""
    for dimension in DIMENSIONS:
        for repetition in range(5):
            random = generator(repetition, f"Laplace noise of {dimension} coordinates")
            lengths = np.linalg.norm(random.laplace(size=(_DRAWS, dimension)), axis=1)
            bound, x = np.log(dimension / DELTA), str(dimension)
            often, corrected = (float(np.mean(lengths > limit)) for limit in (bound, dimension**0.5 * bound))
            yield from both("noise", "longer", x, repetition, often, corrected)
            yield Observation("noise", "delta", "published", x, repetition, DELTA)
