"""What packages install is looked for once, loaded where it is used, and told by its package where it fails."""

import pytest
from support.packages import install

from federation.contract import plugins as module
from federation.contract.errors import InputError
from federation.contract.plugins import find, installed

GROUP = "federation.things"


@pytest.fixture
def things(import_folder):
    """Two things in a group of their own, one of which cannot be imported."""
    entries = ["second = things_pack:VALUE", "first = things_pack:absent"]
    install(import_folder, "Things-Pack", "VALUE = 7\n", {GROUP: entries})
    return import_folder


def test_things_are_listed_by_name_and_loaded_where_they_are_used(things):
    assert list(installed(GROUP)) == ["first", "second"]
    assert find(GROUP, "thing", "second").load() == 7
    told = r"the entry point 'first' of the package 'Things-Pack' \(federation.things: things_pack:absent\) cannot be "
    with pytest.raises(InputError, match=told + "imported: AttributeError: .*; repair or remove that package"):
        find(GROUP, "thing", "first").load()


def test_a_name_that_is_not_installed_is_told_with_those_that_are(things):
    with pytest.raises(InputError, match=r"'secnd' is not known; allowed: first, second; did you mean 'second'\?$"):
        find(GROUP, "thing", "secnd")
    with pytest.raises(InputError, match=r"thing 'x' is not known; none is installed$"):
        find("federation.nothing", "thing", "x")


def test_packages_are_looked_for_once_for_each_set_of_places_to_import_from(things, tmp_path_factory, monkeypatch):
    looked = []
    found = module.entry_points
    monkeypatch.setattr(module, "entry_points", lambda **known: looked.append(known) or found(**known))
    fresh = tmp_path_factory.mktemp("fresh")
    with monkeypatch.context() as elsewhere:
        elsewhere.syspath_prepend(fresh)
        for _ in range(3):
            installed(GROUP)
        assert looked == [{"group": GROUP}]
        assert "third" not in installed(GROUP)
    install(fresh, "Third-Pack", "VALUE = 9\n", {GROUP: ["third = third_pack:VALUE"]})
    monkeypatch.syspath_prepend(tmp_path_factory.mktemp("another"))  # else the places were those of before
    monkeypatch.syspath_prepend(fresh)
    assert find(GROUP, "thing", "third").load() == 9
