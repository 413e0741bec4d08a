"""`federation privacy proportions`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from federation.mechanisms.counts.calibrated_counts import calibrate
from federation.mechanisms.counts.dirichlet import MAX_FLOOR
from scenarios.commands import privacy
from scenarios.commands.privacy import privacy_app

app = typer.Typer()
app.add_typer(privacy_app, name="privacy")
FIGURE = ("--counts", "50,50,50,50,800", "--epsilon", ".05", "--delta", ".05")


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["privacy", "proportions", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_all_mechanisms_at_invented_counts() -> None:
    record = json.loads(output(*FIGURE, "--json"))
    assert record["counts"] == [50, 50, 50, 50, 800]
    assert (record["classes"], record["size"], record["recommended"]) == (5, 1000, "gaussian")
    rows = {row["noise"]: row for row in record["rows"]}
    assert len(rows) == 10
    assert record["rows"][0]["noise"] == "gaussian"
    assert rows["gaussian"]["l1"] <= 0.030
    assert rows["published_laplace"]["l1"] > 0.16
    assert rows["gaussian"]["parameters"]["scale"] == pytest.approx(7.937, abs=1e-3)
    assert record["rows"][-1]["noise"] == "published_dirichlet"
    published = rows["published_dirichlet"]
    assert not published["private"]
    assert "NOT differentially private" in published["note"]
    assert published["delta"] > 0.07


def test_the_choice_from_public_numbers_only() -> None:
    record = json.loads(output("--classes", "5", "--size", "1000", "--json"))
    assert (record["counts"], record["recommended"]) == (None, "pure")
    rows = {row["noise"]: row for row in record["rows"]}
    assert not {"dirichlet_floor", "published_dirichlet"} & set(rows)  # both would need to know the counts
    assert rows["laplace"]["l1"] <= 0.0080
    mechanism = calibrate("auto", classes=5, epsilon=1.0, delta=1e-6)
    assert record["count_deviation"] == pytest.approx(mechanism.covariance(1000)[0, 0] ** 0.5)
    promised = json.loads(output("--classes", "5", "--size", "1000", "--floor", "150", "--json"))
    assert "dirichlet_floor" in {row["noise"] for row in promised["rows"]}


def test_tables_mark_the_choice_and_explain_what_is_missing() -> None:
    text = output("--counts", "5,95", "--epsilon", ".05", "--delta", ".05")
    assert "recommended     │ gaussian" in text
    assert "Use noise: gaussian" in text
    assert "dirichlet_floor: floor must be at least 7" in text
    assert "published_dirichlet: NOT differentially private" in text
    choice = output("--classes", "20", "--size", "500", "--delta", "0")
    assert "recommended     │ pure" in choice
    assert "at equal counts" in choice
    assert "published_dirichlet" not in choice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --counts N,N,... to compare at invented counts, or --classes and --size"),
        (("--classes", "5"), "give --counts"),
        (("--size", "5"), "give --counts"),
        (("--classes", "1", "--size", "5"), "'--classes': 1 is not in the range x>=2"),
        (("--classes", "2", "--size", "0"), "'--size': 0 is not in the range 1<=x<=4503599627370496"),
        (("--counts", "1,2", "--size", "3"), "--counts stands alone"),
        (
            ("--counts", "1,b"),
            "--counts must be two or more whole numbers .* with commas between, .* got '1,b'",
        ),
        (("--counts", "1.5,2"), "--counts must be two or more whole numbers"),
        (("--counts", "7"), "--counts must be two or more whole numbers"),
        (("--counts", "7,-1"), "whole numbers from 0 to 2.52 .*; got '7,-1'"),
        (("--counts", "0,0"), "counts must not all be zero"),
        (("--counts", "3,4", "--epsilon", "0"), "epsilon must be a positive finite number"),
        (("--counts", "3,4", "--delta", "1"), r"delta must lie in \[0, 1\)"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    refused: Callable[..., str], arguments: tuple[str, ...], message: str
) -> None:
    assert re.search(message, refused("privacy", "proportions", *arguments))


def test_noise_above_the_whole_bag_is_pointed_out() -> None:
    public = ("--classes", "3", "--size", "100", "--epsilon")
    assert "more than the bag holds" in output(*public, ".001")
    assert "more than the bag holds" not in output(*public, "1")


@pytest.mark.parametrize("option", ["--floor", "--pseudo-count"])
@pytest.mark.parametrize("value", ["0", "-2", "1000001"])
def test_public_numbers_out_of_range_are_refused(refused: Callable[..., str], option: str, value: str) -> None:
    told = refused("privacy", "proportions", *FIGURE, option, value)
    assert f"'{option}': {value} is not in the range 1<=x<=1000000" in told


def test_the_largest_public_number_is_that_of_the_mechanism() -> None:
    assert privacy._MOST == MAX_FLOOR
