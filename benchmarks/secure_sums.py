"""What sums cost whose parts nobody sees: processor time of both sides beside that of the operations they need, bytes.

Run from the repository root: python -m benchmarks.secure_sums [--parties COUNT] [--out FILE] [TABLE ...]

Tables: time (one server and two; a party's milliseconds are those of one that stays, beside the count of primitive
operations times what each took in the same run, and beside a prototype that was measured on another machine), memory
(what the server of a masked sum holds at most, by the number of parties), colluders (what is left of each noise once
some tell their shares: its variance beside the theory, and epsilon), neighbours (beside published ones) and curve
(operations times their costs up to a million parties, one in ten corrupt and one in ten absent; --out FILE draws it).
In `time` and `memory` everything is in one process, all messages are real, and one in ten parties is silent from the
third query on. A party's time is the median over those that stay.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aggregator.secure_aggregation.server import AddingServer, MaskedSum, Total
from benchmarks.common import heads, print_tables
from benchmarks.sum_curve import show_curve, show_neighbours
from federation.contract.randomness import NoiseBits
from federation.contract.trust import Servers, TrustTerms
from federation.mechanisms.noise.additive import calibrate, calibrate_laplace
from federation.mechanisms.sums.shares import draw, variance, weakened
from federation.numerics.rows import Integers
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import MASKED
from federation.secure_aggregation.plan import Adversary, SumPlan, SumTerms, planned
from parties.secure_aggregation.party import ProcessMemory, UnmaskingServer, UploadingParty
from scenarios.simulated.secure_aggregation import (
    enrolled,
    masked_parties,
    seconds,
    sum_costs,
    timed,
    uploading_parties,
)

QUESTION = "00" * 32
ABSENT = 0.1
SUMS = 5  # with two servers, where one takes a tenth of a second
BAR = 1.2  # a party's processor time over that of its primitive operations
# Neighbours, threshold, integers, and a prototype's milliseconds of a party and of the server per party.
ONE_SERVER: list[tuple[Adversary, int, int, int, float, float]] = [
    ("active", 40, 29, 50, 18.5, 0.325),
    ("active", 70, 50, 50, 34.1, 0.429),
    ("active", 100, 80, 50, 50.2, 0.872),
    ("active", 100, 80, 5000, 48.8, 0.806),
    ("semi_honest", 70, 37, 50, 8.8, 0.611),
    ("semi_honest", 70, 37, 5000, 9.2, 0.709),
]
TWO_SERVERS = [(50, 0.134, 0.144), (500, 0.135, 0.151), (5000, 0.243, 0.189)]


SERVERS: dict[Adversary, Servers] = {"active": "one", "semi_honest": "one_semi_honest"}


class _Any(SumTerms):
    """Takes plans of any number of neighbours, to measure them."""

    def require(self, plan: SumPlan) -> None:
        """Everything."""


@dataclass
class Spent:
    """Processor seconds of one party that stays, of all parties and of the server; bytes of that party; the most held.

    `times`: of primitive operations, the median of what was measured before, between and after the queries.
    """

    party: float
    parties: float
    server: float
    up: float
    down: float
    held: int
    times: dict[str, float]


def clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its processor seconds."""
    start = time.process_time()
    return call(), time.process_time() - start


def held(server: MaskedSum) -> int:
    """Bytes of a server's arrays."""
    found = [*vars(server).values(), *vars(server._shown).values(), *server._vectors.values()]
    return sum(one.nbytes for one in found if isinstance(one, np.ndarray))


def medians(found: list[dict[str, float]]) -> dict[str, float]:
    """Of each operation."""
    return {name: median(one[name] for one in found) for name in found[0]}


def right(total: Total, values: Integers, stays: Integers) -> None:
    """Raises `AssertionError` unless the total is the plain sum."""
    assert np.array_equal(total.values, values[stays].sum(axis=0)), "a masked sum is not the plain sum"


