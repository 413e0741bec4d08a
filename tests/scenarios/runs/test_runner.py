"""A run leaves its artefacts and is the same every time; a dry run counts and refuses what a run would."""

import json
import re
import threading

import numpy as np
import pytest
from support.released_lines import lines_document
from support.small_runs import document

import scenarios
from federation.contract.errors import BudgetExceededError, FederationError, InputError, QuorumError
from scenarios.runs import runner
from scenarios.runs.trial import World, worlds
from scenarios.scores.classification_scoring import ClassificationScoring
from scenarios.scores.results import read_results
from scenarios.settings.schema import resolve

ARTEFACTS = {
    "results.csv", "ledger.json", "run.json", "scenario.yaml", "models", "figures", "report.html", "guarantee.html",
    ".cells",
}  # fmt: skip
POOLED_FIRST = {"protocols": [{"kind": "pooled"}, {"kind": "soft_vote"}], "baselines": False}


def same_files(one, other, names=("results.csv", "ledger.json")):
    return all((one.directory / name).read_bytes() == (other.directory / name).read_bytes() for name in names)


def values(rows, variant, epsilon=None):
    """The accuracies of a variant, at one epsilon or at all."""
    found = [row for row in rows if (row["variant"], row["metric"]) == (variant, "accuracy")]
    return [row["value"] for row in found if epsilon in (None, row["epsilon"])]


def test_a_run_leaves_its_artefacts_with_each_guarantee_and_what_all_would_cost(finished):
    assert {path.name for path in finished.directory.iterdir()} == ARTEFACTS
    record = json.loads((finished.directory / "run.json").read_text())
    assert record["status"] == "done"
    assert record["non_private_variants"] == ["pooled", "individual"]
    assert len(list((finished.directory / "figures").glob("*.svg"))) >= 1
    [world] = json.loads((finished.directory / "ledger.json").read_text())["worlds"]
    assert len(world["releases"]) == 8
    assert {release["guarantee"]["unit"] for release in world["releases"]} == {"party"}
    assert all(release["checks"] for release in world["releases"])
    [total] = world["published_together"]
    assert total["epsilon"] == pytest.approx(4 * 31)


def test_results_are_tidy_and_complete(finished):
    rows = read_results(finished.directory / "results.csv")
    accuracies = [row for row in rows if row["metric"] == "accuracy"]
    assert len(accuracies) == 2 * (4 * 2 * 3 + 2)  # splits x (variants x epsilons x draws + baselines)
    assert {row["variant"] for row in rows if row["default"]} == {"soft_vote"}
    assert {row["unit"] for row in rows if row["protocol"] == "pooled"} == {"none"}
    assert {row["delta"] for row in rows} == {0.0}
    sent = {row["variant"]: row["value"] for row in rows if row["metric"] == "bytes_per_party"}
    shares = sent.pop("soft_vote") - 8
    assert shares % 8 == 0  # numbers, fewer than the public rows
    assert 0 < shares < 8 * 100
    assert set(sent.values()) == {8 + 100}
    assert {row["protocols.regularisation"] for row in rows} == {"", "0.01", "1.0"}
    # More privacy costs accuracy.
    assert np.mean(values(rows, "soft_vote", 1.0)) + 0.2 < np.mean(values(rows, "soft_vote", 30.0))


@pytest.mark.parametrize("kind", ["inline", pytest.param("ray", marks=pytest.mark.slow)])
def test_equal_runs_give_equal_files_whatever_the_cohorts_and_the_engine(finished, tmp_path, undrawn, kind):
    again = scenarios.run(document(engine={"kind": kind, "parties_per_node": 7}), out=tmp_path / "out")
    models = [path.relative_to(finished.directory) for path in finished.directory.rglob("*.npz")]
    assert models
    assert same_files(again, finished, ["results.csv", "ledger.json", *models])


