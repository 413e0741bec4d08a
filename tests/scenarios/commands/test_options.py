"""What several commands take: ranges that are refused in a sentence, and options that are the same everywhere."""

import re

import click
import pytest
import typer
from typer.testing import CliRunner

from federation.contract.errors import InputError
from scenarios.commands.options import AsJson, DataDirectory, ScenarioName, Settings, parsed_range


@pytest.mark.parametrize(("text", "ends"), [("0,1", (0, 1)), (" -3 , -2.5", (-3, -2.5)), ("0,1e3", (0, 1000))])
def test_a_range_is_two_numbers(text, ends):
    assert parsed_range(text) == ends


@pytest.mark.parametrize("text", ["", "1", "0,1,2", "0;1", "low,high", "0,"])
def test_what_is_no_pair_of_numbers_is_quoted(text):
    with pytest.raises(InputError, match=rf"two numbers with a comma between, such as 0,1; got '{re.escape(text)}'$"):
        parsed_range(text)


@pytest.mark.parametrize("text", ["1,0", "2,2", "nan,1", "0,nan"])
def test_ends_that_are_equal_or_in_no_order_are_refused(text):
    with pytest.raises(InputError, match=f"lower number first, got '{text}'"):
        parsed_range(text)


@pytest.fixture
def told():
    """What a command with these options is called with, or how it ends."""
    app, seen = typer.Typer(), []

    @app.command()
    def command(
        scenario: ScenarioName,
        settings: Settings = [],  # noqa: B006 - typer copies it
        data_dir: DataDirectory = None,
        as_json: AsJson = False,
    ) -> None:
        seen.append((scenario, settings, data_dir and str(data_dir), as_json))

    def run(*arguments):
        seen.clear()
        done = CliRunner().invoke(app, arguments)
        return seen[0] if done.exit_code == 0 else click.unstyle(done.output)

    return run


def test_settings_are_repeated_in_order_and_nothing_is_set_by_itself(told):
    assert told("quickstart") == ("quickstart", [], None, False)
    given = ("--set", "seed=2", "quickstart", "--set", "seed=3", "--data-dir", "d", "--json")
    assert told(*given) == ("quickstart", ["seed=2", "seed=3"], "d", True)


def test_a_scenario_has_to_be_named(told):
    assert "Missing argument 'SCENARIO'" in told("--json")
