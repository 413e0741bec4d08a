"""Values of scenario files that plain types do not cover: swept scalars, shares of rows, feature stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import (
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from federation.contract.limits import MOST_FEATURES
from scenarios.settings.problems import MANY, ONE, rule

_BARE_STAGES = ("scale", "standardise", "signed_log", "constant", "unit_norm", "max_norm")
_SIZED_STAGES = ("pca", "whiten", "fourier")
_DEGREES = (2, 3)
AUTO = {"whiten": "auto"}


def _form(value: Any) -> str:
    return MANY if isinstance(value, list | tuple) else ONE


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise rule("must not be empty")
    if any(value in values[:i] for i, value in enumerate(values)):
        raise rule("must not list a value twice")
    return values


def _list_of(item: CoreSchema) -> CoreSchema:
    return core_schema.no_info_after_validator_function(_distinct, core_schema.tuple_variable_schema(item))


def _one_or_many_json(schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    item = handler(cast(core_schema.TaggedUnionSchema, schema)["choices"][ONE])
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}]}


class Sweep:
    """Marks a scalar that may be swept: a list of distinct values, kept as a tuple until `sweep.expand`.

    Type checkers see the scalar, which is what everything after the expansion works with.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        item = handler(source)
        return core_schema.tagged_union_schema({ONE: item, MANY: _list_of(item)}, discriminator=_form)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return _one_or_many_json(schema, handler)


def all_values(value: Any) -> tuple[Any, ...]:
    """All values of a scalar that may be swept."""
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True)
class OneOrMore:
    """Marks a tuple that may be written as a single `item`; its values are distinct and at least one."""

    item: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        item = handler.generate_schema(self.item)
        one = core_schema.no_info_after_validator_function(lambda value: (value,), item)
        return core_schema.tagged_union_schema({ONE: one, MANY: _list_of(item)}, discriminator=_form)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return _one_or_many_json(schema, handler)


def is_share(value: Any) -> bool:
    """Whether a value is a count of rows from 1 or a fraction between 0 and 1."""
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return whole or (isinstance(value, float) and 0 < value < 1)


def _test_share(value: Any) -> str | int | float:
    if value != "official" and not is_share(value):
        raise rule("must be official, a count of rows (a whole number from 1) or a fraction between 0 and 1")
    return value


def _stage(value: Any) -> str | dict[str, Any]:
    if isinstance(value, str) and value in _BARE_STAGES:
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((name, size),) = value.items()
        if value == AUTO:
            return value
        if name in _SIZED_STAGES and isinstance(size, int) and not isinstance(size, bool) and size >= 1:
            if size > MOST_FEATURES:
                raise rule(f"must have at most {MOST_FEATURES} features")
            if name == "fourier" and size % 2:
                raise rule("must have an even number of features, {fourier: EVEN}: a cosine and a sine each")
            return value
        if name == "polynomial" and size in _DEGREES and not isinstance(size, float):
            return value
    sized = ", ".join(f"{{{name}: DIMENSIONS}}" for name in _SIZED_STAGES)
    degrees = " or ".join(f"{{polynomial: {degree}}}" for degree in _DEGREES)
    raise rule(f"must be one of {', '.join(_BARE_STAGES)}, {sized}, {{whiten: auto}}, {degrees}")


def _class_name(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise rule("must be a class name (text or a whole number)")
    return str(value)


def _automatic(value: Any) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise rule("must be auto or a whole number from 1")
    return value


SHARE_SCHEMA: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
]
_SIZE_SCHEMA = {"type": "integer", "minimum": 1, "maximum": MOST_FEATURES}
_EVEN_SCHEMA = {"type": "integer", "minimum": 2, "maximum": MOST_FEATURES, "multipleOf": 2}
_STAGE_SCHEMA: list[dict[str, Any]] = [
    {"enum": list(_BARE_STAGES)},
    *(
        {"type": "object", "properties": {name: size}, "required": [name], "additionalProperties": False}
        for name, size in (
            *((name, _EVEN_SCHEMA if name == "fourier" else _SIZE_SCHEMA) for name in _SIZED_STAGES),
            ("whiten", {"const": AUTO["whiten"]}),
            ("polynomial", {"enum": list(_DEGREES)}),
        )
    ),
]

TestShare = Annotated[
    str | int | float,
    PlainValidator(_test_share),
    WithJsonSchema({"anyOf": [{"const": "official"}, *SHARE_SCHEMA]}),
]
Stage = Annotated[str | Mapping[str, Any], PlainValidator(_stage), WithJsonSchema({"anyOf": _STAGE_SCHEMA})]
ClassName = Annotated[str, PlainValidator(_class_name), WithJsonSchema({"type": ["string", "integer"], "minLength": 1})]

# `auto` in a file, None here.
AutoCount = Annotated[
    int | None,
    PlainValidator(_automatic),
    PlainSerializer(lambda value: "auto" if value is None else value),
    WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1}]}),
]
