"""The entry `parties.classifier`: regularised logistic regression, a scikit-learn classifier by name, or a mixture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from federation.contract.errors import InputError
from scenarios.settings.problems import problems, refusal, refuse, rule, unknown_key

LOGISTIC = "logistic"
REGULARISATION = "regularisation"
MIXTURE, MEMBERS, WEIGHTS, WEIGHT = "mixture", "members", "weights", "weight"
_DEFAULT_REGULARISATION = 1e-4


def parse(entry: Any) -> dict[str, Any]:
    """`{"name": str, "parameters": dict}` from a name, `{name: {parameter: value}}` or `{mixture: [...]}`.

    A list as the logistic regularisation becomes a tuple, which is swept. A mixture's parameters are `members`, each
    such a classifier, and `weights`, one number for each. Raises pydantic errors.
    """
    if isinstance(entry, dict) and list(entry) == [MIXTURE]:
        return {"name": MIXTURE, "parameters": _mixture(entry[MIXTURE])}
    if isinstance(entry, str):
        entry = {entry: {}}
    if not isinstance(entry, dict) or len(entry) != 1:
        raise rule("must be a name or a section such as {logistic: {regularisation: 1.0e-4}}")
    ((name, parameters),) = entry.items()
    if name == MIXTURE:
        raise rule("must be a mixture of classifiers such as {mixture: [logistic, GaussianNB]}")
    if not isinstance(parameters, dict):
        refuse([((name,), rule("must be a section of parameters such as {}"), parameters)])
    if name == LOGISTIC:
        return {"name": name, "parameters": _logistic(parameters)}
    # Imported here because listing what scikit-learn offers takes seconds.
    from parties.training.classifiers import check_classifier

    classifier = {"name": name, "parameters": parameters}
    try:
        check_classifier(classifier)
    except InputError as error:
        raise refusal(str(error)) from None
    return classifier


def to_plain(classifier: Mapping[str, Any]) -> dict[str, Any]:
    """As in a scenario file: `{name: {parameter: value}}`; a weight of 1 is not written."""
    parameters = classifier["parameters"]
    if classifier["name"] == MIXTURE:
        return {
            MIXTURE: [
                {**to_plain(member), **({} if weight == 1 else {WEIGHT: weight})}
                for member, weight in zip(parameters[MEMBERS], parameters[WEIGHTS], strict=True)
            ]
        }
    return {classifier["name"]: {k: list(v) if isinstance(v, tuple) else v for k, v in parameters.items()}}


def label(classifier: Mapping[str, Any]) -> str:
    """One line for a results table: `KNeighborsClassifier(n_neighbors=3)`, `mixture(2 logistic(...), 1 ...)`."""
    parameters = classifier["parameters"]
    if classifier["name"] == MIXTURE:
        members = zip(parameters[WEIGHTS], map(label, parameters[MEMBERS]), strict=True)
        return f"{MIXTURE}({', '.join(f'{weight:g} {member}' for weight, member in members)})"
    return f"{classifier['name']}({', '.join(f'{k}={v}' for k, v in parameters.items())})"


def single_classifiers(classifier: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The classifier once for each of its swept regularisations."""
    swept = swept_regularisations(classifier)
    return [{"name": LOGISTIC, "parameters": {REGULARISATION: value}} for value in swept] or [classifier]


def swept_regularisations(classifier: Mapping[str, Any]) -> tuple[float, ...]:
    """The logistic regularisations that are swept, if any."""
    value = classifier["parameters"].get(REGULARISATION) if classifier["name"] == LOGISTIC else None
    return value if isinstance(value, tuple) else ()


def leading(classifier: Mapping[str, Any]) -> Mapping[str, Any]:
    """The classifier itself; of a mixture, the member with the greatest weight, the first of several."""
    if classifier["name"] != MIXTURE:
        return classifier
    weights = classifier["parameters"][WEIGHTS]
    member: Mapping[str, Any] = classifier["parameters"][MEMBERS][weights.index(max(weights))]
    return member


def _mixture(entries: Any) -> dict[str, Any]:
    if not isinstance(entries, list) or len(entries) < 2:
        refuse([((MIXTURE,), rule("must be a list of two or more classifiers"), entries)])
    errors: list[tuple[Any, Any, Any]] = []
    members, weights = [], []
    for i, entry in enumerate(entries):
        at = (MIXTURE, i)
        weight = 1.0
        if isinstance(entry, dict) and WEIGHT in entry:
            entry = dict(entry)
            weight = entry.pop(WEIGHT)
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                errors.append(((*at, WEIGHT), rule("must be a finite number greater than 0"), weight))
        try:
            member = parse(entry)
        except ValidationError as error:
            errors += [((*at, *path), refusal(text), entry) for path, text in problems(error)]
            continue
        except PydanticCustomError as error:
            errors.append((at, error, entry))
            continue
        if member["name"] == MIXTURE:
            errors.append((at, refusal("a mixture cannot be a member of a mixture; list its members here"), entry))
        elif swept_regularisations(member):
            text = "inside a mixture the regularisation must be one number"
            errors.append(((*at, LOGISTIC, REGULARISATION), refusal(text), entry))
        members.append(member)
        weights.append(weight)
    if errors:
        refuse(errors)
    return {MEMBERS: members, WEIGHTS: list(map(float, weights))}


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
    "properties": {LOGISTIC: _LOGISTIC_SCHEMA, MIXTURE: False},
    "additionalProperties": {"type": "object"},
    "minProperties": 1,
    "maxProperties": 1,
}
_MEMBER_SCHEMA = {
    "type": "object",
    "properties": {
        LOGISTIC: {**_LOGISTIC_SCHEMA, "properties": {REGULARISATION: _POSITIVE}},
        MIXTURE: False,
        WEIGHT: {**_POSITIVE, "default": 1},
    },
    "additionalProperties": {"type": "object"},
    "minProperties": 1,
    "maxProperties": 2,
}
_MIXTURE_SCHEMA = {
    "type": "object",
    "properties": {
        MIXTURE: {
            "description": "Classifiers, each with its weight (1 if omitted): a party trains one of them, drawn at "
            "random in proportion to the weights.",
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, _MEMBER_SCHEMA]},
            "minItems": 2,
        }
    },
    "required": [MIXTURE],
    "additionalProperties": False,
}

Classifier = Annotated[
    Mapping[str, Any],
    PlainValidator(parse),
    PlainSerializer(to_plain),
    WithJsonSchema({"anyOf": [{"type": "string"}, _SECTION_SCHEMA, _MIXTURE_SCHEMA]}),
]
