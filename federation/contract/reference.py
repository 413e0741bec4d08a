"""A name for code that another process will load: `module:attribute` with plain arguments."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, field
from typing import Any

from federation.contract.errors import InputError


@dataclass(frozen=True)
class Reference:
    """`module:attribute` and the keyword arguments to call it with (JSON values only).

    Examples:
        >>> Reference("math:prod", {"iterable": [2, 3, 7]}).target
        'math:prod'
        >>> Reference("fractions:Fraction", {"numerator": 6, "denominator": 4}).call()
        Fraction(3, 2)
    """

    target: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def load(self) -> Any:
        """The attribute itself. Raises `InputError` when the module or the attribute does not exist."""
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except InputError:
            raise
        except (ImportError, AttributeError, ValueError) as error:
            raise InputError(f"cannot load '{self.target}' (expected module:attribute): {error}") from error

    def call(self) -> Any:
        """The attribute called with the arguments."""
        return self.load()(**self.arguments)

    def to_json(self) -> str:
        """One line of JSON, for a node's configuration."""
        return json.dumps({"target": self.target, "arguments": self.arguments}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Reference:
        """Inverse of `to_json`."""
        record = json.loads(text)
        return cls(record["target"], record["arguments"])
