"""The entries `parties.partition` and `parties.bags`: how rows are dealt, and the numbers of it that are swept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from scenarios.settings.problems import refuse, rule
from scenarios.simulated.composition import MAJORITY, PROPORTIONS, are_shares, is_minority
from scenarios.simulated.skew import LEAST, MOST, SKEWS, is_skew

IID, BY = "iid", "by"
_RULE = (
    "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA}, {majority: SHARE}, {proportions: [SHARES, ...]} or "
    "{by: COLUMN}"
)
_SHARES_RULE = "must be a list of bags, each a list of the shares of all classes, which sum to 1"
_BAGS_RULE = "must be a whole number from 1, or {by: COLUMN}"
_NUMBERS = {
    **dict.fromkeys(SKEWS, (is_skew, f"must be a number from {LEAST:g} to {MOST:g}")),
    MAJORITY: (is_minority, "must be a number from 0 to below 0.5, the share of each class but one"),
}


def parse(entry: Any) -> str | dict[str, Any]:
    """An entry of a scenario file as `scenarios.simulated.partition.cut` takes it.

    A list in place of a number becomes a tuple, which is swept. Raises pydantic errors.
    """
    if entry == IID:
        return IID
    if not isinstance(entry, dict) or len(entry) != 1:
        raise rule(_RULE)
    ((kind, value),) = entry.items()
    if kind == BY and isinstance(value, str) and value:
        return {BY: value}
    if kind == PROPORTIONS:
        return {PROPORTIONS: _proportions(value)}
    if kind not in _NUMBERS:
        raise rule(_RULE)
    allowed, text = _NUMBERS[kind]
    values = value if isinstance(value, list) else [value]
    if not values or any(one in values[:i] for i, one in enumerate(values)):
        refuse([((kind,), rule("must be a number or a list of distinct numbers"), value)])
    wrong = [
        ((kind, i) if values is value else (kind,), rule(text), one) for i, one in enumerate(values) if not allowed(one)
    ]
    if wrong:
        refuse(wrong)
    return {kind: tuple(map(float, values)) if values is value else float(value)}


def _proportions(value: Any) -> list[list[float]]:
    if not isinstance(value, list) or not value:
        refuse([((PROPORTIONS,), rule(_SHARES_RULE), value)])
    wrong = [
        ((PROPORTIONS, i), rule("must be the shares of all classes, numbers from 0 that sum to 1"), one)
        for i, one in enumerate(value)
        if not are_shares(one)
    ]
    if wrong:
        refuse(wrong)
    if len({len(shares) for shares in value}) > 1:
        refuse([((PROPORTIONS,), rule("must list equally many shares for every bag"), value)])
    return [[*map(float, shares)] for shares in value]


def parse_bags(entry: Any) -> int | dict[str, str]:
    """The bags of each party as `scenarios.simulated.partition.cut` takes them. Raises pydantic errors."""
    if isinstance(entry, dict) and list(entry) == [BY] and isinstance(entry[BY], str) and entry[BY]:
        return {BY: entry[BY]}
    if isinstance(entry, bool) or not isinstance(entry, int) or not 1 <= entry <= 10**9:
        raise rule(_BAGS_RULE)
    return entry


def to_plain(partition: str | Mapping[str, Any]) -> str | dict[str, Any]:
    """As in a scenario file."""
    if isinstance(partition, str):
        return partition
    return {kind: list(value) if isinstance(value, tuple) else value for kind, value in partition.items()}


def label(partition: str | Mapping[str, Any]) -> str:
    """One word for a results table: `iid`, `dirichlet=0.5`, `by=subject`, `proportions=0.9_0.1-0.2_0.8`."""
    if isinstance(partition, str):
        return partition
    ((kind, value),) = partition.items()
    listed = kind == PROPORTIONS
    text = "-".join("_".join(f"{share:g}" for share in shares) for shares in value) if listed else value
    return f"{kind}={text}"


def bags_label(bags: int | Mapping[str, str]) -> int | str:
    """A cell of a results table: the number of bags, or `by=ward`."""
    return bags if isinstance(bags, int) else label(bags)


def partition_kind(partition: str | Mapping[str, Any]) -> str:
    """`iid`, `dirichlet`, `quantity`, `majority`, `proportions` or `by`."""
    return partition if isinstance(partition, str) else next(iter(partition))


def swept_skew(partition: str | Mapping[str, Any]) -> tuple[float, ...]:
    """The numbers of a partition that are swept, if any."""
    value = None if isinstance(partition, str) else partition[partition_kind(partition)]
    return value if isinstance(value, tuple) else ()


def _section(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}


def _one_or_many(number: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [number, {"type": "array", "items": number, "minItems": 1, "uniqueItems": True}]}


_SKEW = {"type": "number", "minimum": LEAST, "maximum": MOST}
_MINORITY = {"type": "number", "minimum": 0, "exclusiveMaximum": 0.5}
_SHARES = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 2}
_BY_COLUMN = _section(BY, {"type": "string", "minLength": 1})

Partition = Annotated[
    str | Mapping[str, Any],
    PlainValidator(parse),
    PlainSerializer(to_plain),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": IID},
                *(_section(skew, _one_or_many(_SKEW)) for skew in SKEWS),
                _section(MAJORITY, _one_or_many(_MINORITY)),
                _section(PROPORTIONS, {"type": "array", "items": _SHARES, "minItems": 1}),
                _BY_COLUMN,
            ]
        }
    ),
]
Bags = Annotated[
    int | Mapping[str, str],
    PlainValidator(parse_bags),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _BY_COLUMN]}),
]
