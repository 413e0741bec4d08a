"""Public numbers of a world, from which a protocol says what it will promise before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from federation.contract.trust import COLLUDING

QUORUM = 0.5  # of the parties, unless another share is declared


@dataclass(frozen=True)
class PublicNumbers:
    """What is known without a look at private data; None where it is not known yet, as before any data is read.

    `features` are those behind the public feature map, `public_rows` the auxiliary rows, `bags`, `smallest_bag`,
    `largest_bag`, `common_bags` and `rows_per_person` as in `aggregator.world.plan.WorldPlan`. `delta` is the declared
    one, `draws` how many noise draws of a release are asked for.

    The others are for expectations alone. `rows` are the private rows of all parties together, `quorum` and `colluding`
    as in that plan. What somebody knows of the data from elsewhere: `attainable`, the accuracy that can be had without
    noise, `majority`, the share of the most frequent class, `residual`, the variance of labels around the best linear
    model, `traces`, by shape that of the noise on label sums over public rows, and `spectrum`, of public rows of norm 1
    behind the map of `mean_operator` the second moments along their principal directions.
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
    common_bags: bool | None = None
    label_range: tuple[float, float] | None = None
    rows: int | None = None
    quorum: float = QUORUM
    colluding: float = COLLUDING
    attainable: float | None = None
    majority: float | None = None
    residual: float | None = None
    traces: Mapping[str, float] = field(default_factory=dict)
    spectrum: tuple[float, ...] = ()


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
