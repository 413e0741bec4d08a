"""What a release will spend, and what leaves a party for it: said before anything is asked."""

from __future__ import annotations

from dataclasses import dataclass

from federation.contract.guarantee import Guarantee, NoGuarantee


@dataclass(frozen=True)
class Sent:
    """One thing that leaves a party, in words: how many numbers it is, None where that is not known yet.

    `private` says that it carries noise of its own; else whoever gets it sees it as it is.
    """

    what: str
    numbers: int | None
    private: bool


@dataclass(frozen=True)
class Promise:
    """What a release will spend at most, before anything is asked, and what leaves a party for it.

    `spends` has the unit, the adjacency and upper bounds of epsilon and delta, or says why nothing is promised. Where
    public numbers on which it depends are not known it is the least that it can be.
    """

    spends: Guarantee | NoGuarantee
    sends: tuple[Sent, ...]
