"""The questions that this installation can answer, its own and those of other packages, by entry points.

Nothing is imported before it is asked for, so that a broken package costs no other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

from federation.contract.errors import InputError
from federation.contract.plugins import find, installed
from federation.contract.query import PrivateQuestion, PublicQuestion, Question, TrustedQuestion

GROUP = "federation.queries"
_KINDS = (PrivateQuestion, PublicQuestion, TrustedQuestion)


def kinds() -> list[str]:
    """The kinds of question that something is installed for, sorted.

    Examples:
        >>> kinds()[:3]
        ['bag_sums', 'count_totals', 'counts']
    """
    return list(installed(GROUP))


def answerer(kind: str) -> Callable[..., Any]:
    """The function that answers questions of a kind, as `parties.guard.answering.answered` describes it.

    Raises `InputError` if there is none, and one that names the package where it cannot be imported or called.
    """
    entry = find(GROUP, "question", kind)
    found: Callable[..., Any] = entry.load()
    if not callable(found):
        raise InputError(f"{entry.described} is no function; its package must be repaired")
    return found


def question_type(kind: str) -> type[Question]:
    """The class of the questions of a kind, by the type of the argument `question` of what answers them.

    Raises `InputError` as `answerer`, and for a function that does not name one, one that does not say what its answers
    are for, or one of another kind than the entry point.
    """
    entry = find(GROUP, "question", kind)
    try:
        hint = _question_hint(answerer(kind))
    except NameError as error:
        raise InputError(f"{entry.described} has a type that cannot be read: {error}") from error
    if not (isinstance(hint, type) and issubclass(hint, _KINDS)):
        raise InputError(
            f"{entry.described} must have an argument 'question' whose type derives from "
            f"{' or '.join(kind.__name__ for kind in _KINDS)}, got {hint}; its package must be repaired"
        )
    if hint.kind != kind:
        raise InputError(f"{entry.described} answers questions of the kind '{hint.kind}'; rename either")
    return hint


@cache
def _question_hint(answers: Callable[..., Any]) -> Any:
    """What the argument `question` of a function is declared to be; every message asks for it."""
    return get_type_hints(answers).get("question")
