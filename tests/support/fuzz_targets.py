"""Targets of fuzzing that end in every way there is; processes of their own import them by name."""

import os
import random
import time
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.worker import made
from federation.contract.errors import InputError

ENDINGS = (b"taken", b"refused", b"raised", b"large", b"hidden", b"endless", b"asleep", b"ended")


class Endings(Target):
    """Its inputs say how they end."""

    name: ClassVar[str] = "endings"
    count: ClassVar[int] = len(ENDINGS)

    def seeds(self) -> Sequence[Input]:
        return [Input("by+name", b"taken")]

    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        return Input("by+name", source.choice(ENDINGS))

    def attempt(self, given: Input) -> str:
        match given.content:
            case b"refused":
                raise InputError("one sentence")
            case b"raised":
                raise KeyError("nobody foresaw this")
            case b"large":
                np.zeros(2**40)
            case b"hidden":
                try:
                    np.zeros(2**40)
                except MemoryError as error:
                    raise InputError("there is no memory") from error
            case b"endless":
                while True:
                    pass
            case b"asleep":
                time.sleep(1000)
            case b"ended":
                os.abort()
        return "as it was"


class Drawn(Target):
    """Inputs are numbers, each made from one before; each is at a place of its own."""

    name: ClassVar[str] = "drawn"
    count: ClassVar[int] = 10

    def seeds(self) -> Sequence[Input]:
        return [Input("number", b"1")]

    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        start = int(source.choice(known).content)
        return Input("number", str(start * source.randint(1, 3)).encode())

    def attempt(self, given: Input) -> str:
        number = int(given.content)
        if number > 3**5:  # only from inputs that were found on the way
            raise KeyError(number)
        return f"the number {number}"


def seed_with_all_endings(folder, count):
    """A seed whose first `count` inputs end in every way."""
    target = Endings(folder)
    known = target.seeds()
    return next(
        seed for seed in range(10**6)
        if {made(target, known, 1, seed, number).content for number in range(count)} == {*ENDINGS}
    )  # fmt: skip
