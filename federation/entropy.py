"""What a simulation adds to the guarantee of an answer whose noise a party makes."""

from __future__ import annotations

from dataclasses import replace

from federation.bag_messages import Noising
from federation.guarantee import SEEDED, Guarantee


def with_entropy(guarantee: Guarantee, noising: Noising) -> Guarantee:
    """The guarantee with where the bits of its noise come from."""
    return replace(
        guarantee,
        parameters={**guarantee.parameters, "entropy": "seed" if noising.seeded else "system"},
        assumptions=(*guarantee.assumptions, *((SEEDED,) if noising.seeded else ())),
    )
