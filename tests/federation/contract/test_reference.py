import pytest

from federation.contract.errors import InputError
from federation.contract.reference import Reference


def test_a_reference_is_called_with_its_arguments():
    assert Reference("builtins:dict", {"a": 1}).call() == {"a": 1}


def test_json_round_trip():
    reference = Reference("m:a", {"x": [1, "y", None]})
    assert Reference.from_json(reference.to_json()) == reference


@pytest.mark.parametrize("target", ["no_such_module:x", "json:absent", "json", ""])
def test_what_cannot_be_loaded_is_an_input_error(target):
    with pytest.raises(InputError, match="module:attribute"):
        Reference(target).load()