def test_models_of_the_default_variant_are_kept_and_all_on_request(finished, tmp_path, undrawn):
    kept = {path.relative_to(finished.directory / "models").as_posix() for path in finished.directory.rglob("*.npz")}
    assert kept == {"soft_vote/split-0.npz", "soft_vote/split-1.npz"}
    everything = scenarios.run(document(), out=tmp_path / "out", keep_models=True, overrides=["trials.splits=1"])
    assert len(list(everything.directory.rglob("*.npz"))) == 4


def test_neither_a_budget_nor_other_protocols_change_a_variants_results(finished, tmp_path, undrawn):
    alone = document(protocols=[{"kind": "soft_vote"}], privacy={"epsilon": 30, "budget": {"epsilon": 30, "delta": 0}})
    run = scenarios.run(alone, out=tmp_path / "out")
    assert values(run.rows, "soft_vote", 30.0) == values(finished.rows, "soft_vote", 30.0)


def test_a_failing_world_keeps_the_finished_ones_and_leaves_nothing_where_it_is_the_first(
    tmp_path, monkeypatch, undrawn
):
    original, failing = World.run, {0}

    def run(self, *arguments):
        if self.spec.split in failing:
            raise QuorumError("too few")
        return original(self, *arguments)

    monkeypatch.setattr(World, "run", run)
    out = tmp_path / "out"
    with pytest.raises(QuorumError):
        scenarios.run(document(), out=out)
    assert not out.exists()
    failing.clear()
    failing.add(1)
    with pytest.raises(QuorumError):
        scenarios.run(document(), out=out)
    assert read_results(out / "results.csv")
    assert json.loads((out / "run.json").read_text())["status"] == "failed"


@pytest.mark.slow
def test_releases_are_scored_while_the_pooled_baseline_is_trained(tmp_path, monkeypatch, undrawn):
    begun, train, score = threading.Event(), ClassificationScoring.pooled, ClassificationScoring.scored

    def pooled(self, *arguments):
        assert begun.wait(60), "the releases wait for the baseline"
        return train(self, *arguments)

    def scored(self, *arguments):
        begun.set()
        return score(self, *arguments)

    expected = scenarios.run(document(**POOLED_FIRST), out=tmp_path / "alone").rows
    monkeypatch.setattr(ClassificationScoring, "pooled", pooled)
    monkeypatch.setattr(ClassificationScoring, "scored", scored)
    assert scenarios.run(document(**POOLED_FIRST), out=tmp_path / "together").rows == expected


def test_a_pooled_baseline_that_fails_is_told_and_ends_no_other(tmp_path, monkeypatch, undrawn):
    def pooled(self, *arguments):
        raise InputError("the rows cannot be pooled")

    monkeypatch.setattr(ClassificationScoring, "pooled", pooled)
    with pytest.raises(runner.IncompleteRunError):
        scenarios.run(document(**POOLED_FIRST), out=tmp_path / "out")
    assert {row["variant"] for row in read_results(tmp_path / "out" / "results.csv")} == {"soft_vote"}


def test_a_sweep_is_one_world_per_value(tmp_path, undrawn):
    swept = document(parties={"count": [20, 40], "rows": 5}, protocols=[{"kind": "soft_vote"}])
    run = scenarios.run(swept, out=tmp_path / "out", overrides=["trials.splits=1"])
    assert {row["parties.count"] for row in run.rows} == {"20", "40"}
    worlds = json.loads((tmp_path / "out" / "ledger.json").read_text())["worlds"]
    assert [world["swept"] for world in worlds] == [{"parties.count": 20}, {"parties.count": 40}]
    assert (tmp_path / "out" / "models" / "soft_vote" / "parties.count=20" / "split-0.npz").exists()


