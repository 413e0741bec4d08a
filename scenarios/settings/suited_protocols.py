"""Which protocols keep a wish: what is protected, whom all trust, and what the labels are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from aggregator.advice.ranking import Advice, Trust, rank
from federation.contract.errors import InputError

Protect = Literal["party", "person", "row", "label"]

_OPTIONS = {"bag_size": "size"}  # as protocols name them
_IMPLIED = ("repaired",)  # what a protocol's default is already
_FEW = 3  # of the leading mechanisms


def advised_options(advice: Advice) -> dict[str, Any]:
    """The options of an advised mechanism as the protocol of its name has them.

    Examples:
        >>> advised_options(rank(20_000, 10, parties=20, epsilon=1.0, delta=0)[0])
        {'shape': 'optimal', 'noise': 'pure'}
    """
    return {_OPTIONS.get(key, key): value for key, value in advice.options.items() if key not in _IMPLIED}


def advised_protocols(advice: Sequence[Advice]) -> list[dict[str, Any]]:
    """The leading advised mechanisms as entries of a scenario."""
    return [{"kind": one.mechanism, **advised_options(one)} for one in advice[:_FEW]]


def for_classes(protect: Protect, trust: Trust, classes: int) -> tuple[list[dict[str, Any]], str]:
    """(entries of a scenario, why these) to learn a classifier of so many classes.

    Raises `InputError`, which names the nearest thing there is, where nothing keeps the wish.

    Examples:
        >>> for_classes("party", "aggregator", 3)[0], for_classes("row", "none", 2)[0]
        ([{'kind': 'soft_vote'}], [{'kind': 'mean_operator', 'protect': 'row'}])
    """
    if protect in ("party", "person"):
        if trust == "none":
            raise InputError(
                f"--protect {protect} --trust none: nothing here hides all that a {protect} holds without an "
                "aggregator that all trust; the nearest is --protect row --trust none, where every party adds noise "
                "of its own and each row is protected by itself"
            )
        why = "all that a party holds may change, and the released model hardly does; the aggregator adds the noise"
        return [{"kind": "soft_vote"}], why
    if classes != 2:
        raise InputError(
            f"--protect {protect}: what protects single {protect}s learns to tell two classes apart, and the label has "
            f"{classes}; name those that count as one of two with --positive, or use --protect party"
        )
    noise = "the provider of all rows adds noise once" if trust == "aggregator" else "every party adds its own noise"
    if protect == "label":
        return [{"kind": "mean_operator"}], f"features are public, labels are not; {noise}"
    return [{"kind": "mean_operator", "protect": "row"}], f"whole rows are hidden, each by itself; {noise}"


def for_real_labels(
    protect: Protect,
    trust: Trust,
    label_range: tuple[float, float],
    *,
    rows: int,
    features: int,
    parties: int,
    epsilon: float,
) -> tuple[list[dict[str, Any]], str]:
    """(entries of a scenario, why these) to learn a regression; labels have the public `label_range`.

    For labels the leading mechanisms by public numbers: private `rows`, `features` with the constant, `parties`, and
    the first `epsilon`. Raises `InputError`, which names the nearest thing there is, where nothing keeps the wish.
    """
    if protect in ("party", "person"):
        raise InputError(
            f"--protect {protect}: nothing here learns a regression that hides all that a {protect} holds; the nearest "
            "is --protect row, which hides every row by itself"
        )
    if protect == "row":
        why = "whole rows are hidden, each by itself, by Gaussian noise on X'X, X'y and y'y"
        return [{"kind": "label_sums", "protect": "row"}], why
    advice = rank(rows, features, parties, epsilon, 1e-6, label_range=label_range, trust=trust)
    return advised_protocols(advice), f"the first by public numbers: {advice[0].why}"
