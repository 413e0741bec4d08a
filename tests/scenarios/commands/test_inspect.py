"""What scenarios say, whether they are valid and what there is to choose from, as commands print it.

`federation data`: what is there, and where the rest comes from.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.settings.loader import library
from scenarios.settings.schema import resolve

WORLD = {"data": {"source": "digits"}, "parties": {"count": 4}, "privacy": {"epsilon": 1}}
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if name == "quickstart" else pytest.mark.slow) for name in sorted(library())
])  # fmt: skip
def test_what_is_shown_of_a_library_scenario_resolves_to_it(name: str, done: Callable[..., str], tmp_path: Path):
    (tmp_path / "shown.yaml").write_text(done("show", name, "--set", "trials.splits=2", "--set", "seed=5"))
    shown = resolve(tmp_path / "shown.yaml")
    assert shown == resolve(name, ["trials.splits=2", "seed=5"])
    assert (shown.trials.splits, shown.seed) == (2, 5)
    assert resolve(json.loads(done("show", name, "--json"))) == resolve(name)


def test_show_says_why_the_default_is_one_hides_what_does_not_apply_and_explains_a_protocol(done):
    lines = done("show", "quickstart").splitlines()
    start = lines.index("protocols:")
    listed = lines[start + 1 : lines.index("trust: aggregator") - 1]
    entries = [line for line in listed if line.startswith("  - ")]
    reason = listed[: listed.index(entries[0])]
    assert all(line.startswith("  # ") for line in reason)
    assert reason[0].startswith("  # Default perturb: statistic")
    assert reason[-1] == "  # Validated on: see `federation show soft_vote`"
    assert listed == [*reason, *entries]  # no other entry needs an explanation
    assert "student" in entries[0]
    assert "regularisation" not in entries[0]
    assert "sensitivity" not in entries[0]
    assert "perturb: output, sensitivity: published" in entries[2]
    assert "student" not in entries[2]
    text = done("show", "class_ratio")
    assert "noise: of the label counts: `auto`" in text  # options that a base has are explained as well
    [entry] = [line for line in text.splitlines() if line.startswith("  - ")]
    shown = resolve({**WORLD, "parties": {"count": 4, "bags": 2}}, [f"protocols=[{entry[4:]}]"])
    assert shown.protocols[0].options == resolve(WORLD, ["protocols=[{kind: class_ratio}]"]).protocols[0].options
    record = json.loads(done("show", "class_ratio", "--json"))
    assert record["defaults"] == {**shown.protocols[0].options}
    assert record["why_default"][0].keys() == {"protocol", "default", "rule", "validated"}
    for rule in record["why_default"]:
        assert all(part in " ".join(text.split()) for part in rule.values())


def test_settings_are_for_scenarios_and_a_file_goes_before_a_protocol(done, refused, monkeypatch, tmp_path) -> None:
    assert re.search(r"--set.*soft_vote", refused("show", "soft_vote", "--set", "seed=5"))
    monkeypatch.chdir(tmp_path)
    Path("soft_vote").write_text("data: {source: digits}\nparties: {count: 10}\nprivacy: {epsilon: 1}\n")
    assert "seed: 5" in done("show", "soft_vote", "--set", "seed=5")


def test_validate_counts_what_is_asked_for_and_prints_json(done, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "data: {source: digits}\nparties: {count: [10, 20]}\nprivacy: {epsilon: [1, 2, 3]}\n"
        "trials: {splits: 4, noise: 5}\n"
        "protocols: [{kind: soft_vote, noise: [pure, gaussian]}, {kind: pooled}]\n"
    )
    lines = done("validate", str(path)).splitlines()
    assert lines[:5] == [
        "OK: mine",
        "sweep: parties.count, protocols.noise",
        "worlds: 8 (2 settings x 4 splits)",
        "variants: 6 (soft_vote, soft_vote-gaussian, pooled, constant, individual, noise_free)",
        "releases: 240 (8 worlds x 30: 3 epsilons x 5 noise draws per private variant)",
    ]
    assert lines[5].startswith("soft_vote: epsilon 1, 2 or 3, delta 0 for one party (replace); ")
    assert lines[6].startswith("soft_vote-gaussian: epsilon 1, 2 or 3, delta 1e-06 for one party (replace); ")
    assert [line.partition("(")[2] for line in lines[7:] if not line.startswith("  ")] == [
        "soft_vote, soft_vote-gaussian):"  # who has, sees and is trusted with what, told once
    ]
    found = json.loads(done("validate", "quickstart", "--set", "parties.count=[10, 20]", "--json"))
    promised = found.pop("promises")
    assert [one["variant"] for one in promised] == found["variants"][:4]
    assert promised[0]["variant"] == "soft_vote"
    assert promised[0]["promise"].startswith("epsilon 1, 3, 10, 30 or 100, delta 0 for one party (replace); ")
    sends = "a party sends a summary of what its classifier says of the public rows without noise"
    assert promised[0]["sends"] == sends
    assert [set(role) for role in promised[0]["roles"]] == 3 * [{"who", "has", "sees", "trusted"}]
    assert found == {
        "scenario": "quickstart",
        "sweep": ["parties.count"],
        "settings": 2,
        "splits": 5,
        "worlds": 10,
        "variants": [
            "soft_vote", "soft_vote-gaussian", "soft_vote-output-published-regularisation=0.0001",
            "majority_vote-published", "pooled", "individual", "constant", "noise_free",
        ],
        "releases_per_world": 200,
        "releases": 2000,
    }  # fmt: skip


def test_every_library_scenario_is_valid(done: Callable[..., str]) -> None:
    for path in sorted((ROOT / "scenarios" / "library").glob("*.yaml")):
        assert done("validate", path.stem).startswith(f"OK: {path.stem}\n")


def test_list_shows_every_kind_of_choice_and_schema_a_json_schema_in_which_the_name_is_optional(done):
    lines = [line.split()[0] for line in done("list").splitlines()]
    assert {"quickstart", "digits", "soft_vote", "majority_vote", "pooled", "logistic", "gaussian"} <= set(lines)
    sections = json.loads(done("list", "--json"))
    assert set(sections) == {"scenarios", "data", "protocols", "classifiers", "mechanisms"}
    assert set(sections["scenarios"]) == set(library()) >= {"scale", "kdd-large", "har-robust"}
    assert {"digits", "gaussians"} <= set(sections["data"])
    assert sections["data"]["har"]["licence"].endswith("forbids commercial use")
    assert "archive.ics.uci.edu/dataset/240" in sections["data"]["har"]["url"]
    own = sections["data"].pop("FILE.csv, FILE.npz, FILE.parquet, FILE.svmlight")
    assert (own["origin"], own["url"], own["licence"]) == (None, None, None)
    assert all(one["description"] and one["origin"] and one["licence"] for one in sections["data"].values())
    assert all(text for entries in sections.values() for text in entries.values())
    schema = json.loads(done("schema"))
    assert schema["required"] == ["data", "parties", "privacy"]
    kinds = [option["properties"]["kind"]["const"] for option in schema["properties"]["protocols"]["items"]["oneOf"]]
    assert {"soft_vote", "pooled"} <= set(kinds)


def test_sets_say_whether_they_are_there_and_where_their_originals_are(done, refused, tmp_path, monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    (tmp_path / "har.npz").touch()
    (tmp_path / "malicious_url").mkdir()
    (tmp_path / "malicious_url" / "Day3.svm").touch()
    found = done("data", "--json", "--data-dir", tmp_path)
    states = {one["name"]: one["state"] for one in json.loads(found)["data"]}
    wanted = {"har": "there", "malicious_url": "there", "mnist": "missing", "digits": "comes along"}
    assert {name: states[name] for name in wanted} == wanted
    told = done("data")
    assert re.search(r"directory.*name.*--data-dir.*FEDERATION_DATA", told)
    assert "what a missing one needs: federation data acoustic" in told
    told = done("data", "ctg", "--data-dir", tmp_path)
    for words in ("state: missing", "https://archive.ics.uci.edu/dataset/193", "licence: CC BY 4.0",
                  "next: python -m benchmarks.originals ctg"):  # fmt: skip
        assert words in told
    told = done("data", "digits")
    assert "state: comes along" in told
    assert "next:" not in told
    assert re.search("there is no data set 'hra'.*did you mean 'har'\\?", refused("data", "hra"))
