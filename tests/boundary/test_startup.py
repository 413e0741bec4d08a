"""What a run in this process does not import: whatever only other engines, protocols, data sets or commands use."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNUSED = (
    "ray", "sklearn", "scipy.stats", "scipy.ndimage", "joblib", "pandas", "pyarrow", "mlflow", "sqlalchemy",
    "matplotlib.pyplot", "flwr.simulation.ray_transport", "scenarios.deployment", "scenarios.advice", "parties.site",
    "aggregator.learners.weighted_erm", "aggregator.learners.class_ratios.auto", "aggregator.exchange",
)  # fmt: skip
RUN = """
import sys
from scenarios.cli import main
try:
    main()
except SystemExit as ended:
    assert ended.code == 0, ended.code
print("IMPORTED", *sys.modules)
"""
SMALL = ("parties.count=20", "privacy.epsilon=[10, 100]", "trials.splits=1", "trials.noise=1")


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Names of all modules that a small quickstart has imported in the end."""
    out = tmp_path_factory.mktemp("startup") / "run"
    settings = [part for one in SMALL for part in ("--set", one)]
    command = [sys.executable, "-c", RUN, "run", "quickstart", "--out", str(out), "--quiet", *settings]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "figures" / "accuracy.png").exists()
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_what_the_scenario_uses_is_seen(imported):
    assert {"numpy", "flwr", "scipy.special", "matplotlib.figure", "parties.app"} <= imported


@pytest.mark.parametrize("name", UNUSED)
def test_an_inline_run_does_not_import_what_it_does_not_use(imported, name):
    assert name not in imported
