"""Public names of a package are found where they lie, and no others."""

import subprocess
import sys

import pytest

from federation.contract.guarantee import Unit
from federation.contract.plugins import PublicNames

NAMES = PublicNames("federation", {"contract.guarantee": "Guarantee Protected=Unit", "contract.errors": "InputError"})


def test_names_are_listed_in_order_and_loaded_under_their_own_or_another_name() -> None:
    assert NAMES.all == ["Guarantee", "InputError", "Protected"]
    assert NAMES.load("Protected") is Unit


@pytest.mark.parametrize("name", ["Unit", "guarantee", "__path__", ""])
def test_other_names_have_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'federation' has no attribute '{name}'"):
        NAMES.load(name)


def test_a_package_imports_none_of_its_rooms_before_it_is_asked() -> None:
    code = (
        "import sys, federation.mechanisms, aggregator.learners; print({'numpy', 'scipy', 'sklearn'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
