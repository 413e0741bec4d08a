"""`federation privacy llp` and `federation privacy lba`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.accounting import delta
from federation.mechanisms.bag_sums.calibrated_sums import smallest_tau
from federation.mechanisms.bag_sums.design import BagDesign
from scenarios.commands.privacy import privacy_app

app = typer.Typer()
app.add_typer(privacy_app, name="privacy")
LLP = ("llp", "--n", "25600", "--m", "100", "--k", "256")
PUBLISHED = (*LLP, "--rho", ".1", "--sigma", "1", "--range", "0,1", "--epsilon", "1")


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["privacy", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_exact_delta_and_what_belongs_to_it() -> None:
    record = json.loads(output(*PUBLISHED, "--json", "--releases", "3"))
    design = BagDesign(25_600, 100, 256, noisy=2560)
    assert record["delta"] == delta(1.0, design, sigma=1.0, label_range=(0, 1))
    assert float(f"{record['delta']:.1e}") == 6.2e-4
    assert record["theorem"] == 1
    assert record["infinite_loss"] == design.noise_free
    costs = {row["releases"]: row["delta"] for row in record["releases"]}
    assert list(costs) == [1, 2, 3, 4, 8, 16]
    assert costs[1] == record["delta"]
    assert sorted(costs.values()) == list(costs.values())
    enough = delta(1.0, design, sigma=record["sigma_for_delta"], label_range=(0, 1))
    assert 0.99e-6 < enough <= 1e-6


def test_the_table() -> None:
    text = output(*PUBLISHED)
    for shown in (
        "0.0006187715",
        "delta is exact; theorem is the published bound.",
        "infinite loss",
        "16       │ 0.07694",
    ):
        assert shown in text
    stratified = output(*LLP, "--per-bag", "26", "--weights", "signs")
    assert "1.007311" in stratified
    assert "covers other designs" in stratified
    hopeless = output("llp", "--n", "6400", "--m", "100", "--k", "64", "--rho", ".1")
    assert "No noise is enough" in hopeless


def test_shares_are_decimal_numbers() -> None:
    record = json.loads(output("llp", "--n", "30", "--m", "3", "--k", "10", "--rho", ".1", "--json"))
    assert record["noisy"] == 3


def test_negative_labels() -> None:
    shifted = json.loads(output(*LLP, "--rho", ".1", "--range", "-3,-2", "--json"))
    assert shifted["delta"] == json.loads(output(*PUBLISHED, "--json"))["delta"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--n", "100", "--m", "5", "--k", "30", "--rho", ".1"), "5 bags of 30 need 150 records, got 100"),
        (("--n", "100", "--m", "5", "--k", "0", "--rho", ".1"), "'--k': 0 is not in the range x>=1"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", "0"), r"must lie in \(0, 1\], got 0"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", "1.1"), r"must lie in \(0, 1\], got 1.1"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", ".001"), "is no row at all"),
        (("--n", "100", "--m", "5", "--k", "20"), "give --rho, .* or --per-bag"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", ".1", "--per-bag", "2"), "and not both"),
        (("--n", "100", "--m", "5", "--k", "20", "--per-bag", "21"), "per_bag must be an integer from 1 to all 20"),
        (
            ("--n", "100", "--m", "5", "--k", "20", "--rho", ".1", "--weights", "sign"),
            "'sign' is not one of",
        ),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", ".1", "--range", "1,0"), "the lower number first, got '1,0'"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", ".1", "--range", "1"), "two numbers with a comma"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", ".1", "--sigma", "0"), "sigma must be a positive"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", ".1", "--epsilon", "-1"), "epsilon must be"),
        (("--n", "100", "--m", "5", "--k", "20", "--rho", ".9", "--delta", "0"), "delta must lie strictly"),
        (
            ("--n", "100", "--m", "5", "--k", "20", "--rho", ".1", "--releases", "0"),
            "'--releases': 0 is not in",
        ),
    ],
)
def test_bad_input_of_llp_is_refused_in_a_sentence(
    refused: Callable[..., str], arguments: tuple[str, ...], message: str
) -> None:
    assert re.search(message, refused("privacy", "llp", *arguments))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=(200, 2)), rng.integers(0, 3, 200)
    y = np.clip(0.5 + 0.1 * x[:, 0] + 0.1 * rng.normal(size=200), 0, 1)
    lines = [f"{a},{b},{'abc'[c]},{label}" for (a, b), c, label in zip(x, kind, y, strict=True)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age,height,kind,weeks", *lines]))
    return path


def test_what_sums_without_noise_reveal(table: Path) -> None:
    arguments = ("lba", str(table), "--label", "weeks", "--k", "20", "--range", "0,1")
    record = json.loads(output(*arguments, "--json", "--seen", "3"))
    assert record["guarantee"] is None
    assert "must not be published" in record["warning"]
    assert "delta" not in record
    assert (record["n"], record["m"], record["bags_seen"], record["inclusion"]) == (200, 10, 3, 1)
    exposed = (record["per_instance_delta_mean"], record["per_instance_delta_mean_largest"])
    assert 0 < exposed[0] < exposed[1] <= record["per_instance_delta_largest"] <= 1
    assert record["tau_for_a_guarantee"] == pytest.approx(smallest_tau(1.0, 1e-6, label_range=(0, 1)), rel=1e-5)
    text = output(*arguments, "--m", "5")
    assert "NOT A GUARANTEE: these figures depend on the private labels" in text
    assert "bags seen                       │ 5" in text
    assert "Noise of standard deviation 9.249" in text  # less, as half of the records are in no bag


def test_bags_no_larger_than_their_columns_reveal_everything(table: Path) -> None:
    record = json.loads(output("lba", str(table), "--label", "weeks", "--k", "4", "--range", "0,1", "--json"))
    assert record["revealed_share"] == 1


def test_labels_outside_the_range_are_refused_or_clipped_as_the_user_says(table: Path) -> None:
    arguments = ("lba", str(table), "--label", "weeks", "--k", "20", "--range", "0,.5")
    with pytest.raises(InputError, match="lie outside"):
        output(*arguments)
    assert "NOT A GUARANTEE" in output(*arguments, "--outside", "clip")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label", "weeks"), "--range LOW,HIGH must declare the public range"),
        (("--label", "weeks", "--range", "0,1", "--k", "0"), "'--k': 0 is not in the range"),
        (("--label", "weeks", "--range", "0,1", "--k", "201"), "need 201 rows, got 200"),
        (("--label", "weeks", "--range", "0,1", "--m", "0"), "'--m': 0 is not in the range x>=1"),
        (("--label", "week", "--range", "0,1"), "week"),
        (("--label", "kind", "--range", "0,1"), "kind"),
        (("--range", "0,1"), "must name the label column"),
        (("--label", "weeks", "--range", "0,1", "--outside", "keep"), "'keep' is not one of 'refuse', 'clip'"),
        (("--label", "weeks", "--range", "0,1", "--epsilon", "-1"), "epsilon must"),
    ],
)
def test_bad_input_of_lba_is_refused_in_a_sentence(
    refused: Callable[..., str], table: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert re.search(message, refused("privacy", "lba", str(table), *arguments))


def test_missing_values_and_files(tmp_path: Path, table: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        output("lba", str(tmp_path / "none.csv"), "--label", "weeks", "--range", "0,1")
    archive = tmp_path / "gaps.npz"
    np.savez(archive, X=np.where(np.eye(80)[:, :2] == 1, np.nan, 0.5), y=np.linspace(0, 1, 80))
    with pytest.raises(InputError, match=r"missing|finite"):
        output("lba", str(archive), "--range", "0,1")
