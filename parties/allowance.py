"""What a deployed party may spend in all, and the file in which it remembers what it has spent.

An aggregator may ask as often as it likes; a party answers while its own allowance lasts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from federation.errors import BudgetExceededError, InputError
from federation.guarantee import Guarantee
from federation.privacy.composition import compose

_ROUNDING = 1e-9  # relative slack for allowances written with few digits


@dataclass(frozen=True)
class Allowance:
    """At most (epsilon, delta) in all for each party behind this node; `ledger` is a file that this node may write."""

    ledger: Path
    epsilon: float
    delta: float

    @classmethod
    def from_json(cls, text: str) -> Allowance:
        """From {"ledger": PATH, "epsilon": NUMBER, "delta": NUMBER}. Raises `InputError`."""
        try:
            record = json.loads(text)
            return cls(Path(record["ledger"]), float(record["epsilon"]), float(record["delta"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f'the node\'s "allowance" must be JSON with ledger (a file), epsilon and delta, got {text!r}: {error!r}'
            ) from error

    def spend(self, party: int, guarantee: Guarantee) -> None:
        """Write down a release before it is made, however it ends.

        Raises `BudgetExceededError`, and writes nothing, when the releases of this party would together spend more
        than the allowance; `InputError` when earlier ones protect another unit, so that no total exists.
        """
        with _locked(self.ledger) as file:
            spent: dict[str, list[dict[str, Any]]] = json.loads(file.read() or "{}")
            known = spent.setdefault(str(party), [])
            known.append(guarantee.to_dict())
            epsilon, delta = compose([Guarantee.from_dict(record) for record in known], self.delta)
            if epsilon > self.epsilon * (1 + _ROUNDING) or delta > self.delta * (1 + _ROUNDING):
                raise BudgetExceededError(
                    f"this party's releases would spend epsilon={epsilon:g}, delta={delta:g} in all, its allowance is "
                    f"epsilon={self.epsilon:g}, delta={self.delta:g} ({len(known) - 1} releases are in {self.ledger})"
                )
            file.seek(0)
            file.truncate()
            json.dump(spent, file, indent=1)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _locked(path: Path) -> Iterator[TextIO]:
    """The file, held by this process alone until the end; made when there is none."""
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file
