"""Which baselines stand beside the protocols of a scenario that says nothing of them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from aggregator.contract import registry
from federation.contract.errors import InputError
from scenarios.settings.protocol_options import CONSTANT, INDIVIDUAL, POOLED, task


def baselines_beside(kinds: Sequence[Any], alone: bool) -> list[str]:
    """The baselines of the task of these kinds that are not among them; none where only baselines are.

    `alone`: there is one party, who has all rows that there are, so that it says what `pooled` does.

    Examples:
        >>> baselines_beside(["label_sums", "pooled"], alone=False), baselines_beside(["pooled"], alone=False)
        (['constant'], [])
    """
    known = registry.protocol_names()
    with contextlib.suppress(InputError):  # a protocol that cannot be used, as `Protocol.parse` will say
        if chosen := [kind for kind in kinds if kind in known]:
            wanted = task(chosen).baselines - ({INDIVIDUAL} if alone else set())
            return [kind for kind in (CONSTANT, POOLED, INDIVIDUAL) if kind in wanted and kind not in kinds]
    return []
