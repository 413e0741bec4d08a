"""Iyer, Nath and Sarawagi 2016: sizes of the data sets, and by how much an error is lower."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.reproductions.measure import scenario_of
from scenarios.reproductions.paper import EXACT, Observation, paper


def sizes(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Of every data set that is here features, instances and classes; of all of them the rows of bags and sets."""
    own = paper("iyer")
    for part in (part for item in own.items if item.name in ("fig2", "fig3") for part in item.parts):
        scenario = scenario_of(own, part)
        assert scenario.data.targets is not None
        found = {"rows of a bag": scenario.parties.rows, "rows of a set": scenario.data.targets.rows}
        with suppress(InputError):
            table = load(str(scenario.data.source), data_dir=data_dir)
            found |= {"features": len(table.columns), "instances": len(table), "classes": len(table.classes)}
        for series, value in found.items():
            assert value is not None
            yield Observation(part.setting, series, "published", "", EXACT, value)


def less(own: float, other: float) -> float:
    """By what share an error is lower than another."""
    return 1 - own / other
