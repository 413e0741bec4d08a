"""What releases over periods have spent on one unit, in words: the entry `over_periods` of a run's ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def spent_over_periods(ledger: Mapping[str, Any], variant: str | None = None, *, parts: bool = True) -> list[str]:
    """A sentence for each variant, or one alone, at each epsilon, and each unit; none where there are no periods.

    Without `parts` only for the unit that the releases themselves protect, not for what is a part of it.

    Examples:
        >>> said = {"swept": {}, "variant": "soft_vote", "each": 0.3, "releases": 7, "about_one": 7, "unit": "party"}
        >>> said |= {"adjacency": "replace", "epsilon": 2.1, "delta": 0.0, "budget": {"epsilon": 3.0, "delta": 1e-6}}
        >>> print(*spent_over_periods({"over_periods": {"spent": [said]}}))
        soft_vote at ε = 0.3 in 7 periods: ε = 2.1, δ = 0 for one party (replace), which has part in 7 of them at most;
        the budget is ε = 3, δ = 1e-06
    """
    told, first = [], ""
    for one in ledger.get("over_periods", {}).get("spent", ()):
        place = "".join(f"{key} = {value}, " for key, value in one["swept"].items())
        what = f"{place}{one['variant']} at ε = {one['each']:g} in {one['releases']} periods"
        if (variant or one["variant"]) == one["variant"] and (parts or what != first):
            limit = one["budget"]
            kept = f"; the budget is ε = {limit['epsilon']:g}, δ = {limit['delta']:g}" if limit else ""
            told.append(
                f"{what}: ε = {one['epsilon']:.6g}, δ = {one['delta']:.3g} for one {one['unit'].replace('_', ' ')} "
                f"({one['adjacency']}), which has part in {one['about_one']} of them at most{kept}"
            )
        first = what
    return told
