"""The entry `parties.classifier`: regularised logistic regression, or a scikit-learn classifier by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from federation.errors import InputError
from scenarios.problems import refusal, refuse, rule, unknown_key

LOGISTIC = "logistic"
REGULARISATION = "regularisation"
_DEFAULT_REGULARISATION = 1e-4


@dataclass(frozen=True)
class Classifier:
    """What each party trains. Only the logistic regularisation may hold a tuple of values, which are swept."""

    name: str
    parameters: Mapping[str, Any]

    @property
    def swept(self) -> tuple[float, ...]:
        """The regularisations that are swept, if any."""
        value = self.parameters.get(REGULARISATION)
        return value if self.name == LOGISTIC and isinstance(value, tuple) else ()

    def __str__(self) -> str:
        """One line for a results table: `KNeighborsClassifier(n_neighbors=3)`."""
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.parameters.items())})"

    def to_plain(self) -> dict[str, Any]:
        """As in a scenario file: `{name: {parameter: value}}`."""
        lists = {k: list(v) if isinstance(v, tuple) else v for k, v in self.parameters.items()}
        return {self.name: lists}

    @classmethod
    def parse(cls, entry: Any) -> Classifier:
        """Check an entry of a scenario file: a name, or `{name: {parameter: value}}`. Raises pydantic errors."""
        if isinstance(entry, str):
            entry = {entry: {}}
        if not isinstance(entry, dict) or len(entry) != 1:
            raise rule("must be a name or a section such as {logistic: {regularisation: 1.0e-4}}")
        ((name, parameters),) = entry.items()
        if not isinstance(parameters, dict):
            refuse([((name,), rule("must be a section of parameters such as {}"), parameters)])
        if name == LOGISTIC:
            return cls(name, _logistic(parameters))
        # Imported here because listing what scikit-learn offers takes seconds.
        from parties.classifiers import check_classifier

        try:
            check_classifier({"name": name, "parameters": parameters})
        except InputError as error:
            raise refusal(str(error)) from None
        return cls(name, parameters)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(cls.to_plain)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        number = {"type": "number", "exclusiveMinimum": 0}
        regularisation = {"anyOf": [number, {"type": "array", "items": number, "minItems": 1}]}
        logistic = {
            "type": "object",
            "properties": {REGULARISATION: regularisation | {"default": _DEFAULT_REGULARISATION}},
            "additionalProperties": False,
        }
        section = {
            "type": "object",
            "properties": {LOGISTIC: logistic},
            "additionalProperties": {"type": "object"},
            "minProperties": 1,
            "maxProperties": 1,
        }
        return {"anyOf": [{"type": "string"}, section]}


def _logistic(parameters: Mapping[str, Any]) -> dict[str, Any]:
    errors = [
        ((LOGISTIC, name), refusal(unknown_key(name, [REGULARISATION])), value)
        for name, value in parameters.items()
        if name != REGULARISATION
    ]
    given = parameters.get(REGULARISATION, _DEFAULT_REGULARISATION)
    values = given if isinstance(given, list) else [given]
    if not values or len(set(map(str, values))) < len(values):
        errors.append(((LOGISTIC, REGULARISATION), rule("must be a number or a list of distinct numbers"), given))
    errors += [
        ((LOGISTIC, REGULARISATION), rule("must be a finite number greater than 0"), value)
        for value in values
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
    ]
    if errors:
        refuse(errors)
    return {REGULARISATION: tuple(map(float, values)) if isinstance(given, list) else float(given)}
