"""What leaves a party under its own protection: whose bits its noise takes, and whether it may go at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from federation.bag_messages import Noising
from federation.errors import InputError
from federation.guarantee import Guarantee, NoGuarantee
from federation.marginal_messages import Exchange
from federation.messages import Question, Submission
from federation.randomness import NoiseBits
from parties.allowance import Allowance
from parties.holdings import Cohort
from parties.one_by_one import gathered


class NoisedQuestion(Question, Protocol):
    """A question whose answers get noise at the parties."""

    @property
    def noising(self) -> Noising:
        """What noise, and how often."""
        ...


def require_deployable(cohort: Cohort, noising: Noising, guarantee: Guarantee | NoGuarantee) -> None:
    """Refuse what only a simulation may ask of a party. Raises `InputError`."""
    if cohort.seed is not None:
        return
    if isinstance(guarantee, NoGuarantee):
        raise InputError(f"this node answers under a guarantee only: {guarantee.reason}")
    if "floor" in noising.mechanism:
        raise InputError(
            "a floor protects only where it is true, which whoever asks cannot know; outside a simulation use "
            "dirichlet_shifted"
        )
    if noising.seeded or noising.draws != 1:
        raise InputError("outside a simulation noise has no seed, and every answer is given once")
    if cohort.allowance is None:
        raise InputError("this node has no allowance; give its configuration one, so that it knows when to stop")


def require_public_features(cohort: Cohort) -> None:
    """Refuse to send features as they are unless the node's configuration allows it. Raises `InputError`."""
    if cohort.seed is None and not cohort.public_features:
        raise InputError("this node keeps its features; set public-features in its configuration if they are public")


def noised(
    cohort: Cohort,
    question: NoisedQuestion,
    act: Callable[[int, NoiseBits], Mapping[str, np.ndarray]],
    guarantee: Guarantee | NoGuarantee,
    paid: Guarantee | NoGuarantee | None = None,
    exchange: Exchange | None = None,
) -> Submission:
    """What `act` makes of each party and the bits of its noise, as `gathered`, under `guarantee`.

    A deployed party pays `guarantee`, or `paid` if that is given, before `act` may touch a row: how an answer that
    fails ends must not be free. `exchange` as in `noise_bits`.
    """

    def act_once_paid(party: int) -> Mapping[str, np.ndarray]:
        bits = noise_bits(cohort, party, question.noising, guarantee if paid is None else paid, exchange)
        return act(party, bits)

    return gathered(cohort, question, act_once_paid, guarantee if isinstance(guarantee, Guarantee) else None)


def noise_bits(
    cohort: Cohort,
    party: int,
    noising: Noising,
    guarantee: Guarantee | NoGuarantee,
    exchange: Exchange | None = None,
) -> NoiseBits:
    """The bits for one answer of `party`, which a deployed party first pays from its allowance.

    An answer in an `exchange` is paid for with the guarantee of all of them, once.

    In a simulation they are keyed by the seed unless the question asks for the operating system's. Raises
    `BudgetExceededError` when the allowance is spent.
    """
    if cohort.seed is None and cohort.allowance is not None and isinstance(guarantee, Guarantee):
        Allowance.from_json(cohort.allowance).spend(party, guarantee, exchange)
    return NoiseBits(cohort.seed if noising.seeded else None, noising.purpose, party)
