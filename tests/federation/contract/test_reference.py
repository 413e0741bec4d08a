import pytest

from federation.contract.errors import InputError
from federation.contract.plugins import Reference


def test_a_reference_is_called_with_its_arguments():
    assert Reference("builtins:dict", {"a": 1}).call() == {"a": 1}


def test_json_round_trip():
    reference = Reference("m:a", {"x": [1, "y", None]})
    assert Reference.from_json(reference.to_json()) == reference


@pytest.mark.parametrize("target", ["no_such_module:x", "json:absent", "json", "", ".json:loads", "..:x"])
def test_what_cannot_be_loaded_is_an_input_error(target):
    with pytest.raises(InputError, match="module:attribute"):
        Reference(target).load()


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"target": "json:loads"}', '{"target": 1, "arguments": {}}',
                                  '{"target": "json:loads", "arguments": []}'])  # fmt: skip
def test_what_is_no_reference_is_an_input_error(text):
    with pytest.raises(InputError, match="a reference must"):
        Reference.from_json(text)


def test_arguments_that_are_not_taken_are_an_input_error():
    with pytest.raises(InputError, match=r"cannot call 'json:loads'.*text"):
        Reference("json:loads", {"text": "{}"}).call()


def test_a_mistake_within_what_is_called_is_none_of_the_references():
    with pytest.raises(TypeError):
        Reference("json:loads", {"s": 1}).call()