def one_server(parties: int, adversary: Adversary, around: tuple[int, int] | None, numbers: int) -> Spent:
    """A sum over so many parties; with `around` neighbours and a threshold that are not its own."""
    own, roster = enrolled(parties)
    trust = TrustTerms(parties, 0.8, servers=SERVERS[adversary])
    terms, plan = _Any(roster, trust), planned(QUESTION, roster, numbers, trust, ABSENT)
    if around is not None:
        plan = replace(plan, neighbours=around[0], threshold=around[1])
    values = np.random.default_rng(0).integers(-(2**50), 2**50, (parties, numbers))
    everybody = masked_parties(own, terms, lambda number, plan: values[number])
    gone = round(ABSENT * parties)
    server, spent, most = MaskedSum(plan, roster), 0.0, 0
    mine, sent, received = np.zeros(parties), np.zeros(parties), np.zeros(parties)
    times = [timed(plan)]
    while (query := server.query) is not None:
        asked, took = clocked(lambda: list(server.questions()))
        spent += took
        for number, question in asked:
            if query >= MASKED and number < gone:
                continue
            answer, took = clocked(lambda: everybody[number].answer(plan.digest, query, question))  # noqa: B023
            mine[number] += took
            sent[number] += len(answer)
            received[number] += len(question)
            spent += clocked(lambda: server.take(number, answer))[1]  # noqa: B023
        most = max(most, held(server))
        spent += clocked(server.close)[1]
        most = max(most, held(server))
        times.append(timed(plan))
    total, took = clocked(server.total)
    right(total, values, np.arange(gone, parties))
    stays = slice(gone, None)
    each = float(np.median(mine[stays])), float(mine.sum()), spent + took
    return Spent(*each, float(sent[stays].mean()), float(received[stays].mean()), most, medians(times))


