"""A scenario inside a run of Flower: `flwr run . --run-config 'scenario="quickstart"'`.

The aggregator's app calls `simulate` by the name that the run configuration gives, with the nodes of that run.
"""

from collections.abc import Mapping
from typing import Any

from federation.engines.nodes import SimulationGrid
from federation.engines.sending import describe
from scenarios.runs.progress import Progress


class _Lines(Progress):
    """One line per world, which Flower streams to whoever watches the run."""

    def __init__(self) -> None:
        self._worlds = self._begun = 0

    def note(self, text: str) -> None:
        """Print it."""
        print(text, flush=True)

    def begin(self, worlds: int, done: int) -> None:
        """Note how many there are."""
        self._worlds, self._begun = worlds, done

    def world(self, label: str) -> None:
        """Name the world under way."""
        self._begun += 1
        print(f"world {self._begun} of {self._worlds} ({label})", flush=True)


def simulate(grid: SimulationGrid, config: Mapping[str, Any]) -> None:
    """Run `scenario` with the settings of `set` (KEY=VALUE, separated by semicolons) over the nodes of `grid`.

    `out` is the run directory, `data-dir` the folder of data sets; empty texts mean the defaults of `federation run`.
    Raises `FederationError`s as `scenarios.run` does.
    """
    from rich.console import Console

    from scenarios.reports.summary import summarise
    from scenarios.reports.tables import tables
    from scenarios.runs.runner import run
    from scenarios.settings.schema import resolve

    settings = [text.strip() for text in str(config["set"]).split(";") if text.strip()]
    scenario = resolve(str(config["scenario"]), [*settings, "engine.kind=flower"])
    out, data_dir = (str(config[key]) or None for key in ("out", "data-dir"))
    finished = run(scenario, out=out, data_dir=data_dir, progress=_Lines(), grid=grid)
    for table in tables(summarise(finished.rows)):
        Console().print(table)
    if finished.failures:
        print(f"parties failed: {describe(finished.failures)}")
    print(f"wrote {finished.directory.resolve()}/", flush=True)
