"""What stands in the generated parts of a page, from a small run."""

import re

import click
import pytest

from aggregator.contract.registry import protocol_names
from benchmarks.documentation.blocks import Block
from benchmarks.documentation.contents import Runs, content, parsed, printed
from scenarios.reports.summary import summarise
from scenarios.settings.rules import described

SETTINGS = ["--set", "trials.splits=1", "--set", "trials.noise=2", "--set", "protocols=[{kind: mean_operator}]"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    printed(["run", "breast-cancer-mean-operator", *SETTINGS, "--out", "breast-cancer-mean-operator"], folder)
    return Runs(folder, folder / "pages")


def made(runs: Runs, kind: str, **settings: object) -> str:
    return content(Block(kind, {"run": "breast-cancer-mean-operator", **settings}, ""), runs)


def test_a_table_has_the_means_of_the_run(runs: Runs) -> None:
    rows = {"mean_operator": ["default", "a label"], "constant": ["none", ""]}
    table = made(runs, "table", metric="accuracy", head=["noise", "protects"], columns=[0.1, 3], rows=rows)
    head, line, first, last = table.splitlines()
    assert head == "| noise | protects | ε = 0.1 | ε = 3 |"
    assert line == "| --- | --- | --- | --- |"
    [private, *_] = summarise(runs.rows("breast-cancer-mean-operator"), "accuracy")
    assert first == f"| default | a label | {private.at(0.1).mean:.3f} | {private.at(3).mean:.3f} |"
    assert last.startswith("| none |  | 0.")  # what has no epsilon stands under each


def test_verdicts_and_figures_are_those_of_the_run_and_other_variants_are_named(runs: Runs) -> None:
    with pytest.raises(ValueError, match="mean_operater"):
        made(runs, "table", metric="accuracy", columns=[1], rows={"mean_operater": ""})
    assert made(runs, "verdict").startswith("> mean\\_operator may be better than always saying")
    line = made(runs, "figure", figure="accuracy.svg", to="figures/first.svg", below="docs/", alt="Accuracy")
    assert line == "![Accuracy](docs/figures/first.svg)"
    copied = (runs.pages / "figures" / "first.svg").read_bytes()
    assert copied == (runs.folder / "breast-cancer-mean-operator" / "figures" / "accuracy.svg").read_bytes()


def test_options_are_those_of_the_protocol_with_defaults_and_meaning(runs: Runs) -> None:
    text = made(runs, "options", protocol="weighted_lba")
    assert re.search(r"size.*`64`", text)
    assert "| noise: gaussian | with noise on the label sums" in text


def test_every_protocol_option_is_explained(runs: Runs) -> None:
    for name in protocol_names():
        told = re.findall(r"^\| `(\w+)` \|", made(runs, "options", protocol=name), flags=re.MULTILINE)
        defaults = described(name)[0]["defaults"]
        assert set(told) == defaults.keys(), name


def test_commands_settings_and_benchmarks_are_described(runs: Runs) -> None:
    assert "| `--keep-models` |" in made(runs, "command", command="run")
    assert "| `parties.quorum` |" in made(runs, "settings", section="parties")
    assert "| `name` |" in made(runs, "settings")
    table = made(runs, "benchmarks")
    assert re.search(r"documentation.*README", table)
    assert "`common`" not in table


def test_output_shows_the_command_and_the_lines_asked_for_and_why_a_command_fails(runs: Runs) -> None:
    whole = made(runs, "output", command="federation validate quickstart")
    assert whole.startswith("```sh\nfederation validate quickstart\n```\n\n```text\nOK: quickstart\n")
    part = made(runs, "output", command="federation validate quickstart", **{"from": 2, "to": 2})
    assert part.endswith("```text\nsweep: none\n```")
    with pytest.raises(RuntimeError, match="2"):
        printed(["validate", "quickstrat"], runs.folder)


def test_commands_are_parsed_without_being_run() -> None:
    command, context = parsed(["privacy", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--sensitivity", "1"])
    assert (command.name, context.params["epsilon"]) == ("gaussian", 1.0)
    for wrong in (["run", "quickstart", "--ot", "x"], ["rnu"], ["privacy", "gaussain"]):
        with pytest.raises(click.ClickException):
            parsed(wrong)
