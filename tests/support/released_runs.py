"""Run directories with released models of every kind, and files of new rows for them."""

import csv
import math

import numpy as np
from support.fake_estimators import released
from support.released_lines import stored

from aggregator.releases.models import ReleasedClassifiers, ReleasedModels, network
from aggregator.trial.feature_fitting import fit
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.features.feature_map import FeatureMap, text_code
from federation.features.steps import Append
from federation.queries.marginals import Hypothesis

COLUMNS = ("height", "colour", "weight")
COLOURS = ("red", "green", "blue, dark")
EPSILONS = (0.5, 2.0, 8.0)


def vote_guarantee(epsilon):
    kept = Assumption("every party counts once", Check.ENFORCED)
    return Guarantee(epsilon, 0.0, Unit.PARTY, Adjacency.REPLACE, "l2_gamma", {"scale": 1 / epsilon}, (kept,))


def table(rng, rows):
    cells = [(rng.normal(170, 10), COLOURS[rng.integers(3)], rng.normal(70, 9)) for _ in range(rows)]
    return cells, np.array([[height, text_code(colour), weight] for height, colour, weight in cells])


def store(directory, rng, name="soft_vote", splits=(0, 1), draws=4, non_private=False, classes=("a", 'b"', "c,d")):
    _, public = table(rng, 40)
    feature_map = fit(["standardise", "constant", "unit_norm"], public, [1])
    epsilons = (math.inf,) if non_private else EPSILONS
    promised = [NoGuarantee("noise is off")] if non_private else [vote_guarantee(epsilon) for epsilon in EPSILONS]
    (directory / "models" / name).mkdir(parents=True)
    for split in splits:
        weights = rng.normal(size=(len(epsilons), draws, 3, feature_map.dimension))
        maps = (feature_map,) * len(epsilons)
        ReleasedModels(
            name.split("/")[0], classes, COLUMNS, (1,), np.array(epsilons), tuple(weights), maps,
            tuple(g.to_dict() for g in promised),
        ).save(directory / "models" / name / f"split-{split}.npz")  # fmt: skip


def write_csv(path, cells):
    """Columns in another order, and one that the model does not know."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["weight", "name", "height", "colour"])
        writer.writerows([weight, f"n{i}", height, colour] for i, (height, colour, weight) in enumerate(cells))
    return path


def vote_run(folder, rng):
    store(folder, rng)
    return folder, write_csv(folder / "new.csv", table(rng, 5)[0])


def bend(sign):
    """1 - |a| of features a, b and a constant, times a sign."""
    return Hypothesis.of(
        [np.array([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]), np.array([[-sign], [-sign]])], [np.zeros(2), np.array([sign])]
    )


def network_run(folder):
    """A run directory with two releases of two draws each, and a file with its columns in another order."""
    path = folder / "models" / "error_marginals"
    path.mkdir(parents=True)
    promises = [Guarantee(4.0 * e, 0.0, Unit.ROW, Adjacency.REPLACE, "laplace").to_dict() for e in (0.5, 2.0)]
    draws = (network([first := bend(1.0)], first, 2), network([bend(1.0), second := bend(-1.0)], second, 2))
    maps = (FeatureMap(2, (Append(1.0),)),) * 2
    ReleasedClassifiers(
        "error_marginals", ("ill", "well"), ("a", "b"), (), np.array([0.5, 2.0]), (draws, draws), maps, tuple(promises)
    ).save(path / "split-0.npz")
    file = folder / "new.csv"
    file.write_text("b,other,a\n10,x,0.5\n20,y,2\n0,z,-2\n")
    return folder, file


IDENTITY = FeatureMap(2, ())
ROWS = [(0.2, 1.0, "north"), (0.4, 2.0, "south"), (0.6, 3.0, "north"), (0.4, 4.0, "north")]


def ratio_guarantee(epsilon):
    return Guarantee(epsilon, 1e-6, Unit.LABEL, Adjacency.REPLACE, "discrete_gaussian", {"scale": 2.0}).to_dict()


def ratio_run(folder):
    """A run directory with two releases of two draws each, and a file with a column that no model knows."""
    path = folder / "models" / "class_ratio"
    path.mkdir(parents=True)
    promises = [ratio_guarantee(0.5), ratio_guarantee(2.0)]
    released([[0.0, 0.1], [0.2, 0.3]], [IDENTITY] * 2, promises).save(path / "split-0.npz")
    file = folder / "new.csv"
    file.write_text("b,place,a\n" + "".join(f"{b},{place},{a}\n" for a, b, place in ROWS))
    return folder, file


WEIGHTS = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[1.0, 2.0, 0.5], [0.0, 0.0, 7.0]]]  # of a, b and a constant


def line_run(folder):
    """A run directory with two releases of two draws each, and a file with its columns in another order."""
    path = folder / "models" / "slope"
    path.mkdir(parents=True)
    promises = [Guarantee(e, 1e-6, Unit.LABEL, Adjacency.REPLACE, "shaped_gaussian").to_dict() for e in (0.5, 2.0)]
    stored(path / "split-0.npz", WEIGHTS, promises, FeatureMap(2, (Append(1.0),)))
    file = folder / "new.csv"
    file.write_text("b,other,a\n10,x,1\n20,y,2\n")
    return folder, file
