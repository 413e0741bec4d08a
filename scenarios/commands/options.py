"""What several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from federation.contract.errors import InputError
from scenarios.commands import completion

ScenarioName = Annotated[
    str,
    Argument(
        metavar="SCENARIO",
        help="A scenario file, or the name of a library scenario.",
        autocompletion=completion.scenarios,
    ),
]
Settings = Annotated[
    list[str],
    Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario, such as trials.splits=2; repeatable."),
]
DataDirectory = Annotated[
    Path | None, Option("--data-dir", metavar="DIR", help="Folder of data files; default: FEDERATION_DATA.")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
RANGE = Option("--range", metavar="LOW,HIGH", help="The public range of labels; never taken from data.")


def parsed_range(text: str) -> tuple[float, float]:
    """LOW,HIGH as two numbers. Raises `InputError` for anything else.

    Examples:
        >>> parsed_range("0,1e3")
        (0.0, 1000.0)
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--range must be two numbers with a comma between, such as 0,1; got '{text}'") from None
    if not low < high:
        raise InputError(f"--range must name the lower number first, got '{text}'")
    return low, high
