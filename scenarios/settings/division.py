"""The entries `data.auxiliary`, `parties.partition`, `parties.bags` and `trials.periods`: how rows are divided."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from scenarios.data.times import moment
from scenarios.settings.problems import rule
from scenarios.settings.values import (
    ONE_KEY,
    Count,
    Name,
    Positive,
    Share,
    Sweep,
    Told,
    list_of,
    read_as,
    word_or_number,
)
from scenarios.settings.words import LEAST, MOST, MOST_PERIODS, PROPORTIONS, Span, sum_to_one


def _of_a_whole(shares: list[float]) -> list[float]:
    if not sum_to_one(shares):
        raise ValueError
    return shares


def _equally_long(proportions: list[list[float]]) -> list[list[float]]:
    if len({len(shares) for shares in proportions}) > 1:
        raise rule("must list equally many shares for every bag")
    return proportions


_Skew = Annotated[
    float, Field(strict=True, ge=LEAST, le=MOST), Told(f"must be a number from {LEAST:g} to {MOST:g}"), Sweep()
]
_Minority = Annotated[
    float,
    Field(strict=True, ge=0, lt=0.5),
    Told("must be a number from 0 to below 0.5, the share of each class but one"),
    Sweep(),
]
_Shares = Annotated[
    list[Annotated[float, Field(strict=True, ge=0, le=1)]],
    Field(min_length=2),
    AfterValidator(_of_a_whole),
    Told("must be the shares of all classes, numbers from 0 that sum to 1"),
]


@with_config(ONE_KEY)
class _Dealt(TypedDict, total=False):
    """A way to deal rows, and its number, numbers or column."""

    by: Name
    dirichlet: _Skew
    quantity: _Skew
    majority: _Minority
    proportions: Annotated[
        list[_Shares],
        Field(min_length=1),
        list_of(1, "must be a list of bags, each a list of the shares of all classes, which sum to 1"),
        AfterValidator(_equally_long),
    ]


@with_config(ConfigDict(extra="forbid"))
class _ByColumn(TypedDict):
    by: Name


Partition = Annotated[
    str | Mapping[str, Any],
    word_or_number(
        Literal["iid"],
        _Dealt,
        "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA}, {majority: SHARE}, {proportions: [SHARES, ...]} or "
        "{by: COLUMN}",
    ),
]
Bags = Annotated[
    int | Mapping[str, str], read_as(Count | _ByColumn), Told("must be a whole number from 1, or {by: COLUMN}")
]

_Probability = Annotated[float, Field(strict=True, gt=0, lt=1)]
_Inclined = TypedDict("_Inclined", {"by": Name, "from": _Probability, "to": _Probability})


def _inclined(entry: _Inclined) -> _Inclined:
    if entry["from"] == entry["to"]:
        raise ValueError
    return entry


Auxiliary = Annotated[
    int | float | str | Mapping[str, Any],
    read_as(
        Share
        | Literal["official"]
        | Annotated[str, Field(strict=True, pattern=r"\.(csv|npz|parquet|svm|svmlight|CSV|NPZ|PARQUET)$")]
        | Annotated[with_config(extra="forbid")(_Inclined), AfterValidator(_inclined)]
    ),
    Told(
        "must be a count of rows (a whole number from 1) or a fraction between 0 and 1, official, a csv, npz, "
        "Parquet or svmlight file, or {by: COLUMN, from: PROBABILITY, to: PROBABILITY} with two different ones "
        "strictly between 0 and 1"
    ),
]


@with_config(ConfigDict(extra="forbid"))
class _Every(TypedDict):
    every: Span | Positive


def _rising(starts: tuple[float | str, ...]) -> tuple[float | str, ...]:
    found = [moment(str(start)) for start in starts]
    if len({dated for _, dated in found}) > 1 or not all(a < b for (a, _), (b, _) in pairwise(found)):
        raise ValueError
    return starts


_NumberOfPeriods = Annotated[int, Field(strict=True, ge=2, le=MOST_PERIODS)]
_Start = Annotated[float, Field(strict=True, allow_inf_nan=False)] | Name
_Starts = Annotated[tuple[_Start, ...], Field(min_length=2, max_length=MOST_PERIODS), AfterValidator(_rising)]
Periods = Annotated[
    int | tuple[float | str, ...] | Mapping[str, Any],
    read_as(_NumberOfPeriods | _Starts | _Every),
    Told(
        f"must be a number of periods of equal length from 2 to {MOST_PERIODS}, their starts in rising order, two or "
        "more numbers or ISO dates (2023-02-03, months 2023-02, weeks 2023-W07), or {every: SPAN} with day, week, "
        "month, quarter, year or a positive number"
    ),
]


def partition_kind(partition: str | Mapping[str, Any]) -> str:
    """`iid`, `dirichlet`, `quantity`, `majority`, `proportions` or `by`.

    Examples:
        >>> partition_kind({"dirichlet": 0.5})
        'dirichlet'
    """
    return partition if isinstance(partition, str) else next(iter(partition))


def swept_number(partition: str | Mapping[str, Any]) -> bool:
    """Whether a partition has a list of numbers, one after the other."""
    return isinstance(partition, Mapping) and isinstance(partition[partition_kind(partition)], tuple)


def label(entry: int | float | str | Mapping[str, Any]) -> int | float | str:
    """An entry as one cell of a results table: a number or word itself, else its key and value.

    Examples:
        >>> label({"dirichlet": 0.5}), label({"proportions": [[0.9, 0.1], [0.2, 0.8]]})
        ('dirichlet=0.5', 'proportions=0.9_0.1-0.2_0.8')
        >>> label({"by": "age", "from": 0.1, "to": 0.9}), label(40)
        ('by=age_0.1_0.9', 40)
    """
    if not isinstance(entry, Mapping):
        return entry
    (kind, value), *ends = entry.items()
    if kind == PROPORTIONS:
        value = "-".join("_".join(f"{share:g}" for share in shares) for shares in value)
    return "_".join([f"{kind}={value}", *(f"{end:g}" for _, end in ends)])
