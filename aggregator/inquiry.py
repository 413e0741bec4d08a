"""What one world asks its parties: every distinct question once, for all the collectors that its answers go to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from federation.grids.asking import Collector
from federation.grids.codec import question_digest
from federation.messages import Question, Training


class Inquiry:
    """Questions, those with equal training next to each other, so that parties need to train once for all of them."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[Question, dict[Any, Collector]]] = {}
        self._trainings: dict[int, int] = {}

    def add(self, question: Question, training: Training, collector: Any) -> Any:
        """The collector that takes the answers: `collector`, or an equal one of the same question."""
        self._trainings.setdefault(id(training), len(self._trainings))
        name = f"{self._trainings[id(training)]:06d}|{question_digest(question)}"
        _, collectors = self._asked.setdefault(name, (question, {}))
        return collectors.setdefault((type(collector), getattr(collector, "recipe", ())), collector)

    def questions(self) -> list[tuple[Question, list[Collector]]]:
        """What to ask, in an order that does not depend on who asked first within one training."""
        return [(question, list(collectors.values())) for _, (question, collectors) in sorted(self._asked.items())]

    def collectors(self) -> Iterator[Collector]:
        """All collectors."""
        for _, collectors in self._asked.values():
            yield from collectors.values()
