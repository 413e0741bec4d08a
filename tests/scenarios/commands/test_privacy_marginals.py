"""`federation privacy error-marginals`."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from federation.contract.errors import InputError
from scenarios.commands.privacy import privacy_app

app = typer.Typer()
app.add_typer(privacy_app, name="privacy")
CTG = ("--features", "22", "--queries", "2")


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["privacy", "error-marginals", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def record(*arguments: str) -> tuple[dict, dict]:
    """The whole, and its mechanisms by name."""
    found = json.loads(output(*arguments, "--json"))
    return found, {one["noise"]: one for one in found["mechanisms"]}


def test_rows_take_gaussian_noise_and_the_published_form_has_no_guarantee() -> None:
    found, by_name = record(*CTG, "--rows", "5000")
    assert (found["auto"], found["unit"], found["adjacency"]) == ("gaussian", "row", "add_remove")
    assert by_name["gaussian"]["deviation"] == pytest.approx(24.75, abs=0.01)
    assert by_name["pure"]["scale"] == by_name["published"]["scale"] == 44.0
    assert [by_name[name]["bins"] for name in ("pure", "gaussian", "published")] == [4, 4, 20]
    assert (by_name["pure"]["epsilon"], by_name["pure"]["delta"], by_name["pure"]["epsilon_per_query"]) == (1, 0, 0.5)
    assert by_name["published"]["epsilon"] is None
    assert "a replaced label only" in by_name["published"]["note"]


def test_labels_have_the_published_guarantee_and_replaced_rows_more_noise() -> None:
    _, label = record(*CTG, "--protect", "label")
    assert (label["published"]["epsilon"], label["published"]["delta"]) == (1.0, 0.0)
    assert label["published"]["deviation"] == label["pure"]["deviation"]
    _, replaced = record(*CTG, "--adjacency", "replace")
    assert replaced["pure"]["scale"] == 2 * label["pure"]["scale"]
    few, by_name = record("--features", "2", "--queries", "2", "--delta", "0")
    assert few["auto"] == "pure"
    assert "gaussian" not in by_name


def test_the_table() -> None:
    text = output(*CTG, "--epsilon", ".5", "--rows", "1063")
    for shown in (
        "gaussian *",
        "one row by add_remove",
        "bins of a",
        "none",
        "published: published error rates protect",
    ):
        assert shown in text
    assert "bins of a" not in output(*CTG)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--features", "0", "--queries", "2"), "features must be a whole number"),
        ((*CTG, "--epsilon", "0"), "epsilon must be a positive"),
        ((*CTG, "--delta", "1"), "delta must lie"),
        ((*CTG, "--rows", "0"), "--rows must be at least 1"),
        ((*CTG, "--protect", "party"), "--protect must be row or label, got 'party'"),
        ((*CTG, "--protect", "label", "--adjacency", "add_remove"), "--adjacency of a label must be replace"),
        ((*CTG, "--adjacency", "swap"), "--adjacency of a row must be add_remove or replace"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        output(*arguments)
