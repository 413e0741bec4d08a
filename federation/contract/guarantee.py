"""Guarantees of a release: the protected unit, the adjacency, epsilon, delta, the mechanism and its assumptions.

`NoGuarantee` marks a release that protects nothing. `protected` and `holding` build the assumptions of guarantees for
single rows or labels.
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from federation.contract.errors import InputError, refusing
from federation.contract.validation import apart, required


class Unit(StrEnum):
    """Whose data may change without the release telling."""

    PARTY = "party"
    PARTY_AND_AUXILIARY_ROW = "party_and_auxiliary_row"
    ROW = "row"
    PERSON = "person"  # the labels of all rows of one person; features are public
    LABEL = "label"

    def covers(self, other: "Unit") -> bool:
        """Whether a guarantee for this unit is one for `other` too: who may change along with more may change alone.

        Examples:
            >>> Unit.PARTY.covers(Unit.LABEL), Unit.LABEL.covers(Unit.PARTY)
            (True, False)
        """
        return self is other or other in _PARTS.get(self, ())


_PARTS = {
    Unit.PARTY_AND_AUXILIARY_ROW: (Unit.PARTY, Unit.ROW, Unit.LABEL),
    Unit.PARTY: (Unit.ROW, Unit.LABEL),
    Unit.ROW: (Unit.LABEL,),
    Unit.PERSON: (Unit.LABEL,),
}


class Adjacency(StrEnum):
    """How two neighbouring inputs differ in one unit."""

    REPLACE = "replace"
    ADD_REMOVE = "add_remove"


class Check(StrEnum):
    """How an assumption is made true."""

    ENFORCED = "enforced"  # the code makes it so: clips, rounds, substitutes
    CHECKED = "checked"  # the code refuses to go on when it does not hold
    DECLARED = "declared"  # nobody can check it here; the user vouches for it


class Keeper(StrEnum):
    """Who must see to an assumption."""

    SOFTWARE = "software"  # this program, run as it was written
    COORDINATOR = "coordinator"  # who plans the federation, enrols its parties and collects their answers
    SITE = "site"  # who operates a party's node
    HOLDER = "holder"  # who answers for a party's data: what in it is public, and whom its rows are about
    NOISE_MAKER = "noise_maker"  # the coordinator or the site, whoever's machine makes the noise


@dataclass(frozen=True)
class Assumption:
    """One numbered premise of a guarantee, how it is kept, and who must see to it.

    Without a `keeper` that is the software for what it enforces or checks, and for what is declared the coordinator.

    Examples:
        >>> Assumption("labels outside are refused", Check.CHECKED).keeper.value
        'software'
        >>> Assumption("features are public", Check.DECLARED, Keeper.HOLDER).keeper.value
        'holder'
    """

    text: str
    check: Check
    keeper: Keeper = None  # type: ignore[assignment]  # never None once it is made

    def __post_init__(self) -> None:
        if self.keeper is None:
            declared = self.check is Check.DECLARED
            object.__setattr__(self, "keeper", Keeper.COORDINATOR if declared else Keeper.SOFTWARE)


SEEDED = Assumption(
    "the noise is keyed by a seed, which whoever reads the scenario knows: a simulation, not to be published",
    Check.DECLARED,
)


def require_epsilon(epsilon: float) -> None:
    """Raises `InputError` unless epsilon is positive and finite."""
    required("epsilon", epsilon, "be a positive finite number", lambda value: value > 0)


def require_delta(delta: float) -> None:
    """Raises `InputError` unless delta lies in [0, 1)."""
    required("delta", delta, "lie in [0, 1)", lambda value: 0 <= value < 1)


def levels_apart(*levels: tuple[float, float]) -> tuple[str, ...]:
    """(epsilon, delta) pairs as texts with as many digits as tell apart those that differ.

    Examples:
        >>> levels_apart((1.0000000003, 1e-6), (1.0, 1e-6))
        ('epsilon=1.0000000003, delta=1e-06', 'epsilon=1, delta=1e-06')
    """
    epsilons, deltas = (apart(*numbers) for numbers in zip(*levels, strict=True))
    return tuple(f"epsilon={one}, delta={other}" for one, other in zip(epsilons, deltas, strict=True))


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy for one unit under one adjacency.

    `mechanism` names the mechanism and `parameters` its public numbers (scale, sensitivity, dimension, ...);
    nothing in a guarantee may depend on private data. `gaussian_mu` is the sensitivity over the noise's
    standard deviation when the loss is dominated by that of a Gaussian, so that such releases compose exactly.

    Raises `InputError` when epsilon <= 0, is not finite, or delta is outside [0, 1).

    Examples:
        >>> promised = Guarantee(1.0, 1e-6, Unit.ROW, Adjacency.REPLACE, "gaussian", {"scale": 4.2}, (SEEDED,))
        >>> promised.to_dict()["assumptions"][0]["check"]
        'declared'
        >>> Guarantee.from_dict(promised.to_dict()) == promised
        True
        >>> Guarantee(0.0, 1e-6, Unit.ROW, Adjacency.REPLACE, "gaussian")
        Traceback (most recent call last):
        federation.contract.errors.InputError: epsilon must be a positive finite number, got 0.0
    """

    epsilon: float
    delta: float
    unit: Unit
    adjacency: Adjacency
    mechanism: str
    parameters: dict[str, float | int | str] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    gaussian_mu: float | None = None

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        require_delta(self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; assumptions are numbered from 1."""
        record = asdict(self)
        record["unit"], record["adjacency"] = str(self.unit), str(self.adjacency)
        record["assumptions"] = [
            {"number": i, "text": a.text, "check": str(a.check), "keeper": str(a.keeper)}
            for i, a in enumerate(self.assumptions, 1)
        ]
        return record

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Guarantee":
        """Inverse of `to_dict`. Raises `InputError` when a part is missing or unknown."""
        with refusing("a guarantee cannot be read"):
            known = dict(record)
            known["unit"], known["adjacency"] = Unit(known["unit"]), Adjacency(known["adjacency"])
            known["assumptions"] = tuple(
                Assumption(a["text"], Check(a["check"]), *(Keeper(a[key]) for key in ("keeper",) if key in a))
                for a in known["assumptions"]
            )
            return cls(**known)


@dataclass(frozen=True)
class NoGuarantee:
    """An explicit absence of protection: whatever carries it is watermarked NON-PRIVATE.

    `claimed` is the (epsilon, delta) that a published mechanism aims at without reaching it, None without any aim.

    Examples:
        >>> NoGuarantee("its noise is too small", claimed=(1.0, 0.0)).to_dict()
        {'non_private': True, 'reason': 'its noise is too small', 'claimed': [1.0, 0.0]}
    """

    reason: str
    claimed: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        record: dict[str, Any] = {"non_private": True, "reason": self.reason}
        return record if self.claimed is None else record | {"claimed": list(self.claimed)}


HELD_ONCE = Assumption(
    "a row lies at one party, which answers about it in one place only", Check.DECLARED, Keeper.HOLDER
)
DIFFERENT_PEOPLE = Assumption("every row is about another person", Check.DECLARED, Keeper.HOLDER)
UNTIMED = Assumption(
    "nobody observes how long an answer takes or how much memory: both grow with the number of rows, and a feature map "
    "can make one row slower than others, as by subnormal numbers",
    Check.DECLARED,
    Keeper.SITE,
)


def protected(protect: str) -> Unit:
    """The unit that a question protects. Raises `InputError` for anything but "label" and "row".

    Examples:
        >>> protected("row")
        <Unit.ROW: 'row'>
    """
    if protect not in ("label", "row"):
        raise InputError(f"protect must be label or row, got {protect!r}")
    return Unit(protect)


def holding(unit: Unit) -> tuple[Assumption, ...]:
    """What a guarantee for single labels or rows rests on, whatever the mechanism: rows take time, labels take none."""
    return (HELD_ONCE, DIFFERENT_PEOPLE) if unit is Unit.LABEL else (HELD_ONCE, DIFFERENT_PEOPLE, UNTIMED)
