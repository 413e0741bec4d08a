"""Who at a site has agreed to what: a file for each plan, or each exchange of one, that waits, is approved or denied.

The service writes down what waits; people decide by commands of their own, while it runs.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_type_hints

from federation.contract.errors import InputError, refusing
from federation.contract.files import read_object, write_lasting
from federation.contract.validation import typed
from federation.signed_messages.agreement import LAST_SECOND

Rule = Literal["each", "plan", "auto"]
PENDING, APPROVED, DENIED = "pending", "approved", "denied"

_DIGITS = 12  # of an id
_MOST = 100  # that wait at a time
_REMEDY = "remove it and approve again"


@dataclass(frozen=True)
class Decision:
    """What stands about one plan or exchange: its id, its state, and who decided it and when, in seconds since 1970."""

    id: str
    state: str
    plan: str
    exchange: str | None
    by: str | None = None
    time: float | None = None


_HINTS = get_type_hints(Decision)


class Approvals:
    """The decisions of a site, in a folder. `rule` is "plan", "each" exchange of it, or "auto": nobody need decide.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     approvals = Approvals(Path(folder), "plan")
        ...     waiting = approvals.asked(bytes(32), bytes(16))
        ...     _ = approvals.decide(waiting.id, APPROVED, "ada")
        ...     waiting.state, approvals.asked(bytes(32), bytes(16)).state
        ('pending', 'approved')
    """

    def __init__(self, folder: Path, rule: Rule) -> None:
        self.folder, self.rule = folder, rule
        folder.mkdir(mode=0o700, exist_ok=True)

    def asked(self, plan: bytes, exchange: bytes | None) -> Decision:
        """What stands about a plan, or an exchange of it; one that nobody has decided on waits from now on.

        Raises `InputError` where too many wait, and for one with the id of another.
        """
        of = exchange if self.rule == "each" else None
        name = hashlib.sha256(plan + (of or b"")).hexdigest()[:_DIGITS]
        if self.rule == "auto":
            return Decision(name, APPROVED, plan.hex(), None, "nobody: policy.approve is auto")
        known, exchange_of = self._read(name), None if of is None else of.hex()
        if known is None:
            if len(self.known(PENDING)) >= _MOST:
                raise InputError(f"{_MOST} already wait for approval; approve or deny some")
            known = Decision(name, PENDING, plan.hex(), exchange_of)
            self._write(known)
        if (known.plan, known.exchange) != (plan.hex(), exchange_of):
            raise InputError(
                f"'{name}' is also the id of another plan or exchange, which happens to nobody who does not try out "
                "millions of them; ask whoever has made this one, and do not serve it"
            )
        return known

    def known(self, state: str) -> list[Decision]:
        """All of one state, the oldest first."""
        paths = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        return [found for path in paths if (found := self._read(path.stem)) and found.state == state]

    def decide(self, name: str | None, state: str, by: str) -> Decision:
        """Approve or deny; without a name the only one that waits. Raises `InputError` for one that is not known."""
        waiting = [one.id for one in self.known(PENDING)]
        if name is None and len(waiting) != 1:
            several = f"{', '.join(waiting)} wait for approval; name one of them"
            raise InputError(several if waiting else "nothing waits for approval")
        known = self._read(name or waiting[0])
        if known is None:
            listed = ", ".join(waiting) or "nothing"
            raise InputError(f"'{name:.40}' is not known here; waiting for approval: {listed}")
        decided = Decision(known.id, state, known.plan, known.exchange, by, round(time.time(), 3))
        self._write(decided)
        return decided

    def _read(self, name: str) -> Decision | None:
        path = self.folder / f"{name}.json"
        if not re.fullmatch(r"[0-9a-f]{12}", name) or not path.exists():
            return None
        content = read_object(path, _REMEDY)
        with refusing(f"{path} is damaged; {_REMEDY}"):
            if {*content} != {*_HINTS}:
                raise ValueError("other fields")
            found = Decision(**{field: typed(hint, content[field], field) for field, hint in _HINTS.items()})
            if not 0 <= (found.time or 0) <= LAST_SECOND:
                raise ValueError("no time of people's")
        return found

    def _write(self, decision: Decision) -> None:
        write_lasting(self.folder / f"{decision.id}.json", json.dumps(vars(decision)).encode())
