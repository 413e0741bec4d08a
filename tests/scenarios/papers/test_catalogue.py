"""Papers by name, and their items."""

import pytest
from support.toy_paper import toy_item, toy_paper

from federation.contract.errors import InputError
from scenarios.reproductions.paper import items, names, paper


def test_every_paper_is_found_by_the_name_of_its_folder():
    assert "lacombe" in names()
    for name in names():
        assert paper(name).name == name


def test_unknown_names_are_refused_with_those_that_there_are():
    with pytest.raises(InputError, match=r"no paper 'lacomb'; there are .*did you mean 'lacombe'"):
        paper("lacomb")
    known = toy_paper(toy_item(), toy_item(name="fig1"))
    with pytest.raises(InputError, match="--only 'fig2' is none of table1, fig1; did you mean 'fig1'"):
        items(known, ["fig2"])
    assert [item.name for item in items(known, ["fig1"])] == ["fig1"]
    assert len(items(known, [])) == 2
