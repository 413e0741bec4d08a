"""Predictions against plain numpy on the arrays of the npz, and what is said when something is not there."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.releases.models import ReleasedModels
from aggregator.world.fitting import fit
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.features.feature_map import text_code
from scenarios.commands.predict import predict_command
from scenarios.scores.prediction import Prediction, Used, find_model, predict

COLUMNS = ("height", "colour", "weight")
COLOURS = ("red", "green", "blue, dark")
EPSILONS = (0.5, 2.0, 8.0)


def guarantee(epsilon):
    kept = Assumption("every party counts once", Check.ENFORCED)
    return Guarantee(epsilon, 0.0, Unit.PARTY, Adjacency.REPLACE, "l2_gamma", {"scale": 1 / epsilon}, (kept,))


def table(rng, rows):
    cells = [(rng.normal(170, 10), COLOURS[rng.integers(3)], rng.normal(70, 9)) for _ in range(rows)]
    return cells, np.array([[height, text_code(colour), weight] for height, colour, weight in cells])


def store(directory, rng, name="soft_vote", splits=(0, 1), draws=4, non_private=False):
    _, public = table(rng, 40)
    feature_map = fit(["standardise", "constant", "unit_norm"], public, [1])
    epsilons = (math.inf,) if non_private else EPSILONS
    promised = [NoGuarantee("noise is off")] if non_private else [guarantee(epsilon) for epsilon in EPSILONS]
    (directory / "models" / name).mkdir(parents=True)
    for split in splits:
        weights = rng.normal(size=(len(epsilons), draws, 3, feature_map.dimension))
        maps = (feature_map,) * len(epsilons)
        ReleasedModels(
            name.split("/")[0], ("a", 'b"', "c,d"), COLUMNS, (1,), np.array(epsilons), tuple(weights), maps,
            tuple(g.to_dict() for g in promised),
        ).save(directory / "models" / name / f"split-{split}.npz")  # fmt: skip


def write_csv(path, cells):
    """Columns in another order, and one that the model does not know."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["weight", "name", "height", "colour"])
        writer.writerows([weight, f"n{i}", height, colour] for i, (height, colour, weight) in enumerate(cells))
    return path


def by_hand(path, cells, epsilon, draw):
    """Everything from the file's arrays by the documented steps: indicators, affine, constant, unit norm, argmax."""
    with np.load(path) as stored:
        known = json.loads(str(stored["description"]))
        steps = json.loads(known["feature_maps"][0])["steps"]
        arrays = {name: stored[name] for name in stored.files}
    array = {(step["kind"], field): arrays.get(f"map_0.{name}") for step in steps for field, name in step.items()}
    assert [step["kind"] for step in steps] == ["one_hot", "affine", "append", "unit_norm"]
    labels = []
    for height, colour, weight in cells:
        codes = array["one_hot", "codes"]
        x = np.array([height, weight, *(codes == text_code(colour))], dtype=float)
        x = (x - array["affine", "offset"]) * array["affine", "factor"]
        x = np.append(x, 1.0)
        x /= np.linalg.norm(x)
        index = list(arrays["epsilon"]).index(epsilon)
        scores = [float(np.dot(row, x)) for row in arrays[f"weights_{index}"][draw]]
        labels.append(known["classes"][scores.index(max(scores))])
    return tuple(labels)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), epsilon=st.sampled_from(EPSILONS), split=st.integers(0, 1), draw=st.integers(0, 3))
def test_predictions_are_those_of_plain_numpy(tmp_path_factory, seed, epsilon, split, draw):
    rng, directory = np.random.default_rng(seed), tmp_path_factory.mktemp("run")
    store(directory, rng)
    cells, _ = table(rng, 30)
    file = write_csv(directory / "new.csv", cells)
    found = predict(directory, "soft_vote", file, epsilon=epsilon, split=split, draw=draw)
    assert found.values == by_hand(find_model(directory, "soft_vote", split), cells, epsilon, draw)
    assert len(set(found.values)) > 1
    assert found.used.guarantee == json.loads(json.dumps(guarantee(epsilon).to_dict()))


def test_npz_rows_and_the_largest_epsilon(tmp_path, rng):
    store(tmp_path, rng)
    cells, rows = table(rng, 20)
    np.savez(tmp_path / "new.npz", X=rows)
    found = predict(tmp_path, "default", tmp_path / "new.npz")
    assert found.used.epsilon == 8.0
    assert found.values == by_hand(tmp_path / "models/soft_vote/split-0.npz", cells, 8.0, 0)


@pytest.fixture
def run(tmp_path, rng):
    store(tmp_path, rng)
    return tmp_path, write_csv(tmp_path / "new.csv", table(rng, 5)[0])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"variant": "soft_vot"}, "there is soft_vote; did you mean 'soft_vote'?"),
        ({"variant": "../models/soft_vote"}, "there is soft_vote"),
        ({"epsilon": 3.0}, "there are 0.5, 2, 8"),
        ({"split": 2}, "there are 0, 1"),
        ({"draw": 4}, "from 0 to 3"),
        ({"draw": -1}, "from 0 to 3"),
    ],
)
def test_what_is_not_there_names_what_is(run, changes, named):
    directory, file = run
    arguments = {"variant": "soft_vote", **changes}
    with pytest.raises(InputError, match=r"^[^\n]*$") as refused:
        predict(directory, arguments.pop("variant"), file, **arguments)
    assert named in str(refused.value)


