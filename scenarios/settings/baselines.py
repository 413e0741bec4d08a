"""Which baselines stand beside the protocols of a scenario that says nothing of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aggregator.contract import registry
from aggregator.trial.plan import VariantPlan
from federation.contract.errors import FederationError
from federation.contract.query import OFF
from scenarios.settings.protocol_options import (
    BASELINES,
    CONSTANT,
    INDIVIDUAL,
    NOISE_FREE,
    POOLED,
    Protocol,
    default_kind,
    is_default,
    task,
    without_noise,
)


def baselines_beside(entries: Sequence[Mapping[str, Any]], alone: bool) -> list[str]:
    """The baselines that suit entries of `protocols` and are not among them; none where only baselines are.

    `alone`: there is one party, who has all rows that there are, so that it says what `pooled` does.

    Examples:
        >>> baselines_beside([{"kind": "label_sums"}, {"kind": "pooled"}], alone=False)
        ['constant', 'noise_free']
        >>> baselines_beside([{"kind": "pooled"}], alone=False)
        []
    """
    kinds, known = [entry.get("kind") for entry in entries], registry.protocol_names()
    chosen = [kind for kind in kinds if kind in known]
    beside: list[str] = []
    with contextlib.suppress(FederationError, ValueError):  # an entry that cannot be used, as a scenario's check says
        if chosen:
            wanted = task(chosen).baselines - ({INDIVIDUAL} if alone else set())
            beside = [kind for kind in (CONSTANT, POOLED, INDIVIDUAL) if kind in wanted and kind not in kinds]
            if NOISE_FREE not in kinds and noise_free([Protocol.parse(dict(entry)) for entry in entries]):
                beside.append(NOISE_FREE)
    return beside


def noise_free(protocols: Sequence[Protocol]) -> tuple[str, VariantPlan] | None:
    """The variant that the baseline `noise_free` stands for, and what is released in its place: it with `noise: off`.

    The variant is the default, or else the first that adds noise. None where there is none, or its protocol has no
    such option. Raises `InputError` for a protocol that cannot be used.
    """
    first = default_kind(protocols)
    noisy = [
        (one, options)
        for one in protocols
        for options, _ in one.choices()
        if one.kind not in BASELINES and not without_noise(one.kind, options)
    ]
    if not noisy:
        return None
    own = ((one, options) for one, options in noisy if one.kind == first and is_default(one.kind, options))
    protocol, chosen = next(own, noisy[0])
    options = {**chosen, "noise": OFF}
    with contextlib.suppress(FederationError, TypeError, ValueError):
        if without_noise(protocol.kind, options):
            return protocol.named(chosen), VariantPlan(NOISE_FREE, protocol.kind, options, reference=True)
    return None


def unfounded(protocols: Sequence[Protocol]) -> Iterator[tuple[int, str]]:
    """(position, why) of a baseline `noise_free` that stands for nothing."""
    kinds = [one.kind for one in protocols]
    if NOISE_FREE in kinds and noise_free(protocols) is None:
        why = "the baseline noise_free is the first protocol without its noise, and no protocol here has noise"
        yield kinds.index(NOISE_FREE), f"{why} to leave out, or its options need some; remove it"
