"""The entry `data.auxiliary`: a share of the rows, the data set's own public rows, or rows chosen along a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from scenarios.settings.problems import rule
from scenarios.settings.values import SHARE_SCHEMA, is_share
from scenarios.simulated.public_rows import BY, FROM, OFFICIAL, TO, is_inclined

_RULE = (
    "must be a count of rows (a whole number from 1) or a fraction between 0 and 1, official, or {by: COLUMN, from: "
    "PROBABILITY, to: PROBABILITY} with two different ones strictly between 0 and 1"
)


def parse(entry: Any) -> int | float | str | dict[str, Any]:
    """An entry of a scenario file as `scenarios.simulated.partition.cut` takes it. Raises pydantic errors."""
    if is_inclined(entry):
        return {BY: entry[BY], FROM: float(entry[FROM]), TO: float(entry[TO])}
    if entry != OFFICIAL and not is_share(entry):
        raise rule(_RULE)
    kept: int | float | str = entry
    return kept


def label(auxiliary: int | float | str | Mapping[str, Any]) -> int | float | str:
    """A cell of a results table: the share, `official` or `by=LB_0.1_0.9`."""
    if isinstance(auxiliary, Mapping):
        return f"{BY}={auxiliary[BY]}_{auxiliary[FROM]:g}_{auxiliary[TO]:g}"
    return auxiliary


_PROBABILITY = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_INCLINED = {
    "type": "object",
    "properties": {BY: {"type": "string", "minLength": 1}, FROM: _PROBABILITY, TO: _PROBABILITY},
    "required": [BY, FROM, TO],
    "additionalProperties": False,
}
Auxiliary = Annotated[
    int | float | str | Mapping[str, Any],
    PlainValidator(parse),
    WithJsonSchema({"anyOf": [*SHARE_SCHEMA, {"const": OFFICIAL}, _INCLINED]}),
]
