"""Public numbers of a world, from which a protocol says what it will promise before anything is asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublicNumbers:
    """What is known without a look at private data; None where it is not known yet, as before any data is read.

    `features` are those behind the public feature map, `public_rows` the auxiliary rows, `bags`, `smallest_bag`,
    `largest_bag` and `rows_per_person` as in `aggregator.world.plan.WorldPlan`. `delta` is the declared one, `draws`
    how many noise draws of a release are asked for.
    """

    delta: float
    draws: int = 1
    parties: int | None = None
    classes: int | None = None
    features: int | None = None
    public_rows: int | None = None
    bags: int | None = None
    smallest_bag: int | None = None
    largest_bag: int | None = None
    rows_per_person: int = 0
    label_range: tuple[float, float] | None = None


def product(*sizes: int | None) -> int | None:
    """The product of sizes, None where one is not known.

    Examples:
        >>> product(3, 512), product(3, None)
        (1536, None)
    """
    whole = 1
    for size in sizes:
        if size is None:
            return None
        whole *= size
    return whole
