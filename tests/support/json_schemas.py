"""What editors make of a JSON schema."""

from collections.abc import Callable
from typing import Any

import pytest


def accepted(schema: dict[str, Any]) -> Callable[[Any], bool]:
    """Return a function that says whether a value is valid by a schema, which is checked once."""
    kind = pytest.importorskip("jsonschema").validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema).is_valid
