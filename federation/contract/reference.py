"""A name for code that another process will load: `module:attribute` with plain arguments."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from federation.contract.errors import InputError, refusing


@dataclass(frozen=True)
class Reference:
    """`module:attribute` and the keyword arguments to call it with (JSON values only).

    Raises `InputError` for a target that is no text, or arguments without names.

    Examples:
        >>> Reference("math:prod", {"iterable": [2, 3, 7]}).target
        'math:prod'
        >>> Reference("fractions:Fraction", {"numerator": 6, "denominator": 4}).call()
        Fraction(3, 2)
    """

    target: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.target, str) or not isinstance(self.arguments, dict):
            raise InputError(
                "a reference must have a target, the text module:attribute, and arguments, values by name; got "
                f"{self.target!r:.100} and {self.arguments!r:.100}"
            )

    def load(self) -> Any:
        """The attribute itself. Raises `InputError` when the module or the attribute does not exist."""
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except InputError:
            raise
        except (ImportError, AttributeError, ValueError, TypeError) as error:  # TypeError: a relative name
            raise InputError(f"cannot load '{self.target}' (expected module:attribute): {error}") from error

    def call(self) -> Any:
        """The attribute called with the arguments. Raises `InputError` as `load`, and where it takes others."""
        found = self.load()
        try:
            signature(found).bind(**self.arguments)
        except TypeError as error:
            raise InputError(f"cannot call '{self.target}' with the arguments {[*self.arguments]}: {error}") from error
        except ValueError:  # what is built in may not say what it takes
            pass
        return found(**self.arguments)

    def to_json(self) -> str:
        """One line of JSON, for a node's configuration."""
        return json.dumps({"target": self.target, "arguments": self.arguments}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Reference:
        """Inverse of `to_json`. Raises `InputError` for anything else."""
        with refusing(f"a reference must be JSON with target and arguments, got {text!r:.100}"):
            record = json.loads(text)
            return cls(record["target"], record["arguments"])
