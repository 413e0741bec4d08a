"""Settings of the parties: `parties.classifier`, and how rows are divided among public rows, parties, bags and periods.

The classifier is regularised logistic regression, a scikit-learn classifier by name, or a mixture. Rows are divided by
`data.auxiliary`, `parties.partition`, `parties.bags` and `trials.periods`.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    with_config,
)
from typing_extensions import TypedDict

from federation.contract.errors import InputError
from scenarios.data.sheets import moment
from scenarios.settings.problems import ONE, checked, refusal, refuse, rule, shown
from scenarios.settings.values import (
    ONE_KEY,
    Count,
    Name,
    Positive,
    Section,
    Share,
    Sweep,
    Told,
    list_of,
    read_as,
    word_or_number,
)
from scenarios.settings.words import LEAST, MOST, MOST_PERIODS, PROPORTIONS, Span, sum_to_one

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


def _of_a_whole(shares: list[float]) -> list[float]:
    if not sum_to_one(shares):
        raise ValueError
    return shares


def _equally_long(proportions: list[list[float]]) -> list[list[float]]:
    if len({len(shares) for shares in proportions}) > 1:
        raise rule("must list equally many shares for every bag")
    return proportions


_Skew = Annotated[
    float, Field(strict=True, ge=LEAST, le=MOST), Told(f"must be a number from {LEAST:g} to {MOST:g}"), Sweep()
]
_Minority = Annotated[
    float,
    Field(strict=True, ge=0, lt=0.5),
    Told("must be a number from 0 to below 0.5, the share of each class but one"),
    Sweep(),
]
_Shares = Annotated[
    list[Annotated[float, Field(strict=True, ge=0, le=1)]],
    Field(min_length=2),
    AfterValidator(_of_a_whole),
    Told("must be the shares of all classes, numbers from 0 that sum to 1"),
]


@with_config(ONE_KEY)
class _Dealt(TypedDict, total=False):
    """A way to deal rows, and its number, numbers or column."""

    by: Name
    dirichlet: _Skew
    quantity: _Skew
    majority: _Minority
    proportions: Annotated[
        list[_Shares],
        Field(min_length=1),
        list_of(1, "must be a list of bags, each a list of the shares of all classes, which sum to 1"),
        AfterValidator(_equally_long),
    ]


@with_config(ConfigDict(extra="forbid"))
class _ByColumn(TypedDict):
    by: Name


Partition = Annotated[
    str | Mapping[str, Any],
    word_or_number(
        Literal["iid"],
        _Dealt,
        "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA}, {majority: SHARE}, {proportions: [SHARES, ...]} or "
        "{by: COLUMN}",
    ),
]
Bags = Annotated[
    int | Mapping[str, str], read_as(Count | _ByColumn), Told("must be a whole number from 1, or {by: COLUMN}")
]

_Probability = Annotated[float, Field(strict=True, gt=0, lt=1)]
_Inclined = TypedDict("_Inclined", {"by": Name, "from": _Probability, "to": _Probability})


def _inclined(entry: _Inclined) -> _Inclined:
    if entry["from"] == entry["to"]:
        raise ValueError
    return entry


Auxiliary = Annotated[
    int | float | str | Mapping[str, Any],
    read_as(
        Share
        | Literal["official"]
        | Annotated[str, Field(strict=True, pattern=r"\.(csv|npz|parquet|svm|svmlight|CSV|NPZ|PARQUET)$")]
        | Annotated[with_config(extra="forbid")(_Inclined), AfterValidator(_inclined)]
    ),
    Told(
        "must be a count of rows (a whole number from 1) or a fraction between 0 and 1, official, a csv, npz, "
        "Parquet or svmlight file, or {by: COLUMN, from: PROBABILITY, to: PROBABILITY} with two different ones "
        "strictly between 0 and 1"
    ),
]


@with_config(ConfigDict(extra="forbid"))
class _Every(TypedDict):
    every: Span | Positive


def _rising(starts: tuple[float | str, ...]) -> tuple[float | str, ...]:
    found = [moment(str(start)) for start in starts]
    if len({dated for _, dated in found}) > 1 or not all(a < b for (a, _), (b, _) in pairwise(found)):
        raise ValueError
    return starts


_NumberOfPeriods = Annotated[int, Field(strict=True, ge=2, le=MOST_PERIODS)]
_Start = Annotated[float, Field(strict=True, allow_inf_nan=False)] | Name
_Starts = Annotated[tuple[_Start, ...], Field(min_length=2, max_length=MOST_PERIODS), AfterValidator(_rising)]
Periods = Annotated[
    int | tuple[float | str, ...] | Mapping[str, Any],
    read_as(_NumberOfPeriods | _Starts | _Every),
    Told(
        f"must be a number of periods of equal length from 2 to {MOST_PERIODS}, their starts in rising order, two or "
        "more numbers or ISO dates (2023-02-03, months 2023-02, weeks 2023-W07), or {every: SPAN} with day, week, "
        "month, quarter, year or a positive number"
    ),
]


def partition_kind(partition: str | Mapping[str, Any]) -> str:
    """`iid`, `dirichlet`, `quantity`, `majority`, `proportions` or `by`.

    Examples:
        >>> partition_kind({"dirichlet": 0.5})
        'dirichlet'
    """
    return partition if isinstance(partition, str) else next(iter(partition))


def swept_number(partition: str | Mapping[str, Any]) -> bool:
    """Whether a partition has a list of numbers, one after the other."""
    return isinstance(partition, Mapping) and isinstance(partition[partition_kind(partition)], tuple)


def division_label(entry: int | float | str | Mapping[str, Any]) -> int | float | str:
    """An entry as one cell of a results table: a number or word itself, else its key and value.

    Examples:
        >>> division_label({"dirichlet": 0.5}), division_label({"proportions": [[0.9, 0.1], [0.2, 0.8]]})
        ('dirichlet=0.5', 'proportions=0.9_0.1-0.2_0.8')
        >>> division_label({"by": "age", "from": 0.1, "to": 0.9}), division_label(40)
        ('by=age_0.1_0.9', 40)
    """
    if not isinstance(entry, Mapping):
        return entry
    (kind, value), *ends = entry.items()
    if kind == PROPORTIONS:
        value = "-".join("_".join(f"{share:g}" for share in shares) for shares in value)
    return "_".join([f"{kind}={value}", *(f"{end:g}" for _, end in ends)])
