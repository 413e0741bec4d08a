"""`federation privacy error-marginals`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

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
        "auto        │ gaussian",
        "unit        │ row",
        "adjacency   │ add_remove",
        "published│88   │124.5    │-      │-    │-                │2",
        "published: published error rates protect",
        "Use noise: gaussian",
    ):
        assert shown in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--features", "0", "--queries", "2"), "'--features': 0 is not in the range x>=1"),
        ((*CTG, "--epsilon", "0"), "epsilon must be a positive"),
        ((*CTG, "--delta", "1"), "delta must lie"),
        ((*CTG, "--rows", "0"), "'--rows': 0 is not in the range x>=1"),
        ((*CTG, "--protect", "party"), "'--protect': 'party' is not one of 'row', 'label'"),
        (
            (*CTG, "--protect", "label", "--adjacency", "add_remove"),
            "label by replace .* got label by add_remove",
        ),
        ((*CTG, "--adjacency", "swap"), "'swap' is not one of 'add_remove', 'replace'"),
    ],
)
def test_bad_input_is_refused(refused: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert re.search(message, refused("privacy", "error-marginals", *arguments))
