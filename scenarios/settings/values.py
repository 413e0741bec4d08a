"""Values of scenario files that plain types do not cover: sections, swept scalars, shares of rows, feature stages."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Required, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    PlainSerializer,
    Tag,
    model_validator,
    with_config,
)
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from federation.contract.query import MOST_FEATURES, MOST_ROWS
from scenarios.data.hashing import MOST_BITS, MOST_WORDS
from scenarios.settings.loader import KeyPath
from scenarios.settings.problems import MANY, ONE, refuse, rule


def _file_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", text):
        raise rule("must consist of letters, digits, '-', '_' and '.', the first of them no '.'")
    return text


Whole = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[Whole, Field(le=MOST_ROWS)]
Name = Annotated[str, Field(strict=True, min_length=1)]
FileName = Annotated[Name, AfterValidator(_file_name)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


ONE_KEY = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1, "maxProperties": 1})


class Section(BaseModel):
    """Part of a scenario: immutable, no unknown keys; the text below a field is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def clashes(self) -> Iterable[tuple[KeyPath, str]]:
        """(key path, sentence) of values that are right by themselves, but not beside each other."""
        return ()

    @model_validator(mode="after")
    def _without_clashes(self) -> Self:
        if found := list(self.clashes()):
            refuse(found)
        return self


def all_values(value: Any) -> tuple[Any, ...]:
    """All values of a scalar that may be swept.

    Examples:
        >>> all_values(3), all_values((3, 4))
        ((3,), (3, 4))
    """
    return value if isinstance(value, tuple) else (value,)


def _form(value: Any) -> str:
    return MANY if isinstance(value, list | tuple) else ONE


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise rule("must not be empty")
    if any(value in values[:i] for i, value in enumerate(values)):
        raise rule("must not list a value twice")
    return values


