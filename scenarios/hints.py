"""What a user should know before trusting a table of accuracies, from diagnostics that are public themselves."""

from __future__ import annotations

from collections.abc import Iterable

from scenarios.results import Row

SWAMPED = 1.0  # expected noise over the largest possible signal


def hints(rows: Iterable[Row]) -> list[str]:
    """One line when noise exceeds all signal that the default variant could have, at the epsilons where it does."""
    ratios: dict[tuple[str, float], list[float]] = {}
    for row in rows:
        if row["default"] and row["metric"] == "noise_to_signal":
            ratios.setdefault((row["variant"], row["epsilon"]), []).append(row["value"])
    swamped = {key: min(values) for key, values in ratios.items() if min(values) > SWAMPED}
    if not swamped:
        return []
    variant = next(iter(swamped))[0]
    listed = ", ".join(f"{epsilon:g} ({ratio:.1f} times)" for (_, epsilon), ratio in sorted(swamped.items()))
    return [
        f"{variant}: the noise exceeds the largest possible signal at epsilon {listed}; "
        "more parties, a larger epsilon, noise: gaussian or fewer dimensions would help"
    ]
