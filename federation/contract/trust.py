"""Trust terms: how many parties are enrolled, how many must answer and may collude, and which servers add up."""

import math
from dataclasses import dataclass
from typing import Literal

from federation.contract.errors import InputError

QUORUM = 0.5  # of the parties, unless another share is declared
COLLUDING = 0.1  # of the parties, unless another share is declared

Servers = Literal["one", "one_semi_honest", "two"]  # who carries out secure aggregation


@dataclass(frozen=True)
class TrustTerms:
    """What is declared about the parties and servers of a release before any query is sent.

    `quorum` is the least share of the enrolled `parties` that must answer; with fewer nothing is released. `colluding`
    is the largest share that may reveal what it sent to whoever sees a secure sum, and `servers` says who adds it up.
    The counts below raise `InputError` unless both are shares from 0 to 1.

    Examples:
        >>> terms = TrustTerms(25, quorum=0.7)
        >>> terms.least, terms.colluders, terms.honest
        (18, 3, 15)
    """

    parties: int
    quorum: float = QUORUM
    colluding: float = COLLUDING
    servers: Servers = "one"

    @property
    def least(self) -> int:
        """The fewest parties that must answer: ceil(`quorum` times `parties`)."""
        return self.share("quorum", self.quorum)

    @property
    def colluders(self) -> int:
        """The most parties that collude with whoever sees the sum: ceil(`colluding` times `parties`)."""
        return self.share("colluding", self.colluding)

    @property
    def honest(self) -> int:
        """The fewest parties that answer and collude with nobody: the noise shares of these must be the whole noise.

        Whoever sees the sum can subtract what colluders reveal. Raises `InputError` where no honest party is left.

        Examples:
            >>> TrustTerms(100, quorum=0.8, colluding=0.1).honest
            70
            >>> TrustTerms(2, quorum=1.0).honest, TrustTerms(3, quorum=0.6, colluding=0.0).honest
            (1, 2)
        """
        least, most = self.least, self.colluders
        if least <= most:
            raise InputError(
                f"shares of noise need a party that answers and colludes with nobody: a quorum of {self.quorum:g} of "
                f"{self.parties} parties is {least}, and {most} of them may collude; raise parties.quorum, lower "
                "parties.colluding, or let parties add noise of their own (trust: none)"
            )
        return least - most

    def share(self, name: str, share: float) -> int:
        """Return a share of the parties, rounded up; `name` is for the error. Raises `InputError` unless it is one."""
        from federation.contract.validation import required  # here, because the command line starts without numpy

        checked = required(name, share, "be a share from 0 to 1", lambda value: 0 <= value <= 1)
        return math.ceil(checked * self.parties)
