"""The questions that this installation can answer, its own and those of other packages, by entry points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from federation.contract.errors import InputError
from federation.contract.installed import Installed, find, installed
from federation.contract.question import PrivateQuestion, PublicQuestion, Question, TrustedQuestion

GROUP = "federation.questions"
_KINDS = (PrivateQuestion, PublicQuestion, TrustedQuestion)


class Answerer:
    """What is installed for one kind of question: a function as `parties.guard.answering.answered` describes it."""

    def __init__(self, installed: Installed) -> None:
        self._installed = installed

    def load(self) -> Callable[..., Any]:
        """The function. Raises `InputError` that names the package where it cannot be imported."""
        found: Callable[..., Any] = self._installed.load()
        if not callable(found):
            raise InputError(f"{self._installed.described} is no function; its package must be repaired")
        return found

    def question_type(self) -> type[Question]:
        """The class of questions that it answers, by the type of its argument `question`.

        Raises `InputError` for a function that does not name one, one that does not say what its answers are for, or
        one of another kind than the entry point.
        """
        try:
            hint = get_type_hints(self.load()).get("question")
        except NameError as error:
            raise InputError(f"{self._installed.described} has a type that cannot be read: {error}") from error
        kinds = " or ".join(kind.__name__ for kind in _KINDS)
        if not (isinstance(hint, type) and issubclass(hint, _KINDS)):
            raise InputError(
                f"{self._installed.described} must have an argument 'question' whose type derives from {kinds}, got "
                f"{hint}; its package must be repaired"
            )
        if hint.kind != self._installed.entry.name:
            raise InputError(f"{self._installed.described} answers questions of the kind '{hint.kind}'; rename either")
        return hint


def answerers() -> dict[str, Answerer]:
    """By kind of question; loads none of them."""
    return {name: Answerer(found) for name, found in installed(GROUP).items()}


def answerer(kind: str) -> Answerer:
    """What answers questions of a kind. Raises `InputError` if nothing does."""
    return Answerer(find(GROUP, "question", kind))