def test_noise_off_is_watermarked_everywhere(tmp_path):
    off = document(protocols=[{"kind": "soft_vote", "noise": "off"}], trials={"splits": 1, "noise": 1})
    out = tmp_path / "out"
    run = scenarios.run(off, out=out)
    assert {row["unit"] for row in run.rows} == {"none"}
    assert json.loads((out / "run.json").read_text())["non_private"]
    assert json.loads((out / "ledger.json").read_text())["worlds"][0]["non_private"]
    assert "NON-PRIVATE" in (out / "report.html").read_text()
    for figure in (out / "figures").glob("*.svg"):
        assert "NON-PRIVATE" in figure.read_text()
    with np.load(next(out.rglob("*.npz"))) as stored:
        assert json.loads(str(stored["description"]))["guarantees"][0]["non_private"]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"parties": {"count": 5000}}, InputError, "parties"),
        ({"parties": {"count": 60, "rows": 500}}, InputError, "rows"),
        ({"data": {"source": "har"}}, InputError, r"har\.npz"),
        ({"data": {"source": "digitz"}}, InputError, "digits"),
        (
            {"privacy": {"epsilon": [1, 30], "budget": {"epsilon": 10, "delta": 1e-6}}},
            BudgetExceededError,
            "epsilon=30",
        ),
    ],
)
def test_unusable_data_and_budgets_stop_a_run_before_it_writes(tmp_path, monkeypatch, changes, error, words):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    with pytest.raises(error, match=words):
        scenarios.run(document(**changes), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_output_perturbation_on_long_rows_names_the_remedy(tmp_path):
    long = document(data={"source": "digits", "auxiliary": 200, "features": [{"whiten": 8}]})
    with pytest.raises(FederationError, match="unit_norm"):
        scenarios.run(long, out=tmp_path / "out")


def test_any_scikit_learn_classifier_will_do(tmp_path, undrawn):
    trees = {"count": 40, "rows": 8, "classifier": {"DecisionTreeClassifier": {"max_depth": 3}}}
    few = document(parties=trees, protocols=[{"kind": "soft_vote"}], trials={"splits": 1, "noise": 2})
    assert scenarios.run(few, out=tmp_path / "out").rows


def test_a_preview_counts_what_a_run_would_do_with_its_worlds_bags_and_target_sets():
    plan = runner.preview(resolve(document()), None)
    assert plan["worlds"] == 2
    assert plan["releases"] == 2 * 4 * 2 * 3
    assert plan["points"][0]["parties"] == 60
    assert plan["points"][0]["auxiliary_rows"] == 200
    names = [cell.name for cell in worlds(resolve(document(parties={"count": [20, 40], "rows": 5})), None)]
    assert len(set(names)) == len(names) == 4
    found = point()
    assert found["bags_per_party"] == 5
    assert found["smallest_bag"] == found["largest_bag"] == found["private_rows"] / 20
    even = point("parties={count: 7, partition: iid, rows: 30, bags: 3}")
    assert (even["bags_per_party"], even["smallest_bag"], even["largest_bag"]) == (3, 10, 10)
    alone = point("parties={count: 7, partition: iid, bags: 1}", "protocols=[{kind: pooled}]")
    assert alone["largest_bag"] - alone["smallest_bag"] == 1
    assert "target_sets" not in alone
    found = point("data.targets={shares: [0.1, 0.5], vary: 3, rows: 100}")
    assert (found["target_sets"], found["target_rows"], found["target_shares_of"]) == (2, 100, "3")
    assert point("data.targets={}")["target_shares_of"] == "0"


@pytest.fixture
def generated(tmp_path):
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 3))
    lines = [f"{a:.3f},{b:.3f},{c:.3f},{'yes' if a + b > 0 else 'no'}" for a, b, c in rows]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["a,b,c,label", *lines]) + "\n")
    return path


def own(path, **changes):
    return {
        "name": "own",
        "data": {"source": str(path), "label": "label"},
        "parties": {"count": 20},
        "privacy": {"epsilon": 0.01, **changes},
        "trials": {"splits": 1, "noise": 20},
    }


def weights(run):
    with np.load(run.directory / "models" / "soft_vote" / "split-0.npz") as stored:
        return stored["weights_0"]


