"""Directories of finished runs, with all their artefacts, without that anything was run."""

import json

from aggregator.contract.ledger import Budget, Ledger
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from scenarios.scores.results import COLUMNS, write_results

EPSILONS = (0.1, 1.0, 10.0)


VALUES = {"soft_vote": (0.4, 0.7, 0.8), "soft_vote-gaussian": (0.6, 0.7, 0.8)}


def rows(scenario, values, swept):
    for variant, means in values.items():
        delta = 1e-6 if "gaussian" in variant else 0.0
        for epsilon, mean in zip(EPSILONS, means, strict=True):
            base = {
                "scenario": scenario, "protocol": variant.split("-")[0], "variant": variant,
                "default": int(variant == "soft_vote"), "epsilon": epsilon, "delta": delta, "unit": "party", **swept,
            }  # fmt: skip
            for split in range(3):
                for noise in range(2):
                    value = mean + (split - 1) / 100 + (noise - 0.5) / 50
                    yield base | {"split": split, "noise": noise, "metric": "accuracy", "value": value}
                yield base | {"split": split, "noise": 0, "metric": "bytes_per_party", "value": 1352.0}
    for name, value in (("pooled", 0.9), ("individual", 0.5)):
        for split in range(3):
            yield {
                "scenario": scenario, "protocol": name, "variant": name, "default": 0, "epsilon": float("inf"),
                "delta": 0.0, "unit": "none", "split": split, "noise": 0, "metric": "accuracy", "value": value, **swept,
            }  # fmt: skip


def maker(folder):
    """Makes such directories in a folder, by name."""

    def make(name="run", scenario="digits-vote", values=VALUES, settings=({},), text="a premise", **changes):
        directory = folder / name
        directory.mkdir()
        worlds = []
        for swept in settings:
            ledger = Ledger(Budget(10.0, 1e-5))
            for variant in values:
                for epsilon in EPSILONS:
                    if variant.endswith("off"):
                        ledger.charge(variant, NoGuarantee("noise is off"))
                        continue
                    premises = (
                        Assumption(text, Check.ENFORCED),
                        Assumption(f"rounded for {epsilon:g}", Check.DECLARED),
                    )
                    parameters = {"scale": 1.25 / epsilon, "dimension": 12}
                    ledger.charge(
                        variant,
                        Guarantee(epsilon, 0.0, Unit.PARTY, Adjacency.REPLACE, "l2_gamma", parameters, premises),
                        ("votes are one-hot",),
                    )
            worlds.append({"swept": swept, "split": 0, **ledger.to_dict(1e-6)})
        made = [row for swept in settings for row in rows(scenario, values, swept)]
        write_results(directory / "results.csv", made, [key for key in made[0] if key not in COLUMNS])
        run = {
            "status": "done", "started": "2026-01-01T00:00:00+00:00", "worlds": {"finished": 3, "all": 3}, "seed": 7,
            "engine": "inline", "non_private": False, "versions": {"python": "3.11.7", "numpy": "2.4.6"},
            "seconds": {"parties and aggregator": 1.25}, "peak_memory_mebibytes": {"parties and aggregator": 207.5},
            "failures": {},
        }  # fmt: skip
        (directory / "run.json").write_text(json.dumps(run | changes))
        (directory / "ledger.json").write_text(json.dumps({"worlds": worlds}))
        (directory / "scenario.yaml").write_text(f"name: {scenario}\n# {text}\n")
        return directory

    return make


def edited(path, change):
    """Change the contents of a JSON file."""
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def rewrite(directory, kept):
    """Keep only some lines of the results."""
    head, *lines = (directory / "results.csv").read_text().splitlines(keepends=True)
    (directory / "results.csv").write_text("".join([head, *filter(kept, lines)]))


def renamed(directory, metric, kept=lambda line: True):
    """The results under another metric, some of their lines."""
    rewrite(directory, kept)
    results = directory / "results.csv"
    results.write_text(results.read_text().replace(",accuracy,", f",{metric},"))
    return directory
