"""The entry `parties.partition`: how rows are dealt to parties, and the numbers of it that are swept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from scenarios.problems import refuse, rule
from scenarios.skew import LEAST, MOST, SKEWS, is_skew

IID, BY = "iid", "by"
_RULE = "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA} or {by: COLUMN}"


def parse(entry: Any) -> str | dict[str, Any]:
    """An entry of a scenario file as `scenarios.partition.cut` takes it.

    A list as the number of a skew becomes a tuple, which is swept. Raises pydantic errors.
    """
    if entry == IID:
        return IID
    if not isinstance(entry, dict) or len(entry) != 1:
        raise rule(_RULE)
    ((kind, value),) = entry.items()
    if kind == BY and isinstance(value, str) and value:
        return {BY: value}
    if kind not in SKEWS:
        raise rule(_RULE)
    values = value if isinstance(value, list) else [value]
    if not values or any(one in values[:i] for i, one in enumerate(values)):
        refuse([((kind,), rule("must be a number or a list of distinct numbers"), value)])
    text = rule(f"must be a number from {LEAST:g} to {MOST:g}")
    wrong = [((kind, i) if values is value else (kind,), text, one) for i, one in enumerate(values) if not is_skew(one)]
    if wrong:
        refuse(wrong)
    return {kind: tuple(map(float, values)) if values is value else float(value)}


def to_plain(partition: str | Mapping[str, Any]) -> str | dict[str, Any]:
    """As in a scenario file."""
    if isinstance(partition, str):
        return partition
    return {kind: list(value) if isinstance(value, tuple) else value for kind, value in partition.items()}


def label(partition: str | Mapping[str, Any]) -> str:
    """One word for a results table: `iid`, `dirichlet=0.5`, `by=subject`."""
    return partition if isinstance(partition, str) else "".join(f"{kind}={value}" for kind, value in partition.items())


def partition_kind(partition: str | Mapping[str, Any]) -> str:
    """`iid`, `dirichlet`, `quantity` or `by`."""
    return partition if isinstance(partition, str) else next(iter(partition))


def swept_skew(partition: str | Mapping[str, Any]) -> tuple[float, ...]:
    """The numbers of a skew that are swept, if any."""
    value = None if isinstance(partition, str) else partition[partition_kind(partition)]
    return value if isinstance(value, tuple) else ()


def _section(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}


_NUMBER = {"type": "number", "minimum": LEAST, "maximum": MOST}
_NUMBERS = {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1, "uniqueItems": True}]}

Partition = Annotated[
    str | Mapping[str, Any],
    PlainValidator(parse),
    PlainSerializer(to_plain),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": IID},
                *(_section(skew, _NUMBERS) for skew in SKEWS),
                _section(BY, {"type": "string", "minLength": 1}),
            ]
        }
    ),
]