def test_changed_data_gets_fresh_noise(generated, tmp_path, undrawn):
    # Equal noise on two versions of the data would cancel by subtraction and leave the difference bare.
    first = weights(scenarios.run(own(generated), out=tmp_path / "1"))
    text = generated.read_text()
    (tmp_path / "moved.csv").write_text(text)
    again = weights(scenarios.run(own(tmp_path / "moved.csv"), out=tmp_path / "2"))
    generated.write_text(text.replace("yes", "maybe", 1).replace("maybe", "no", 1))
    changed = weights(scenarios.run(own(generated), out=tmp_path / "3"))
    np.testing.assert_array_equal(first, again)
    assert np.linalg.norm(first - changed) > 0.5 * np.linalg.norm(first)


def test_noise_from_the_system_does_not_repeat_and_says_so(generated, tmp_path, undrawn):
    runs = [scenarios.run(own(generated, entropy="system"), out=tmp_path / str(n)) for n in range(2)]
    assert not (weights(runs[0]) == weights(runs[1])).any()
    ledger = (runs[0].directory / "ledger.json").read_text()
    assert '"entropy": "system"' in ledger
    assert "keyed by a seed" not in ledger


def test_the_ledger_admits_where_class_names_come_from(generated, finished, tmp_path, undrawn):
    declared = own(generated)
    declared["data"] = {**declared["data"], "classes": ["no", "yes"]}
    runs = [scenarios.run(made, out=tmp_path / str(n)) for n, made in enumerate((own(generated), declared))]
    read = ["were read from all rows" in (run.directory / "ledger.json").read_text() for run in (*runs, finished)]
    assert read == [True, False, False]


@pytest.mark.slow
def test_the_protocol_without_noise_stands_beside_it_and_moves_no_release(tmp_path, undrawn):
    changes = {
        "protocols": [{"kind": "soft_vote"}],
        "data": {"source": "digits", "auxiliary": 100, "features": [{"whiten": "auto"}, "unit_norm"]},
        "trials": {"splits": 1, "noise": 2},
    }
    beside = scenarios.run({**document(**changes), "baselines": True}, out=tmp_path / "beside")
    alone = scenarios.run(document(**changes), out=tmp_path / "alone")
    private = [row for row in beside.rows if row["protocol"] == "soft_vote"]
    assert private == [row for row in alone.rows if row["protocol"] == "soft_vote"]
    assert same_files(beside, alone, ["ledger.json"])
    record = json.loads((beside.directory / "run.json").read_text())
    assert record["non_private"] is False
    assert "noise_free" in record["non_private_variants"]
    exact = np.mean(values(beside.rows, "noise_free"))
    assert [one["noise_free"] for one in record["verdict"]] == [pytest.approx(exact)] * 2
    assert alone.verdicts == []


@pytest.mark.slow
def test_saying_that_nobody_drops_out_or_attacks_changes_nothing(finished, tmp_path, undrawn):
    parties = {"count": 60, "rows": 5, "dropout": 0, "hostile": {"fraction": 0}, "partition": "iid"}
    run = scenarios.run(document(parties=parties), out=tmp_path / "out")
    assert same_files(run, finished, ["results.csv"])


@pytest.mark.slow
def test_dropout_and_attacks_are_swept_like_other_keys_whatever_the_cohorts(tmp_path, monkeypatch):
    parties = {"count": 60, "rows": 5, "dropout": [0, 0.3], "hostile": {"fraction": [0, 0.5], "kind": "malformed"}}
    swept = document(parties=parties, trials={"splits": 1, "noise": 1}, protocols=document()["protocols"][::3])
    swept["privacy"] = {"epsilon": 30}
    settings = ["parties.quorum=0.2"]
    run = scenarios.run(swept, out=tmp_path / "1", overrides=settings)
    monkeypatch.setattr(runner, "_draw", lambda *arguments: None)
    assert run.rows == scenarios.run(swept, out=tmp_path / "2", overrides=[*settings, "engine.parties_per_node=7"]).rows
    columns = ("parties.dropout", "parties.hostile.fraction")
    assert {tuple(row[column] for column in columns) for row in run.rows} == {
        ("0.0", "0.0"), ("0.0", "0.5"), ("0.3", "0.0"), ("0.3", "0.5"),
    }  # fmt: skip
    pooled = {row["value"] for row in run.rows if (row["protocol"], row["metric"]) == ("pooled", "accuracy")}
    assert len(pooled) == 1  # the same rows, true labels
    failures = json.loads((run.directory / "run.json").read_text())["failures"]
    assert 10 < failures.pop("dropped out") < 60
    assert sum(failures.values()) > 30  # half of those who answered, in two of four worlds
    assert (run.directory / "figures" / "accuracy-parties.hostile.fraction.svg").exists()


