"""`federation privacy` for mechanisms that are no protocol's own, and for votes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import calibrate
from scenarios.commands.privacy import privacy_app

app = typer.Typer()
app.add_typer(privacy_app, name="privacy")


def records(*arguments: str) -> dict | list:
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_gaussian_prints_the_calibrated_mechanism() -> None:
    record = records("privacy", "gaussian", "--sensitivity", "0.5", "--dimension", "8", "--epsilon", "2")
    mechanism = calibrate("gaussian", sensitivity=0.5, dimension=8, epsilon=2.0, delta=1e-6)
    assert record["scale"] == mechanism.parameters["scale"]
    assert record["step"] == mechanism.step
    assert record["expected_noise_norm"] == mechanism.expected_noise_norm()
    at_claim = next(row["delta"] for row in record["delta_at"] if row["epsilon"] == 2.0)
    assert 0.99e-6 < at_claim <= 1e-6


def test_pure_mechanisms_need_no_delta() -> None:
    assert records("privacy", "l2-gamma", "--dimension", "3")["mechanism"] == "l2_gamma"
    laplace = records("privacy", "discrete-laplace", "--epsilon", "0.5")
    assert laplace["mechanism"] == "discrete_laplace"
    assert laplace["delta"] == 0
    assert laplace["scale"] == pytest.approx(2.0, rel=1e-3)


def test_votes_list_every_sensitivity_and_the_statistic() -> None:
    options = ("--parties", "500", "--classes", "3", "--regularisation", "0.01", "--dimension", "4")
    for command, bound in (
        ("soft-vote", sensitivity.soft_vote),
        ("majority-vote", sensitivity.majority_vote),
    ):
        record = records("privacy", command, *options)
        published, _, _, statistic = record["rows"]
        assert (published["dimension"], statistic["dimension"]) == (12, 8)
        assert published["sensitivity"] == bound("published", regularisation=0.01, parties=500, classes=3)
        assert statistic["sensitivity"] == pytest.approx(2**0.5 / 500)
        assert statistic["pure_noise_norm"] == pytest.approx(8 * 2**0.5 / 500, rel=1e-3)


@pytest.mark.parametrize("command", ["gaussian", "l2-gamma", "discrete-laplace", "soft-vote", "majority-vote"])
def test_tables_are_printed(command: str) -> None:
    result = CliRunner().invoke(app, ["privacy", command], catch_exceptions=False)
    assert result.exit_code == 0
    assert "sensitiv" in result.output


def test_importing_the_commands_loads_no_numerics() -> None:
    script = (
        "import sys, scenarios.commands.audit, scenarios.commands.privacy; "
        "print([m for m in ('numpy', 'scipy', 'mpmath') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
