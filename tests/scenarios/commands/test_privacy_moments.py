"""`federation privacy mean-operator`: the noise of every mechanism, and which one is taken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from federation.mechanisms.moments.calibrated_moments import calibrate
from scenarios.commands.privacy import privacy_app

app = typer.Typer()
app.add_typer(privacy_app, name="privacy")


def asked(*options: str) -> str:
    result = CliRunner().invoke(app, ["privacy", "mean-operator", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def mechanisms(*options: str) -> dict[str, dict]:
    record = json.loads(asked(*options, "--json"))
    return {row["noise"]: row for row in record["mechanisms"]}


def test_every_mechanism_is_described_by_its_noise_on_the_mean() -> None:
    found = mechanisms("--rows", "1000", "--d", "25", "--epsilon", "0.5")
    assert set(found) == {"pure", "laplace", "gaussian", "published_laplace"}
    for kind, row in found.items():
        noise = calibrate(kind, dimension=25, epsilon=0.5, delta=1e-6, rows=1000)
        assert row["mechanism"] == noise.name
        assert row["epsilon"] == noise.epsilon
        assert row["noise_norm"] == pytest.approx(noise.noise_norm() / 1000)
        assert row["deviation"] == pytest.approx(row["noise_norm"] / 5)
        assert row["regularisation"] == pytest.approx(max(1e-4, row["noise_norm"] ** 2 / 2))
    assert found["published_laplace"]["epsilon"] == 2.5
    assert [kind for kind, row in found.items() if row["auto"]] == ["gaussian"]


def test_without_delta_gaussian_noise_is_left_out() -> None:
    found = mechanisms("--rows", "1000", "--d", "25", "--delta", "0")
    assert "gaussian" not in found
    assert [kind for kind, row in found.items() if row["auto"]] == ["pure"]
    short = mechanisms("--rows", "1000", "--d", "25", "--delta", "0", "--l1-bound", "1.5")
    assert [kind for kind, row in short.items() if row["auto"]] == ["laplace"]


def test_noise_grows_with_parties_unless_they_share_it() -> None:
    shape = ("--rows", "4000", "--d", "5")
    one, alone, shared = (
        mechanisms(*shape, *more) for more in ((), ("--parties", "64"), ("--parties", "64", "--secure-sum"))
    )
    for kind, row in one.items():
        assert alone[kind]["noise_norm"] == pytest.approx(8 * row["noise_norm"])
        assert shared[kind]["noise_norm"] == pytest.approx(row["noise_norm"], rel=1e-5)


def test_the_table_marks_the_choice_and_says_when_noise_is_all() -> None:
    output = asked("--rows", "1000", "--d", "5")
    (pure,) = (line for line in output.splitlines() if line.startswith("pure"))
    assert pure.endswith("│yes ")
    assert "longer than any mean" not in output
    assert "longer than any mean" in asked("--rows", "10", "--d", "5")
    shared = asked("--rows", "1000", "--d", "5", "--parties", "8", "--secure-sum")
    assert "at least 8 parties" in shared


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--d", "0"), "'--d': 0 is not in the range x>=1"),
        (("--d", "3", "--epsilon", "0"), "epsilon must be"),
        (("--d", "3", "--delta", "2"), "delta must lie"),
        (("--d", "3", "--l1-bound", "-1"), "l1_bound must be"),
        (("--d", "3", "--parties", "11"), "--parties must be"),
        (("--d", "3", "--parties", "0"), "'--parties': 0 is not in the range x>=1"),
    ],
)
def test_impossible_options_are_refused(refused: Callable[..., str], options: tuple[str, ...], message: str) -> None:
    assert re.search(message, refused("privacy", "mean-operator", "--rows", "10", *options))