def test_too_many_dropouts_end_a_run_without_a_release(tmp_path):
    parties = {"count": 10, "rows": 5, "dropout": 0.5}
    with pytest.raises(QuorumError, match=r"parties\.quorum.*0\.5"):
        scenarios.run(document(parties=parties, trials={"splits": 30, "noise": 1}), out=tmp_path / "out")


def test_skewed_partitions_run_and_are_swept_by_their_number(tmp_path, undrawn):
    parties = {"count": 60, "rows": 5, "partition": {"dirichlet": [1e-3, 1e3]}}
    skewed = document(parties=parties, trials={"splits": 2, "noise": 4}, protocols=[{"kind": "individual"}])
    rows = scenarios.run(skewed, out=tmp_path / "out").rows
    means = {
        alpha: np.mean([row["value"] for row in rows if row["parties.partition.dirichlet"] == alpha])
        for alpha in ("0.001", "1000.0")
    }
    assert means["0.001"] < 0.15 < means["1000.0"]  # a party that knows one digit recognises one in ten


@pytest.mark.slow
def test_a_mixture_is_compared_with_its_leading_member_on_all_rows(finished, tmp_path, undrawn):
    tree = {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 0.5}
    parties = {"count": 60, "rows": 5, "classifier": {"mixture": [tree, "logistic"]}}
    mixed = document(parties=parties, protocols=document()["protocols"][::3])
    rows = scenarios.run(mixed, out=tmp_path / "out").rows
    assert values(rows, "pooled") == values(finished.rows, "pooled")
    assert values(rows, "soft_vote") != values(finished.rows, "soft_vote")


PLAIN = {
    "name": "bags",
    "data": {"source": "digits", "auxiliary": 100, "test": 0.4, "features": ["unit_norm"]},
    "parties": {"count": 4, "bags": 5, "partition": {"majority": 0.05}},
    "protocols": [{"kind": "class_ratio"}],
    "privacy": {"epsilon": 1},
    "trials": {"splits": 2},
}


def point(*settings):
    return runner.preview(resolve(PLAIN, settings), None)["points"][0]


def test_every_split_is_checked_before_anything_runs(tmp_path):
    """Of the 13 rows of the rare class those for testing differ in number from split to split."""
    labels, random = ["rare"] * 13 + ["other"] * 87, np.random.default_rng(0)
    lines = [f"{value:.4f},{label}" for value, label in zip(random.normal(size=100), labels, strict=True)]
    path = tmp_path / "rare.csv"
    path.write_text("\n".join(["x,label", *lines]) + "\n")
    targets = {"rows": 8, "shares": [0.5], "vary": "rare"}
    data = {"source": str(path), "label": "label", "test": 0.4, "features": ["unit_norm"], "targets": targets}
    document = {**PLAIN, "data": data, "parties": {"count": 2}, "trials": {"splits": 1, "noise": 1}}
    assert runner.preview(resolve(document), None)["points"]
    document["trials"]["splits"] = 40
    for act in (lambda: runner.preview(resolve(document), None), lambda: scenarios.run(document, out=tmp_path / "out")):
        with pytest.raises(InputError, match=r"4.*rare"):
            act()
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("protocols")
def test_a_dry_run_names_the_range_and_not_the_labels(own_file):
    [point] = runner.preview(resolve(lines_document(own_file, "slope", "pooled")), None)["points"]
    assert re.search(r"own\.csv.*300.*2.*-9.*15", point["data"])
    assert (point["parties"], point["features"]) == (6, 3)