def two_servers(parties: int, numbers: int) -> Spent:
    """The same with two, the median of several sums of the same parties; the second counts as the server, too."""
    own, roster = enrolled(parties)
    key = X25519PrivateKey.generate()
    terms = SumTerms(roster, TrustTerms(len(roster), servers="two"), keys.public(key))
    values = np.random.default_rng(0).integers(-(2**50), 2**50, (parties, numbers))
    everybody = uploading_parties(own, terms, lambda number, plan: values[number])[round(ABSENT * parties) :]
    found = [_uploaded(everybody, key, terms, values) for _ in range(SUMS)]
    return replace(sorted(found, key=lambda one: one.party)[SUMS // 2], times=medians([one.times for one in found]))


def _uploaded(everybody: list[UploadingParty], key: X25519PrivateKey, terms: SumTerms, values: Integers) -> Spent:
    (parties, numbers), roster = values.shape, terms.roster
    plan = planned(QUESTION, roster, numbers, TrustTerms(len(roster), 0.8, servers="two"), ABSENT, terms.second)
    times = [timed(plan)]
    question = plan.packed()
    answers, taken = [], []
    for party, part in zip(everybody, values[parties - len(everybody) :], strict=True):
        part.sum()  # where it is sent it has just been computed, and so is in the processor's cache
        answer, took = clocked(partial(party.answer, question))
        answers.append(answer)
        taken.append(took)
    times.append(timed(plan))
    first, second = AddingServer(plan, roster), UnmaskingServer(key, terms, ProcessMemory())

    def add_up() -> Total:
        for number, answer in enumerate(answers, parties - len(everybody)):
            first.take(number, answer)
        for receipts in first.receipts():
            second.take(plan, receipts)
        return first.total(second.masks(plan, first.counted()))

    total, spent = clocked(add_up)
    times.append(timed(plan))
    right(total, values, np.arange(parties - len(everybody), parties))
    return Spent(median(taken), sum(taken), spent, len(answers[0]), len(question), 0, medians(times))


def show_time(parties: int) -> None:
    """A line for each kind of sum."""
    print(f"{parties} parties, milliseconds of processor time; a server's per party\n")
    print(
        "| server | k/t | integers | a party | operations | ratio | prototype | server | operations | prototype |",
        end="",
    )
    print(" sent, B | received, B | all, s |\n|" + "---|" * 13)
    for adversary, neighbours, threshold, numbers, party, server in ONE_SERVER:
        near = (neighbours, threshold) if neighbours < parties - 1 else None
        spent = one_server(parties, adversary, near, numbers)
        trust = TrustTerms(parties, 0.8, servers=SERVERS[adversary])
        plan = planned(QUESTION, enrolled(parties)[1], numbers, trust, ABSENT)
        plan = plan if near is None else replace(plan, neighbours=neighbours, threshold=threshold)
        label = f"{adversary} | {plan.neighbours}/{plan.threshold} | {numbers}"
        line(label, parties, plan, spent, (party, server))
    for numbers, party, server in TWO_SERVERS:
        spent = two_servers(parties, numbers)
        trust = TrustTerms(parties, 0.8, servers="two")
        plan = planned(QUESTION, enrolled(parties)[1], numbers, trust, ABSENT, bytes(32))
        line(f"two | - | {numbers}", parties, plan, spent, (party, server))


def line(label: str, parties: int, plan: SumPlan, spent: Spent, prototype: tuple[float, float]) -> None:
    """One kind of sum."""
    costs = sum_costs(plan, ABSENT)
    party = seconds(costs.party, spent.times)
    server = seconds(costs.server, spent.times) + seconds(costs.second, spent.times)
    ratio = spent.party / party
    print(
        f"| {label} | {1e3 * spent.party:.3g} | {1e3 * party:.3g} | {ratio:.2f}{' !' if ratio > BAR else ''} "
        f"| {prototype[0]:g} | {1e3 * spent.server / parties:.3g} | {1e3 * server:.3g} | {prototype[1]:g} "
        f"| {spent.up:.0f} | {spent.down:.0f} | {spent.parties + spent.server:.1f} |",
        flush=True,
    )


def show_memory(parties: int) -> None:
    """What the server holds at most."""
    heads("parties | k | held, kB | held per party, B | per party and neighbour, B")
    for count in (parties // 4, parties // 2, parties, 2 * parties):
        spent = one_server(count, "semi_honest", None, 50)
        _, roster = enrolled(count)
        near = planned(QUESTION, roster, 50, TrustTerms(len(roster), 0.8, servers="one_semi_honest"), ABSENT).neighbours
        each = spent.held / count
        print(f"| {count} | {near} | {spent.held / 1e3:.0f} | {each:.0f} | {each / near:.0f} |", flush=True)


def show_colluders() -> None:
    """All of thirty shares are the whole noise, of epsilon 1, in five numbers; colluders' ones are taken off."""
    sharing, numbers, draws = 30, 5, 4000
    heads("noise | colluders | variance, times the whole | in theory | epsilon at delta 0 | epsilon at delta 1e-6")
    for whole in (
        calibrate("gaussian", sensitivity=1.0, dimension=numbers, epsilon=1.0, delta=1e-6),
        calibrate_laplace(l1_sensitivity=1.0, dimension=numbers, epsilon=1.0),
        calibrate("pure", sensitivity=1.0, dimension=numbers, epsilon=1.0),
    ):
        every = np.array([draw(whole, sharing, NoiseBits(1, "colluders", one), draws) for one in range(sharing)])
        for colluders in range(sharing // 3 + 1):
            left = 1 - colluders / sharing
            seen = every[colluders:].sum(axis=0).var() * whole.step**2 / variance(whole, sharing)
            pure = "-" if whole.delta else f"{weakened(whole, left):.3f}"
            at_delta = weakened(whole, left, 1e-6)
            print(f"| {whole.name} | {colluders} | {seen:.3f} | {left:.3f} | {pure} | {at_delta:.3f} |", flush=True)


TABLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "time": lambda chosen: show_time(chosen.parties),
    "memory": lambda chosen: show_memory(chosen.parties),
    "colluders": lambda chosen: show_colluders(),
    "neighbours": lambda chosen: show_neighbours(),
    "curve": lambda chosen: show_curve(chosen.out),
}


def show(name: str, chosen: argparse.Namespace) -> None:
    """One table."""
    print(f"\n{name}\n")
    TABLES[name](chosen)


if __name__ == "__main__":
    print_tables(__doc__, TABLES, show, parties=200, out="")
