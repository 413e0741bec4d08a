"""Jobs through the product's own engine, and a benchmark that was interrupted."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.defaults.cells import Table
from benchmarks.defaults.jobs import MEAN, Job, Variant, job, measured, run_all
from benchmarks.defaults.records import DONE, Record, Store
from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.scores.scoring import MSE

LAWS = ("pure", "gaussian")
VARIANTS = [Variant("average", "parameter_average", {}, LAWS), Variant("plain", "soft_vote", {"perturb": "output"})]


def known(source: object, epsilon: list[float], parties: int = 1, noise: int = 1, **bags: object) -> dict[str, object]:
    """A scenario of one split over a data set or a file."""
    return {
        "data": {"source": str(source)}, "parties": {"count": parties, **bags},
        "privacy": {"epsilon": epsilon, "delta": 1e-6}, "trials": {"splits": 1, "noise": noise},
    }  # fmt: skip


@pytest.fixture
def todo(tmp_path: Path) -> Job:
    """Ten parties with well separated classes."""
    random = np.random.default_rng(0)
    labels = np.arange(200) % 2
    np.savez(tmp_path / "toy.npz", X=random.normal(size=(200, 2)) + 4 * labels[:, None], y=labels)
    return job("party", "toy", "K=10", 0, VARIANTS, known(tmp_path / "toy.npz", [1, 100], parties=10, noise=2))


def test_a_job_measures_every_variant_law_epsilon_and_reference(todo: Job) -> None:
    records = measured(todo)
    assert records[-1].metric == DONE
    table = Table(records)
    cells = table.cells(["average"], "accuracy")
    assert [(cell.noise, cell.epsilon) for cell in cells] == [(law, epsilon) for law in LAWS for epsilon in (1, 100)]
    assert table.value(cells[-1], "average", "accuracy") > 0.9
    assert table.value(cells[-1], "average", "features") >= 2
    assert len(table.cells(["plain"], "auc")) == 2
    assert table.reference(cells[0], "constant", "accuracy") < 0.7 < table.reference(cells[0], "pooled", "accuracy")
    assert table.reference(cells[0], "data", "parties") == 10


def test_the_key_is_of_settings_and_of_what_the_data_holds(todo: Job, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere.npz"
    file = Path(todo.scenario["data"]["source"])
    moved.write_bytes(file.read_bytes())
    assert replace(todo, scenario={**todo.scenario, "data": {"source": str(moved)}}).key == todo.key
    assert replace(todo, scenario={**todo.scenario, "seed": 5}).key != todo.key
    assert replace(todo, split=1).key != todo.key
    np.savez(moved, X=np.zeros((200, 2)), y=np.arange(200) % 2)
    assert replace(todo, scenario={**todo.scenario, "data": {"source": str(moved)}}).key != todo.key


def test_ratios_are_scored_on_further_groups_beside_the_mean_of_the_bags(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for name, shares in (("bags", [0.2, 0.5, 0.8]), ("sets", [0.1, 0.9])):
        labels = np.concatenate([np.arange(300) < share * 300 for share in shares]).astype(int)
        rows = random.normal(size=(len(labels), 2)) + 4 * labels[:, None]
        np.savez(tmp_path / f"{name}.npz", X=rows, y=labels, groups=np.repeat(np.arange(len(shares)), 300))
    scenario = known(tmp_path / "bags.npz", [5], bags={"by": "groups"})
    chosen = [Variant("ours", "class_ratio", {"estimator": "whitened", "noise": "pure"})]
    table = Table(measured(job("class_ratio", "toy", "groups", 0, chosen, scenario, (), str(tmp_path / "sets.npz"))))
    [cell] = table.cells(["ours"], "l1_of_sets")
    assert table.value(cell, "ours", "l1_of_sets") < 0.15
    assert table.reference(cell, MEAN, "l1_of_sets") == pytest.approx(0.8, abs=0.02)  # of halves beside .1 and .9


def test_of_real_labels_the_error_of_their_mean_is_known() -> None:
    sums = [Variant("sums", "label_sums")]
    table = Table(measured(job("regressions", "d", "K=1", 0, sums, known("diabetes", [1]), ("pooled",))))
    [cell] = table.cells(["sums"], MSE.name)
    variance = float(np.var(load("diabetes").labels))
    assert table.reference(cell, MEAN, MSE.name) == pytest.approx(variance, rel=0.3)
    assert table.reference(cell, "pooled", MSE.name) < variance


class _Measure:
    """Leaves a file for every job, and fails where it should."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, one: Job) -> list[Record]:
        (self.folder / f"{one.set}-{len([*self.folder.iterdir()])}").touch()
        if one.set == "broken":
            raise InputError("it is broken")
        return [Record(one.part, one.set, one.world, one.split, one.key, "job", "", math.inf, DONE, 1.0)]


def test_what_is_done_is_not_run_again_and_a_failure_costs_only_itself(
    todo: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    ran.mkdir()
    jobs = [replace(todo, set=name) for name in ("first", "broken", "last")]
    store = Store(tmp_path / "found.csv")
    run_all(jobs[:1], store, 1, _Measure(ran))
    run_all(jobs, store, 1, _Measure(ran))
    assert sorted(file.name.split("-")[0] for file in ran.iterdir()) == ["broken", "first", "last"]
    assert "broken" in capsys.readouterr().err
    assert [record.set for record in store.of(one.key for one in jobs)] == ["first", "last"]
