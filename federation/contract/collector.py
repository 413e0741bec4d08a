"""Where an aggregator keeps the answers to one question."""

from __future__ import annotations

from typing import Any, Protocol

from federation.contract.submission import Submission


class Collector(Protocol):
    """Takes answers in as they arrive, whoever answers first.

    Collectors of one type that have equal `recipe`s make the same of the same answers; an aggregator keeps one of them.
    """

    @property
    def recipe(self) -> tuple[Any, ...]:
        """What it does with answers, beside its type and its question; mostly nothing."""
        ...

    @property
    def answered(self) -> int:
        """Number of parties whose answer was accepted."""
        ...

    def add(self, submission: Submission) -> dict[int, str]:
        """Take a submission in; returns the refused parties and why."""
        ...
