"""What is counted of a file, a scenario and a deployment, and the scenario that each of them writes."""

import numpy as np
import pytest
from support.refusals import refused

from aggregator.advice import Wish
from aggregator.contract.protocol import Trust
from scenarios.advice.target import of_file, of_numbers, of_scenario, wished
from scenarios.data.profile import profile
from scenarios.runs.runner import preview
from scenarios.settings.draft import Wish as Drafted
from scenarios.settings.schema import resolve

LABEL = Wish("binary", "label", Trust.NONE)


@pytest.fixture
def rows(tmp_path):
    random = np.random.default_rng(2)
    made = random.normal(size=(120, 3))
    lines = [f"{a:.3f},{b:.3f},{'AB'[int(c > 0)]},{'yes' if a > 0 else 'no'},{a + b:.3f}" for a, b, c in made]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["a,b,c,y,z", *lines]) + "\n")
    return path


def drafted(**changes):
    return Drafted(**{"label": "y", "protect": "label", "trust": "none", "source": "own.csv", **changes})


def scenario_of(path, data, parties="{count: 4}", **sections):
    """A scenario file of these sections."""
    known = {"data": data, "parties": parties, "privacy": "{epsilon: 1}", **sections}
    path.write_text("".join(f"{name}: {value}\n" for name, value in known.items()))
    return path


def test_what_is_counted_in_a_file_is_what_a_run_of_it_has_and_the_task_follows_from_the_labels(rows):
    wish = drafted(parties=5)
    subject = of_file(profile(rows), wish, wished(wish, True, majority=0.6, residual=None), None, here=(rows, None))
    assert (subject.wish.task, subject.wish.classes, subject.wish.majority) == ("binary", 2, 0.6)
    plain = subject.runnable(subject.write([{"kind": "mean_operator"}], "a reason").plain)
    point = preview(resolve({**plain, "name": "x"}), None)["points"][0]
    assert (subject.wish.rows, subject.wish.public_rows) == (point["private_rows"], point["auxiliary_rows"])
    assert (subject.wish.parties, subject.wish.features) == (point["parties"], 5)  # a, b, two of c, and z
    assert subject.has_data
    assert any("play them" in remark for remark in subject.remarks)
    real = drafted(label="z", label_range=(-9.0, 9.0))
    assert of_file(profile(rows), real, wished(real, True), None, here=(rows, None)).wish.task == "regression"
    bags = of_file(profile(rows), drafted(), wished(drafted(), True), None, 3, here=(rows, None))
    assert (bags.wish.task, bags.wish.bags, bags.wish.bag_rows) == ("ratio", 3, 2)
    assert bags.write([{"kind": "class_ratio"}], "a reason").plain["parties"]["bags"] == 3


def test_a_scenario_lends_its_data_and_parties_and_not_its_protocols():
    subject = of_scenario("quickstart", LABEL, None)
    assert (subject.wish.task, subject.wish.parties, subject.wish.classes) == ("multiclass", 200, 10)
    made = subject.write([{"kind": "majority_vote"}], "a reason")
    assert [one["kind"] for one in made.plain["protocols"]] == ["majority_vote"]
    assert (made.plain["parties"]["count"], made.plain["name"]) == (200, "quickstart-advised")
    assert "# a reason\n  - {kind: majority_vote}" in made.to_yaml("x.yaml", "advise")
    ratios = of_scenario("digits-class-ratio", LABEL, None).wish
    assert (ratios.task, ratios.bags * ratios.bag_rows > 10) == ("ratio", True)


def test_traces_and_a_spectrum_are_those_of_public_rows_in_a_file(rows, tmp_path):
    public = tmp_path / "public.csv"
    public.write_text("a,b\n" + "1,2\n3,5\n2,9\n" * 9)
    for auxiliary, known, features in (("0.25", set(), 0), (public, {"optimal", "whitened", "isotropic"}, 3)):
        data = f"{{source: {rows}, label: z, range: [-9, 9], drop: [c, y], auxiliary: {auxiliary}}}"
        path = scenario_of(tmp_path / "one.yaml", data, protocols="[{kind: label_sums}]")
        real = of_scenario(path, LABEL, None).wish
        assert (set(real.traces), real.task, real.label_range) == (known, "regression", (-9.0, 9.0))
        data = f"{{source: {rows}, label: c, drop: [z, y], auxiliary: {auxiliary}}}"
        path = scenario_of(tmp_path / "one.yaml", data, protocols="[{kind: mean_operator}]")
        found = of_scenario(path, LABEL, None).wish
        assert (found.task, found.features, len(found.spectrum)) == ("binary", 2, features)
    assert real.traces["optimal"] <= real.traces["whitened"] * 1.02
    assert sum(found.spectrum) == pytest.approx(1.0)
    assert list(found.spectrum) == sorted(found.spectrum, reverse=True)


def test_a_deployment_is_one_and_a_sweep_is_refused(tmp_path):
    path = scenario_of(tmp_path / "scenario.yaml", "{source: digits}", "{count: 20}", protocols="[{kind: soft_vote}]")
    assert of_scenario(tmp_path, LABEL, None).deployed
    assert not of_scenario(path, LABEL, None).deployed
    for changes in (
        {"data": "{source: digits}", "parties": "{count: [20, 30]}"},
        {"data": "{source: drifting, time: day}", "parties": "{count: 20}", "trials": "{periods: 2}"},
    ):
        scenario_of(path, **changes)
        refused(None, of_scenario, tmp_path, LABEL, None)


def test_numbers_alone_have_no_data(tmp_path):
    subject = of_numbers(LABEL, "my.csv", "y", {"--n": 5})
    assert not subject.has_data
    refused(None, of_numbers, LABEL, "my.csv", "y", {"--n": None, "--d": None})
    refused(None, of_numbers, LABEL, "housing", "y", {})
