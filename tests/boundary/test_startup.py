"""Test which heavy imports each command loads: a command loads only what it uses, so that it starts fast."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "numpy", "scipy", "scipy.stats", "scipy.ndimage", "sklearn", "joblib", "pandas", "pyarrow", "matplotlib",
    "matplotlib.pyplot", "flwr", "flwr.simulation.ray_transport", "ray", "pydantic", "yaml", "jinja2", "cryptography",
    "mlflow", "sqlalchemy", "parties", "parties.site", "aggregator", "aggregator.exchange",
    "aggregator.learners.weighted_erm", "aggregator.learners.class_ratios.auto", "scenarios.settings",
    "scenarios.data", "scenarios.advice", "scenarios.deployment", "scenarios.reports", "scenarios.papers",
}  # fmt: skip
SHOW = {"numpy", "scipy", "flwr", "pydantic", "yaml", "cryptography", "aggregator"}
SHOW |= {"scenarios.settings", "scenarios.data"}
VALIDATE = SHOW | {"parties"}
RUN = VALIDATE | {"matplotlib", "jinja2", "scenarios.reports"}
LIST = VALIDATE | {"scipy.stats", "scipy.ndimage", "sklearn", "joblib", "pandas", "pyarrow"}
SMALL = ("parties.count=20", "privacy.epsilon=[10, 100]", "trials.splits=1", "trials.noise=1")
COMMANDS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "--help": (("--help",), set()),
    "run --help": (("run", "--help"), set()),
    "list": (("list",), LIST),
    "show": (("show", "quickstart"), SHOW),
    "validate": (("validate", "quickstart"), VALIDATE),
    "run": (("run", "quickstart", "--quiet", *(part for one in SMALL for part in ("--set", one))), RUN),
}
SCRIPT = """
import sys
from scenarios.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print("IMPORTED", *sys.modules)
"""


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=() if "--help" in one else pytest.mark.slow) for one in COMMANDS],
)
def test_a_command_loads_only_what_it_uses(tmp_path: Path, command: str) -> None:
    arguments, allowed = COMMANDS[command]
    out = ("--out", str(tmp_path / "run")) if command == "run" else ()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments, *out], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = HEAVY & {*done.stdout.splitlines()[-1].split()[1:]}
    assert loaded <= allowed
    assert {"numpy", "flwr", "pydantic"} <= loaded or not allowed  # heavy imports are seen
    assert command != "run" or (tmp_path / "run" / "figures" / "accuracy.png").exists()
