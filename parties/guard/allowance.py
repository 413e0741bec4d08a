"""What a deployed party may spend in all, and the file in which it remembers what it has spent.

An aggregator may ask as often as it likes; a party answers while its own allowance lasts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from federation.contract.errors import BudgetExceededError, InputError, refusing
from federation.contract.guarantee import Guarantee, levels_apart
from federation.contract.limits import whole
from federation.contract.question import ReleaseId
from federation.mechanisms.accounting.composition import compose

Records = list[dict[str, Any]]  # the guarantees of a party's releases, and its answers without noise
Spent = dict[str, Records]  # by party
_Total = Callable[[str], tuple[float, float]]  # epsilon and delta of earlier guarantees (as JSON) and a new one

_RELEASE, _ANSWERED = "release", "answered"  # beside a guarantee: the name of its release and its queries so far
_TRUSTED = "trusted"  # of an answer without noise, in place of all that: the kind of the question
_ROUNDING = 1e-9  # relative slack for allowances written with few digits


@dataclass(frozen=True)
class Allowance:
    """At most (epsilon, delta) in all for each party behind this node.

    `ledger` is the absolute path of a file of this node, or of a link to it, in a folder that it may write; the first
    release makes it. `trusted_answers` is how many answers without noise each party gives beside those, to an
    aggregator that it trusts: what becomes of them no epsilon counts here. It is 0, which is to trust nobody, unless
    the site says otherwise. Raises `InputError` for an epsilon below 0, a delta outside [0, 1), a number of answers
    that is none or a relative path.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from federation.contract.guarantee import Adjacency, Unit
        >>> laplace = Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "laplace")
        >>> with TemporaryDirectory() as folder:
        ...     allowance = Allowance(Path(folder) / "spent.json", epsilon=1.5, delta=0.0)
        ...     paid = allowance.spend([0], laplace, ReleaseId("first"))
        ...     refused = allowance.spend([0, 1], laplace, ReleaseId("second"))  # each has an allowance of its own
        >>> paid, list(refused), str(refused[0])[:69]
        ({}, [0], "this party's releases would spend epsilon=2, delta=0 in all, its allo")
    """

    ledger: Path
    epsilon: float
    delta: float
    trusted_answers: int = 0

    def __post_init__(self) -> None:
        whole("trusted_answers of an allowance", self.trusted_answers, 0)
        if not (self.epsilon >= 0 and 0 <= self.delta < 1):  # NaN would allow everything
            raise InputError(
                f"an allowance must have an epsilon from 0 and a delta in [0, 1), got {self.epsilon} and {self.delta}"
            )
        if not self.ledger.is_absolute():
            raise InputError(
                f"the ledger of an allowance must be an absolute path, got '{self.ledger}': a node that starts in "
                "another folder must find what it has spent"
            )

    @classmethod
    def from_json(cls, text: str) -> Allowance:
        """From {"ledger": PATH, "epsilon": NUMBER, "delta": NUMBER, "trusted_answers": NUMBER}, of which the last may
        be left out. Raises `InputError`.
        """
        with refusing(
            f'the node\'s "allowance" must be JSON with ledger (a file), epsilon and delta, got {text!r:.200}'
        ):
            record = json.loads(text)
            trusted = record.get("trusted_answers", 0)
            return cls(Path(record["ledger"]), float(record["epsilon"]), float(record["delta"]), trusted)

    def spend(
        self, parties: Collection[int], guarantee: Guarantee, release: ReleaseId
    ) -> dict[int, BudgetExceededError | InputError]:
        """Write down an answer of each of these parties before any is given, however they end; returns who is refused.

        The guarantee is that of all queries of the release: the first that is answered pays for all of them, and each
        is answered once. A party is refused, and nothing written for it, with a `BudgetExceededError` when its releases
        would together spend more than the allowance; with an `InputError` when earlier ones protect another unit, so
        that no total exists, and for a query that was answered before, or in a release that began with another
        guarantee. The others pay, all at once. Raises `InputError` for a ledger that cannot be read, and `OSError`
        where it cannot be written: then nobody has paid.
        """

        @cache  # most parties have released the same
        def total(earlier: str) -> tuple[float, float]:
            return compose([*map(Guarantee.from_dict, json.loads(earlier)), guarantee], self.delta)

        refused: dict[int, BudgetExceededError | InputError] = {}
        with self._locked() as ledger:
            spent = _read(ledger)
            for party in parties:
                try:
                    known = spent.get(str(party), [])
                    spent[str(party)] = self._with_one_more(known, guarantee, release, total)
                except (BudgetExceededError, InputError) as refusal:
                    refused[party] = refusal
            if len(refused) < len(parties):
                _write(ledger, spent)
        return refused

    def trust(self, parties: Iterable[int], kind: str) -> None:
        """Write down an answer without noise of each of these parties to a question of a kind, before it is given.

        Raises `InputError` for an allowance that trusts nobody, and `BudgetExceededError`, and writes nothing, where
        one of them has given as many as it may.
        """
        if self.trusted_answers == 0:
            raise InputError(
                "this node answers under a guarantee only; without an allowance it trusts the aggregator, and with one "
                'as often as "trusted_answers" in it says'
            )
        with self._locked() as ledger:
            spent = _read(ledger)
            for party in parties:
                known = spent.setdefault(str(party), [])
                known.append({_TRUSTED: kind})
                given = sum(_TRUSTED in record for record in known) - 1
                if given >= self.trusted_answers:
                    raise BudgetExceededError(
                        f"this party has given {given} of {self.trusted_answers} answers without noise (they are in "
                        f'{self.ledger}); raise "trusted_answers" if the aggregator may have more'
                    )
            _write(ledger, spent)

    @contextmanager
    def _locked(self) -> Iterator[Path]:
        """The ledger, from which no other process spends meanwhile."""
        ledger = self.ledger.resolve()  # else a new file would take the place of a link, and not of the file it means
        with _beside(ledger, ".lock").open("a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
            yield ledger

    def _with_one_more(self, known: Records, guarantee: Guarantee, release: ReleaseId, total: _Total) -> Records:
        """A party's records with an answer more; `total` is what it costs with earlier ones. Raises as `spend` says."""
        begun = next((record for record in known if record.get(_RELEASE) == release.name), None)
        if begun is not None:
            _require_new(begun, guarantee, release)
            begun[_ANSWERED].append(release.query)
            return known
        earlier = [_promised(one) for one in known if _TRUSTED not in one]
        epsilon, delta = total(json.dumps(earlier))
        if epsilon > self.epsilon * (1 + _ROUNDING) or delta > self.delta * (1 + _ROUNDING):
            spent, allowed = levels_apart((epsilon, delta), (self.epsilon, self.delta))
            raise BudgetExceededError(
                f"this party's releases would spend {spent} in all, its allowance is {allowed} "
                f"({len(earlier)} releases are in {self.ledger})"
            )
        return [*known, {**guarantee.to_dict(), _RELEASE: release.name, _ANSWERED: [release.query]}]


