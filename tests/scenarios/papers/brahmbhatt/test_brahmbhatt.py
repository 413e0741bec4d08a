"""All cells that are printed are declared."""

import pytest

from scenarios.papers.brahmbhatt.brahmbhatt import PAPER
from scenarios.papers.brahmbhatt.guarantees import SOURCES
from scenarios.reproductions.paper import published


@pytest.mark.parametrize("number", range(1, 7))
def test_tables_have_sixteen_cells_of_each_set_and_their_places(number):
    known = published("brahmbhatt", f"table{number}")
    [item] = [item for item in PAPER.items if item.name == f"table{number}"]
    for setting, (_, _, counts, sizes) in SOURCES.items():
        cells = {(series, x) for of, series, x in known if of == setting}
        assert cells == {(f"m = {count}", str(size)) for count in counts for size in sizes}
    assert {x for _, _, x in known} == set(item.at)
    assert {series for _, series, _ in known} == {one.name for one in item.series}