def test_no_models_and_damaged_models(run):
    directory, file = run
    with pytest.raises(InputError, match="holds no released models"):
        predict(directory / "models", "soft_vote", file)
    path = directory / "models/soft_vote/split-0.npz"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match="is not a released model"):
        predict(directory, "soft_vote", file)


def test_missing_columns_are_refused(run):
    directory, _ = run
    (directory / "other.csv").write_text("height,colour\n1,red\n")
    with pytest.raises(InputError, match="no column 'weight'"):
        predict(directory, "soft_vote", directory / "other.csv")


def test_settings_of_a_sweep_are_named(tmp_path, rng):
    for count in (10, 20):
        store(tmp_path, rng, f"soft_vote/parties.count={count}", splits=(0,))
    with pytest.raises(InputError, match=r"soft_vote/parties\.count=10, soft_vote/parties\.count=20"):
        find_model(tmp_path, "default", 0)
    assert find_model(tmp_path, "soft_vote/parties.count=20", 0).parent.name == "parties.count=20"


def test_the_default_among_all_kept_variants(run, rng):
    directory, _ = run
    store(directory, rng, "soft_vote-gaussian")
    results = directory / "results.csv"
    header = "scenario,protocol,variant,default,epsilon,delta,unit,split,noise,metric,value\n"
    line = "s,soft_vote,soft_vote-gaussian,{},1,0,party,0,0,accuracy,1\n"
    results.write_text(header + line.format(1))
    assert find_model(directory, "default", 0).parent.name == "soft_vote-gaussian"
    results.write_text(header + line.format(0))
    with pytest.raises(InputError, match="soft_vote, soft_vote-gaussian"):
        find_model(directory, "default", 0)


def test_command_prints_csv_and_says_what_it_used(run, capsys):
    directory, file = run
    predict_command(directory, "soft_vote", file, 2.0, 0, 1, None, None, False)
    out, err = capsys.readouterr()
    lines = list(csv.reader(io.StringIO(out)))
    wanted = predict(directory, "soft_vote", file, epsilon=2.0, draw=1).values
    assert lines == [["row", "prediction"], *([str(i), name] for i, name in enumerate(wanted))]
    assert "epsilon=2, delta=0 for one party (replace), l2_gamma" in err


def test_command_says_which_epsilon_it_took(run, capsys):
    predict_command(run[0], "soft_vote", run[1], None, 0, 0, None, None, False)
    assert "the largest epsilon of 0.5, 2, 8" in capsys.readouterr().err


def test_command_writes_files_and_json(run, capsys):
    directory, file = run
    predict_command(directory, "soft_vote", file, 2.0, 0, 1, None, directory / "out.csv", True)
    record = json.loads(capsys.readouterr().out)
    assert set(record) == {"predictions", "guarantee"}
    assert record["guarantee"]["epsilon"] == 2.0
    lines = list(csv.reader((directory / "out.csv").open(newline="")))
    assert [name for _, name in lines[1:]] == record["predictions"]
    predict_command(directory, "soft_vote", file, 2.0, 0, 1, None, directory / "out.csv", False)
    assert capsys.readouterr().out == ""
    with pytest.raises(InputError, match="cannot write to --out"):
        predict_command(directory, "soft_vote", file, 2.0, 0, 1, None, directory / "no" / "out.csv", False)


def test_a_release_without_noise_is_marked(tmp_path, rng, capsys):
    store(tmp_path, rng, "soft_vote-off", non_private=True)
    file = write_csv(tmp_path / "new.csv", table(rng, 5)[0])
    predict_command(tmp_path, "default", file, None, 0, 0, None, None, True)
    out, err = capsys.readouterr()
    assert err.startswith("NON-PRIVATE")
    assert json.loads(out)["guarantee"] == {"non_private": True, "reason": "noise is off"}


@pytest.mark.parametrize("name", ["pooled", "individual", "pooled/parties.count=60"])
def test_a_baseline_keeps_no_model(tmp_path, name):
    with pytest.raises(InputError, match=f"'{name}' is a baseline, and baselines keep no model"):
        find_model(tmp_path, name, 0)


def test_a_path_without_a_run_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "absent", tmp_path / "file"):
        for variant in ("default", "soft_vote", "pooled"):
            with pytest.raises(InputError, match=f"there is no run in {path}"):
                find_model(path, variant, 0)


@pytest.mark.parametrize(("entropy", "said"), [("seed", True), ("system", False)])
def test_a_seeded_simulation_is_said_to_be_one(tmp_path, rng, capsys, monkeypatch, entropy, said):
    plain = guarantee(1.0).to_dict()
    plain["parameters"]["entropy"] = entropy
    store(tmp_path, rng)
    found = Prediction(("a",), Used(tmp_path / "models/soft_vote/split-0.npz", 1.0, (1.0,), plain))
    monkeypatch.setattr("scenarios.scores.prediction.predict", lambda *_, **__: found)
    predict_command(tmp_path, "soft_vote", tmp_path / "new.csv", None, 0, 0, None, None, True)
    assert ("(seeded simulation: not to be published)" in capsys.readouterr().err) is said


def test_an_exact_name_wins_over_its_settings(tmp_path):
    for place in ("soft_vote", "soft_vote/parties.count=60"):
        (tmp_path / "models" / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / "models" / place / "split-0.npz").touch()
    assert find_model(tmp_path, "soft_vote", 0).parent.name == "soft_vote"
    assert find_model(tmp_path, "soft_vote/parties.count=60", 0).parent.name == "parties.count=60"


def test_sets_are_for_models_of_class_ratios(run):
    with pytest.raises(InputError, match="--by is for models of class ratios"):
        predict(run[0], "soft_vote", run[1], by="name")
