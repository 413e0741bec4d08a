"""`federation audit` and `federation privacy` on their own, without the rest of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from federation.contract.errors import InputError
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.audit import audited
from federation.mechanisms.noise.additive import calibrate
from scenarios.commands.audit import audit
from scenarios.commands.privacy import privacy_app

app = typer.Typer()
app.command("audit")(audit)
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


def test_audit_reports_claims_and_twins() -> None:
    (record,) = records("audit", "discrete_laplace", "--runs", "50000")
    assert record["claim_stands"]
    assert record["as_expected"]
    assert 0.5 < record["lower_bound"] <= record["epsilon"] == 1
    assert all(twin["caught"] for twin in record["broken_twins"])
    family = records("audit", "l2_gamma", "--runs", "20000")
    assert [row["mechanism"] for row in family] == ["l2_gamma_2d", "l2_gamma_3d"]


def test_audit_fails_when_a_claim_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = audited.audited_mechanisms()["discrete_laplace"]
    monkeypatch.setattr(
        audited, "audited_mechanisms", lambda: {"broken": replace(honest, sample=honest.twins[0].sample)}
    )
    result = CliRunner().invoke(app, ["audit", "--runs", "20000"])
    assert result.exit_code == 1
    assert "REFUTED" in result.output


def test_importing_the_commands_loads_no_numerics() -> None:
    script = (
        "import sys, scenarios.commands.audit, scenarios.commands.privacy; "
        "print([m for m in ('numpy', 'scipy', 'mpmath') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gaussian", ["discrete_gaussian_1d", "discrete_gaussian_3d"]),
        ("discrete-gaussian", ["discrete_gaussian_1d", "discrete_gaussian_3d"]),
        ("l2-gamma", ["l2_gamma_2d", "l2_gamma_3d"]),
        ("l2-gamma-3d", ["l2_gamma_3d"]),
        ("discrete-laplace", ["discrete_laplace"]),
    ],
)
def test_audit_takes_the_names_of_the_privacy_commands(name: str, found: list[str]) -> None:
    result = CliRunner().invoke(app, ["audit", name, "--runs", "1000", "--json"], catch_exceptions=False)
    assert [row["mechanism"] for row in json.loads(result.output)] == found


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("gausian", "gaussian"), ("l2-gama", "l2_gamma"), ("har-publishd", "har-published"), ("nothing", "")],
)
def test_an_unknown_target_names_mechanisms_and_scenarios(name: str, nearest: str) -> None:
    with pytest.raises(InputError, match=f"no mechanism, scenario file or library scenario '{name}'") as refused:
        CliRunner().invoke(app, ["audit", name], catch_exceptions=False)
    text = str(refused.value)
    assert (
        "mechanisms: discrete_laplace, l2_gamma, discrete_gaussian, lattice_laplace, count_gaussian; library: " in text
    )
    assert ("did you mean" in text) == bool(nearest)
    assert not nearest or text.endswith(f"; did you mean '{nearest}'?")


def test_the_target_and_runs_reach_the_audit_of_a_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool, int | None]] = []

    def fake(target: str, as_json: bool, runs: int | None = None) -> int:
        asked.append((target, as_json, runs))
        return 1

    monkeypatch.setattr("scenarios.audits.audit_scenario.audit_scenario", fake)
    result = CliRunner().invoke(app, ["audit", "har-soft-vote", "--runs", "5000", "--json"])
    assert (result.exit_code, asked) == (1, [("har-soft-vote", True, 5000)])
