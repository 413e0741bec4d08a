"""The entry `parties.classifier`: regularised logistic regression, or a scikit-learn classifier by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from federation.errors import InputError
from scenarios.problems import refusal, refuse, rule, unknown_key

LOGISTIC = "logistic"
REGULARISATION = "regularisation"
_DEFAULT_REGULARISATION = 1e-4


def parse(entry: Any) -> dict[str, Any]:
    """`{"name": str, "parameters": dict}` from a name or `{name: {parameter: value}}`.

    A list as the logistic regularisation becomes a tuple, which is swept. Raises pydantic errors.
    """
    if isinstance(entry, str):
        entry = {entry: {}}
    if not isinstance(entry, dict) or len(entry) != 1:
        raise rule("must be a name or a section such as {logistic: {regularisation: 1.0e-4}}")
    ((name, parameters),) = entry.items()
    if not isinstance(parameters, dict):
        refuse([((name,), rule("must be a section of parameters such as {}"), parameters)])
    if name == LOGISTIC:
        return {"name": name, "parameters": _logistic(parameters)}
    # Imported here because listing what scikit-learn offers takes seconds.
    from parties.classifiers import check_classifier

    classifier = {"name": name, "parameters": parameters}
    try:
        check_classifier(classifier)
    except InputError as error:
        raise refusal(str(error)) from None
    return classifier


def to_plain(classifier: Mapping[str, Any]) -> dict[str, Any]:
    """As in a scenario file: `{name: {parameter: value}}`."""
    parameters = {k: list(v) if isinstance(v, tuple) else v for k, v in classifier["parameters"].items()}
    return {classifier["name"]: parameters}


def label(classifier: Mapping[str, Any]) -> str:
    """One line for a results table: `KNeighborsClassifier(n_neighbors=3)`."""
    return f"{classifier['name']}({', '.join(f'{k}={v}' for k, v in classifier['parameters'].items())})"


def swept_regularisations(classifier: Mapping[str, Any]) -> tuple[float, ...]:
    """The logistic regularisations that are swept, if any."""
    value = classifier["parameters"].get(REGULARISATION) if classifier["name"] == LOGISTIC else None
    return value if isinstance(value, tuple) else ()


def _logistic(parameters: Mapping[str, Any]) -> dict[str, Any]:
    at = (LOGISTIC, REGULARISATION)
    errors: list[tuple[Any, Any, Any]] = [
        ((LOGISTIC, name), refusal(unknown_key(name, [REGULARISATION])), value)
        for name, value in parameters.items()
        if name != REGULARISATION
    ]
    given = parameters.get(REGULARISATION, _DEFAULT_REGULARISATION)
    values = given if isinstance(given, list) else [given]
    if not values or any(value in values[:i] for i, value in enumerate(values)):
        errors.append((at, rule("must be a number or a list of distinct numbers"), given))
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            place = (*at, i) if values is given else at
            errors.append((place, rule("must be a finite number greater than 0"), value))
    if errors:
        refuse(errors)
    return {REGULARISATION: tuple(map(float, values)) if values is given else float(given)}


_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
_LOGISTIC_SCHEMA = {
    "type": "object",
    "properties": {
        REGULARISATION: {
            "anyOf": [_POSITIVE, {"type": "array", "items": _POSITIVE, "minItems": 1}],
            "default": _DEFAULT_REGULARISATION,
        }
    },
    "additionalProperties": False,
}
_SECTION_SCHEMA = {
    "type": "object",
    "properties": {LOGISTIC: _LOGISTIC_SCHEMA},
    "additionalProperties": {"type": "object"},
    "minProperties": 1,
    "maxProperties": 1,
}

Classifier = Annotated[
    Mapping[str, Any],
    PlainValidator(parse),
    PlainSerializer(to_plain),
    WithJsonSchema({"anyOf": [{"type": "string"}, _SECTION_SCHEMA]}),
]
