"""How many of the enrolled parties may be counted on where they share one noise."""

from __future__ import annotations

import math

from federation.contract.errors import InputError

COLLUDING = 0.1  # of the parties, unless another share is declared


def colluders(parties: int, colluding: float) -> int:
    """The most parties that tell whoever sees the sum what they sent: ceil(`colluding` times `parties`).

    Raises `InputError` unless `colluding` is a share.

    Examples:
        >>> colluders(25, 0.1)
        3
    """
    return _rounded_up("colluding", colluding, parties)


def honest(parties: int, quorum: float, colluding: float) -> int:
    """So many parties, at least, answer and tell nobody what they sent: their shares must be the whole noise.

    ceil(`quorum` K) - ceil(`colluding` K) of K = `parties`: fewer than a quorum release nothing, and who sees the sum
    takes off it what colluders tell. Raises `InputError` where none is left, and unless both are shares.

    Examples:
        >>> honest(100, quorum=0.8, colluding=0.1)
        70
        >>> honest(2, quorum=1.0, colluding=0.1), honest(3, quorum=0.6, colluding=0.0)
        (1, 2)
    """
    least, most = _rounded_up("quorum", quorum, parties), colluders(parties, colluding)
    if least <= most:
        raise InputError(
            f"shares of noise need a party that answers and colludes with nobody: a quorum of {quorum:g} of {parties} "
            f"parties is {least}, and {most} of them may collude; raise parties.quorum, lower parties.colluding, or "
            "let parties add noise of their own (trust: none)"
        )
    return least - most


def _rounded_up(name: str, share: float, parties: int) -> int:
    from federation.contract.validation import required  # here, because the command line starts without numpy

    return math.ceil(required(name, share, "be a share from 0 to 1", lambda value: 0 <= value <= 1) * parties)
