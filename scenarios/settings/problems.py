"""Validation errors in plain words: the key path, what is allowed, what came, the nearest name."""

import json
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from federation.contract.errors import nearest_name
from scenarios.settings.loader import KeyPath, dump

# Alternatives of a union are tagged with such names, which are no part of the key path.
TAGS = ONE, MANY = "<one>", "<many>"

Checked = TypeVar("Checked", bound=BaseModel)
MISSING = "missing; it has no default"
_RULES = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "string_type": "must be text (quote it if it looks like a number)",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "none_required": "must be null",
}


def rule(text: str) -> PydanticCustomError:
    """An error of a validator that says what is allowed; what came is added by `problems`."""
    return PydanticCustomError("rule", "{text}", {"text": text})


def refusal(text: str) -> PydanticCustomError:
    """An error of a validator whose text is complete."""
    return PydanticCustomError("refusal", "{text}", {"text": text})


def refuse(errors: Iterable[tuple[KeyPath, str]]) -> NoReturn:
    """Raise several errors at once from inside a validator: the key path and the complete sentence of each."""
    details = [InitErrorDetails(type=refusal(text), loc=path, input=None) for path, text in errors]
    raise ValidationError.from_exception_data("options", details)


def _key_path(location: tuple[str | int, ...]) -> KeyPath:
    return tuple(key for key in location if key not in TAGS)


def problems(
    error: ValidationError,
    root: type[BaseModel] | None = None,
    key_path: Callable[[tuple[str | int, ...]], KeyPath] = _key_path,
) -> list[tuple[KeyPath, str]]:
    """(key path, sentence) of each error; a value that no alternative of a union takes has one sentence.

    `root` is the validated model, to name its allowed keys; `key_path` makes the path of pydantic's location.
    """
    grouped: dict[KeyPath, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        grouped.setdefault(key_path(detail["loc"]), []).append(detail)
    found = ((path, text) for path, details in grouped.items() for text in _sentences(details, path, root))
    return list(dict.fromkeys(found))


def checked(model: type[Checked], plain: Any) -> Checked:
    """A model of plain values as a file has them. Raises pydantic errors whose sentences are complete."""
    try:
        return model.model_validate_json(json.dumps(plain), strict=True)
    except ValidationError as error:
        refuse(problems(error, model))


def _sentences(details: Iterable[ErrorDetails], path: KeyPath, root: type[BaseModel] | None) -> Iterator[str]:
    rules: list[str] = []
    hints, came = "", None
    for detail in details:
        match detail["type"]:
            case "refusal":
                yield detail["msg"]
            case "missing":
                yield MISSING
            case "extra_forbidden":
                names = _keys(root, path[:-1])
                yield f"unknown key; allowed: {', '.join(names) or 'none'}{nearest_name(str(path[-1]), names)}"
            case _:
                allowed, hint = _rule(detail, path, root)
                rules.append(allowed.removeprefix("must be ") if rules else allowed)
                hints, came = hints + hint, detail["input"]
    if rules:
        yield f"{' or '.join(rules)}, got {shown(came)}{hints}"


def _rule(detail: ErrorDetails, path: KeyPath, root: type[BaseModel] | None) -> tuple[str, str]:
    """What is allowed, and a hint at what was meant if there is one."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "literal_error":
        allowed = [part.strip("'") for part in context["expected"].replace(" or ", ", ").split(", ")]
        return f"must be {one_of(allowed)}", nearest_name(str(detail["input"]), allowed)
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        keys = _keys(root, path)
        named = f" with keys from {', '.join(keys)}" if keys else ""
        return f"must be a section{named}", ""
    if kind in _RULES:
        context = {name: f"{value:g}" if isinstance(value, float) else value for name, value in context.items()}
        return _RULES[kind].format(**context), ""
    return detail["msg"], ""


def shown(value: Any) -> str:
    """A received value, short, as one would write it in YAML; a text is called one.

    Examples:
        >>> print(shown("5"), shown({"by": None}))
        the text "5" {by: null}
    """
    is_text = isinstance(value, str)
    text = json.dumps(value, ensure_ascii=False) if is_text else dump(value, flow=True).strip()
    text = text if len(text) <= 60 else text[:57] + "..."
    return f"the text {text}" if is_text else text


def one_of(allowed: Iterable[str]) -> str:
    """`a`, or `one of a, b, c`."""
    names = list(allowed)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _keys(root: type[BaseModel] | None, path: KeyPath) -> list[str]:
    """Names of the keys of the section at `path` of the model."""
    section = root
    for key in path:
        if section is not None and not isinstance(key, int):
            field = section.model_fields.get(key)
            section = None if field is None else _model_in(field.annotation)
    return [] if section is None else list(section.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in typing.get_args(annotation) if (found := _model_in(arg))), None)
