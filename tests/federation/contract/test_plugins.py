"""What packages install is looked for once, loaded where it is used, and told by its package where it fails.

Public names of a package are found where they lie, and no others.
"""

import subprocess
import sys
from importlib import metadata

import pytest
from support.packages import install
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import PublicNames, Reference, find, installed

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
    refused(r"secnd.*second", find, GROUP, "thing", "secnd")
    refused("'x'", find, "federation.nothing", "thing", "x")


def test_packages_are_looked_for_once_for_each_set_of_places_to_import_from(things, tmp_path_factory, monkeypatch):
    looked = []
    found = metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda **known: looked.append(known) or found(**known))
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


NAMES = PublicNames("federation", {"contract.guarantee": "Guarantee Protected=Unit", "contract.errors": "InputError"})


@pytest.mark.parametrize("name", ["Unit", "guarantee", "__path__", ""])
def test_names_are_listed_in_order_and_loaded_under_their_own_or_another_name(name: str) -> None:
    assert NAMES.all == ["Guarantee", "InputError", "Protected"]
    assert NAMES.load("Protected") is Unit
    with pytest.raises(AttributeError, match=rf"federation.*'{name}'"):
        NAMES.load(name)


def test_a_package_imports_none_of_its_rooms_before_it_is_asked() -> None:
    code = (
        "import sys, federation.mechanisms, aggregator.learners; print({'numpy', 'scipy', 'sklearn'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_a_reference_is_called_with_its_arguments_and_survives_json():
    assert Reference("builtins:dict", {"a": 1}).call() == {"a": 1}
    reference = Reference("m:a", {"x": [1, "y", None]})
    assert Reference.from_json(reference.to_json()) == reference
    with pytest.raises(InputError, match="json:loads"):  # an argument that is not taken
        Reference("json:loads", {"text": "{}"}).call()
    with pytest.raises(TypeError):  # a mistake within what is called is none of the reference's
        Reference("json:loads", {"s": 1}).call()


TEXTS = ("", "[]", "[" * 100_000, '{"target": "json:loads"}', '{"target": 1, "arguments": {}}')


@pytest.mark.parametrize(
    ("made", "told"),
    [
        *((lambda told: Reference(told).load(), target) for target in ("no_such_module:x", "json:absent", "json")),
        *((lambda told: Reference(told).load(), target) for target in ("", ".json:loads", "..:x")),
        *((Reference.from_json, text) for text in (*TEXTS, '{"target": "json:loads", "arguments": []}')),
    ],
)
def test_what_is_no_reference_or_cannot_be_loaded_is_an_input_error(made, told):
    with pytest.raises(InputError):
        made(told)