def _promised(record: dict[str, Any]) -> dict[str, Any]:
    """The guarantee of a record."""
    return {name: value for name, value in record.items() if name not in (_RELEASE, _ANSWERED)}


def _require_new(begun: dict[str, Any], guarantee: Guarantee, release: ReleaseId) -> None:
    """Refuse a query that a party has answered, or whose noise is not that of the release. Raises `InputError`."""
    if json.loads(json.dumps(guarantee.to_dict())) != _promised(begun):
        raise InputError("this release began with another guarantee; begin a new one, whose noise is paid for again")
    if release.query in begun[_ANSWERED]:
        raise InputError(f"query {release.query} of this release was answered before; each is answered once")


def _read(path: Path) -> Spent:
    """What has been spent; nothing when there is no file. Raises `InputError` for one that is damaged or empty."""
    if not path.exists():
        return {}
    try:
        spent = json.loads(path.read_text(encoding="utf-8"))
        if not (isinstance(spent, dict) and all(_named(known) for known in spent.values())):
            raise ValueError("it is no list of named releases, with the queries that were answered, for each party")
    except ValueError as error:
        raise InputError(
            f"{path} does not say what this node has spent: {error}; restore it, or delete it if nothing was released"
        ) from error
    return cast(Spent, spent)


def _named(known: object) -> bool:
    return isinstance(known, list) and all(
        isinstance(record, dict)
        and (record.keys() == {_TRUSTED} or (_RELEASE in record and isinstance(record.get(_ANSWERED), list)))
        for record in known
    )


def _write(path: Path, spent: Spent) -> None:
    """Put a new file in place of the old one at once: a write that is interrupted must not forget what was spent."""
    fresh = _beside(path, ".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(json.dumps(spent))  # `dump`, or lines, would take ten times as long
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a power failure may bring the old file back
    finally:
        os.close(folder)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
