"""What is refused as input."""

from collections.abc import Callable
from typing import Any

import pytest

from federation.contract.errors import InputError


def refused(words: str | None, call: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Assert that a call raises an `InputError` whose text matches the words, if there are any."""
    with pytest.raises(InputError, match=words):
        call(*arguments, **options)
