"""The entry `parties.classifier`: regularised logistic regression, a scikit-learn classifier by name, or a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from federation.contract.errors import InputError
from scenarios.settings.problems import ONE, checked, refusal, refuse, rule, shown
from scenarios.settings.values import Positive, Section, Sweep, Told, list_of

LOGISTIC = "logistic"
REGULARISATION = "regularisation"
MIXTURE, MEMBERS, WEIGHTS, WEIGHT = "mixture", "members", "weights", "weight"
_Number = Annotated[Positive, Told("must be a finite number greater than 0")]


class _Parameters(Section):
    regularisation: Annotated[_Number, Sweep()] = 1e-4


class _Logistic(Section):
    logistic: _Parameters


def parse(entry: Any) -> dict[str, Any]:
    """`{"name": str, "parameters": dict}` from a name, `{name: {parameter: value}}` or `{mixture: [...]}`.

    A list as the logistic regularisation becomes a tuple, which is swept. A mixture's parameters are `members`, each
    such a classifier, and `weights`, one number for each. Raises pydantic errors.

    Examples:
        >>> parse("logistic")
        {'name': 'logistic', 'parameters': {'regularisation': 0.0001}}
        >>> label(parse({"mixture": ["logistic", {"GaussianNB": {}, "weight": 2}]}))
        'mixture(1 logistic(regularisation=0.0001), 2 GaussianNB())'
    """
    if isinstance(entry, dict) and list(entry) == [MIXTURE]:
        mixed = checked(_Mixture, entry).mixture
        return {
            "name": MIXTURE,
            "parameters": {MEMBERS: [one.classifier for one in mixed], WEIGHTS: [one.weight for one in mixed]},
        }
    if isinstance(entry, str):
        entry = {entry: {}}
    if not isinstance(entry, dict) or len(entry) != 1:
        raise rule("must be a name or a section such as {logistic: {regularisation: 1.0e-4}}")
    ((name, parameters),) = entry.items()
    if name == MIXTURE:
        raise rule("must be a mixture of classifiers such as {mixture: [logistic, GaussianNB]}")
    if not isinstance(parameters, dict):
        refuse([((name,), f"must be a section of parameters such as {{}}, got {shown(parameters)}")])
    if name == LOGISTIC:
        return {"name": name, "parameters": checked(_Logistic, entry).logistic.model_dump()}
    # Imported here because listing what scikit-learn offers takes seconds.
    from parties.training.classifiers import check_classifier

    classifier = {"name": name, "parameters": parameters}
    try:
        check_classifier(classifier)
    except InputError as error:
        raise refusal(str(error)) from None
    return classifier


def _member(entry: Any) -> Any:
    """A member of a mixture as `_Member` takes it: its weight beside the classifier."""
    if not isinstance(entry, dict) or WEIGHT not in entry:
        return {ONE: entry}
    return {WEIGHT: entry[WEIGHT], ONE: {key: value for key, value in entry.items() if key != WEIGHT}}


def _alone(entry: Any) -> dict[str, Any]:
    classifier = parse(entry)
    if classifier["name"] == MIXTURE:
        raise refusal("a mixture cannot be a member of a mixture; list its members here")
    if swept_regularisations(classifier):
        refuse([((LOGISTIC, REGULARISATION), "inside a mixture the regularisation must be one number")])
    return classifier


class _Member(Section):
    weight: _Number = 1.0
    classifier: Annotated[dict[str, Any], PlainValidator(_alone)] = Field(
        alias="<one>"
    )  # a tag: in the same section of a file


class _Mixture(Section):
    mixture: Annotated[
        list[Annotated[_Member, BeforeValidator(_member)]], list_of(2, "must be a list of two or more classifiers")
    ]


def to_plain(classifier: Mapping[str, Any]) -> dict[str, Any]:
    """As in a scenario file: `{name: {parameter: value}}`; a weight of 1 is not written.

    Examples:
        >>> to_plain(parse({"mixture": ["GaussianNB", {"KNeighborsClassifier": {"n_neighbors": 1}, "weight": 2}]}))
        {'mixture': [{'GaussianNB': {}}, {'KNeighborsClassifier': {'n_neighbors': 1}, 'weight': 2.0}]}
    """
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
    """The classifier once for each of its swept regularisations.

    Examples:
        >>> [label(one) for one in single_classifiers(parse({"logistic": {"regularisation": [1, 0.1]}}))]
        ['logistic(regularisation=1.0)', 'logistic(regularisation=0.1)']
    """
    swept = swept_regularisations(classifier)
    return [{"name": LOGISTIC, "parameters": {REGULARISATION: value}} for value in swept] or [classifier]


def swept_regularisations(classifier: Mapping[str, Any]) -> tuple[float, ...]:
    """The logistic regularisations that are swept, if any."""
    value = classifier["parameters"].get(REGULARISATION) if classifier["name"] == LOGISTIC else None
    return value if isinstance(value, tuple) else ()


def leading(classifier: Mapping[str, Any]) -> Mapping[str, Any]:
    """The classifier itself; of a mixture, the member with the greatest weight, the first of several.

    Examples:
        >>> label(leading(parse({"mixture": ["logistic", {"GaussianNB": {}, "weight": 2}]})))
        'GaussianNB()'
    """
    if classifier["name"] != MIXTURE:
        return classifier
    weights = classifier["parameters"][WEIGHTS]
    member: Mapping[str, Any] = classifier["parameters"][MEMBERS][weights.index(max(weights))]
    return member


def _section(most: int, **known: Any) -> dict[str, Any]:
    """JSON Schema of a classifier's name and parameters, with what is known of some keys; at most so many keys."""
    section = {"type": "object"}
    return {**section, "properties": known, "additionalProperties": section, "minProperties": 1, "maxProperties": most}


_LOGISTIC = _Parameters.model_json_schema()
_MEMBER = _section(2, logistic=_LOGISTIC, mixture=False, weight={"type": "number", "exclusiveMinimum": 0, "default": 1})
_MIXTURE = {
    "description": "Classifiers, each with its weight (1 if omitted): a party trains one of them, drawn at random in "
    "proportion to the weights.",
    "type": "array",
    "items": {"anyOf": [{"type": "string"}, _MEMBER]},
    "minItems": 2,
}
Classifier = Annotated[
    Mapping[str, Any],
    PlainValidator(parse),
    PlainSerializer(to_plain),
    WithJsonSchema({"anyOf": [{"type": "string"}, _section(1, logistic=_LOGISTIC, mixture=_MIXTURE)]}),
]