class Sweep:
    """Marks a scalar that may be swept: a list of distinct values, kept as a tuple until `sweep.expand`.

    Type checkers see the scalar, which is what everything after the expansion works with.

    Examples:
        >>> from pydantic import TypeAdapter
        >>> rows = TypeAdapter(Annotated[int, Sweep()])
        >>> rows.validate_python(5), rows.validate_python([5, 10])
        (5, (5, 10))
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        item = handler(source)
        listed = core_schema.no_info_after_validator_function(_distinct, core_schema.tuple_variable_schema(item))
        return core_schema.tagged_union_schema({ONE: item, MANY: listed}, discriminator=_form)

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        item = handler(schema["choices"][ONE])
        return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}]}


def swept_keys(section: type[BaseModel]) -> list[str]:
    """The keys of a section that may hold a tuple of values, in order."""
    fields = section.model_fields.items()
    return [key for key, field in fields if any(isinstance(mark, Sweep) for mark in field.metadata)]


@dataclass(frozen=True)
class Told:
    """Marks a type of which every mistake is told by the same sentence, which says what is allowed."""

    sentence: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source),
            custom_error_type="rule",
            custom_error_message="{text}",
            custom_error_context={"text": self.sentence},
        )


def read_as(form: Any) -> GetPydanticSchema:
    """What a file may say, beside the type that type checkers see."""
    return GetPydanticSchema(lambda _, handler: handler.generate_schema(form))


def word_or_number(words: Any, numbered: Any, sentence: str) -> Any:
    """One of the literal `words`, or a mapping with a single key of the TypedDict `numbered`, as in {dirichlet: 0.5}.

    What is neither is refused by the sentence; what is wrong with a key's value is told of the value.
    """

    def form(entry: Any) -> str | None:
        if isinstance(entry, dict):
            return MANY if len(entry) == 1 and entry.keys() <= numbered.__annotations__.keys() else None
        return ONE if isinstance(entry, str) and entry in get_args(words) else None

    told = Discriminator(form, "rule", "{text}", {"text": sentence})
    return read_as(Annotated[Annotated[words, Tag(ONE)] | Annotated[numbered, Tag(MANY)], told])


def list_of(least: int, sentence: str) -> BeforeValidator:
    """Refuses, by a sentence, what is no list of at least so many items; these have mistakes of their own."""

    def checked(value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) < least:
            raise rule(sentence)
        return value

    return BeforeValidator(checked)


def all_distinct(least: int, sentence: str) -> AfterValidator:
    """Refuses, by a sentence, fewer than `least` values or one that is listed twice."""

    def checked(values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(values) < least or len(set(values)) < len(values):
            raise rule(sentence)
        return values

    return AfterValidator(checked)


Fraction = Annotated[float, Field(strict=True, gt=0, lt=1)]
Share = Whole | Fraction
TestShare = Annotated[
    str | int | float,
    read_as(Literal["official", "next"] | Annotated[int, Field(strict=True, ge=0)] | Fraction),
    Told(
        "must be official, a count of rows (a whole number, 0 for none), a fraction between 0 and 1, or next where "
        "rows arrive over time"
    ),
]
ClassName = Annotated[
    str,
    read_as(Name | Annotated[int, Field(strict=True)]),
    Told("must be a class name (text or a whole number)"),
    AfterValidator(str),
]
AutoCount = Annotated[  # `auto` in a file, None here
    int | None,
    read_as(Literal["auto"] | Whole),
    Told("must be auto or a whole number from 1"),
    AfterValidator(lambda value: None if value == "auto" else value),
    PlainSerializer(lambda value: value or "auto"),
]

_Size = Annotated[Whole, Field(le=MOST_FEATURES)]


@with_config(ONE_KEY)
class _Imputing(TypedDict):
    flags: Annotated[bool, Field(strict=True)]


_Bits = Annotated[Whole, Field(le=MOST_BITS)]


@with_config(extra="forbid")
class _Hashing(TypedDict, total=False):
    column: Required[Name]
    bits: Required[_Bits]
    words: Annotated[Whole, Field(le=MOST_WORDS)]


@with_config(extra="forbid")
class _Projecting(TypedDict, total=False):
    dimensions: Required[_Size]
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)]


@with_config(ONE_KEY)
class _Sized(TypedDict, total=False):
    """Stages with a number, a word or an option."""

    hash: Annotated[
        _Bits | _Hashing,
        Told(
            f"must be a number of bits from 1 to {MOST_BITS} for svmlight, or {{column: NAME, bits: 1 to {MOST_BITS}, "
            f"words: 1 to {MOST_WORDS}}} for texts, of which words may be left out"
        ),
    ]
    project: Annotated[
        _Size | _Projecting,
        Told(f"must be a number of dimensions from 1 to {MOST_FEATURES}, or {{dimensions: NUMBER, seed: NUMBER}}"),
    ]
    impute: Annotated[_Imputing, Told("must be {flags: true} or {flags: false}")]
    pca: _Size
    whiten: Annotated[_Size | Literal["auto"], Told(f"must be auto or a whole number from 1 to {MOST_FEATURES}")]
    fourier: Annotated[_Size, Field(multiple_of=2)]  # a cosine and a sine each
    polynomial: Annotated[int, Field(strict=True, ge=2, le=3), Told("must be 2 or 3")]


Stage = Annotated[
    str | Mapping[str, Any],
    word_or_number(
        Literal["impute", "scale", "standardise", "signed_log", "constant", "unit_norm", "max_norm"],
        _Sized,
        "must be one of impute, scale, standardise, signed_log, constant, unit_norm, max_norm, {pca: DIMENSIONS}, "
        "{whiten: DIMENSIONS}, {fourier: DIMENSIONS}, {whiten: auto}, {polynomial: 2}, {polynomial: 3}, "
        "{impute: {flags: false}}, {hash: BITS}, {hash: {column: NAME, bits: BITS}} or {project: DIMENSIONS}",
    ),
]
