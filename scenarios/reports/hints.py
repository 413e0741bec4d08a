"""What a user should know before trusting a table of results, from diagnostics that are public themselves."""

from __future__ import annotations

from collections.abc import Iterable

from scenarios.scores.results import NOBODY, Row

_HELP = {
    "soft_vote": "more parties, a larger epsilon, Gaussian noise or fewer dimensions",
    "class_ratio": "larger bags, a larger epsilon or fewer classes",
}
SWAMPED = 1.0  # expected noise over the largest possible signal


def hints(rows: Iterable[Row]) -> list[str]:
    """One line when noise exceeds all signal that the leading variant could have, at the epsilons where it does.

    The leading variant is the default, or else the first with a guarantee that says how noisy it is.
    """
    known = [row for row in rows if row["metric"] == "noise_to_signal" and row["unit"] != NOBODY]
    leading = next((row["variant"] for row in sorted(known, key=lambda row: not row["default"])), None)
    ratios: dict[float, list[float]] = {}
    for row in known:
        if row["variant"] == leading:
            ratios.setdefault(row["epsilon"], []).append(row["value"])
    swamped = [(epsilon, min(values)) for epsilon, values in sorted(ratios.items()) if min(values) > SWAMPED]
    if not swamped:
        return []
    remedy = _HELP.get(next(row["protocol"] for row in known if row["variant"] == leading), _HELP["soft_vote"])
    listed = ", ".join(f"{epsilon:g} ({ratio:.1f} times)" for epsilon, ratio in swamped)
    return [f"{leading}: the noise exceeds the largest possible signal at epsilon {listed}; {remedy} would help"]
