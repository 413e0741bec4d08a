"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a library scenario.")
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the scenario, such as trials.splits=2; repeatable.",
    ),
]
DataDirectory = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Folder of data files; default: FEDERATION_DATA."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
