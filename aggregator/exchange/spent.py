"""What the exchanges of an agreement have released, over all runs: one file beside them, held against one budget."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aggregator.contract.ledger import Budget, Ledger, require_together
from federation.contract.errors import BudgetExceededError, InputError, refusing
from federation.contract.files import read_object, write_lasting
from federation.contract.guarantee import Guarantee

_REMEDY = "restore it from a copy: without it nobody knows what has been spent"


@dataclass
class Spent:
    """The guarantees that exchanges have been charged with, by the exchange's identifier in hexadecimal digits.

    An exchange is charged once at a time: what it turns out to have spent takes the place of what was set aside for it.
    """

    path: Path
    charged: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Spent:
        """From its file; nothing is spent where there is none. Raises `InputError` for a file that cannot be read."""
        if not path.exists():
            return cls(path)
        found = read_object(path, _REMEDY)
        try:
            with refusing("it holds something else"):
                spent = cls(path, {str(name): list(guarantees) for name, guarantees in found["charged"].items()})
                spent.guarantees()
        except InputError as error:
            raise InputError(f"{path} is damaged: {error}; {_REMEDY}") from error
        return spent

    def guarantees(self, beside: str = "") -> list[Guarantee]:
        """What has been spent, but for that of one exchange."""
        held = [one for exchange, many in self.charged.items() if exchange != beside for one in many]
        return [Guarantee.from_dict(record) for record in held]

    def charge(self, exchange: str, guarantees: Sequence[Guarantee], budget: Budget | None) -> None:
        """Write down what an exchange spends, before it does.

        Raises `BudgetExceededError`, and writes nothing, where all exchanges together would spend more than the
        `budget`, and `OSError` of a disk.
        """
        if not guarantees:
            raise InputError(f"exchange {exchange} releases nothing that a ledger could hold")
        if budget is not None:
            try:
                require_together(budget, [*self.guarantees(beside=exchange), *guarantees])
            except BudgetExceededError as error:
                raise BudgetExceededError(f"{error} of a new deployment: this one is agreed on as it is") from error
        self.charged[exchange] = [one.to_dict() for one in guarantees]
        self._write()

    def _write(self) -> None:
        write_lasting(self.path, json.dumps({"charged": self.charged}, indent=1).encode())

    def free(self, exchange: str) -> None:
        """What was set aside for an exchange of which nothing has left any site is not spent."""
        if self.charged.pop(exchange, None) is not None:
            self._write()

    def totals(self, delta: float, exchange: str | None = None) -> list[dict[str, Any]]:
        """Composed epsilon and delta for each unit and adjacency, of one exchange or of all."""
        ledger = Ledger()
        for number, guarantee in enumerate(
            self.guarantees() if exchange is None else map(Guarantee.from_dict, self.charged.get(exchange, ()))
        ):
            ledger.charge(f"release {number}", guarantee)
        return ledger.totals(delta)


def affordable(guarantees: Sequence[Guarantee], budget: Budget, most: int) -> int:
    """How many exchanges with these promises a budget allows together, `most` at most.

    It may allow more of them, as what was spent in the end takes the place of what was promised.

    Examples:
        >>> from federation.contract.guarantee import Adjacency, Unit
        >>> affordable([Guarantee(1.0, 1e-6, Unit.ROW, Adjacency.REPLACE, "gaussian")], Budget(4.0, 3e-6), 9)
        3
    """

    def beyond(count: int) -> bool:
        try:
            require_together(budget, [*guarantees] * count)
        except BudgetExceededError:
            return True
        return False

    return bisect_left(range(1, most + 1), True, key=beyond)
