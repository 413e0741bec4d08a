"""An estimate in words: ranges of seconds, minutes or hours, bytes and mebibytes."""

from __future__ import annotations

from typing import Any

from scenarios.estimates.costs import Span
from scenarios.estimates.estimate import Estimate

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def seconds(value: float) -> str:
    """A time with two digits at most.

    Examples:
        >>> [seconds(value) for value in (0.04, 3.14, 95, 5000, 200_000)]
        ['0.04 s', '3.1 s', '95 s', '1.4 h', '2.3 days']
    """
    if value < 2 * _MINUTE:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    unit, name = next((unit, name) for unit, name in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")) if value >= unit)
    return f"{value / unit:.1f} {name}" if value < 10 * unit else f"{value / unit:.0f} {name}"


def between(span: Span) -> str:
    """A range, with what is likely.

    Examples:
        >>> between(Span(90, 100, 300)), between(Span(0, 0, 0))
        ('100 s (90 s to 5.0 min)', '0 s')
    """
    low, likely, high = map(seconds, (span.low, span.likely, span.high))
    return likely if low == likely == high else f"{likely} ({low} to {high})"


def size(value: float) -> str:
    """Bytes in the unit that suits.

    Examples:
        >>> size(258), size(2.58e9)
        ('258 bytes', '2.6 GB')
    """
    power = 0
    while value >= 1000 and power < len(_UNITS) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.0f} {_UNITS[power]}" if value >= 10 or not power else f"{value:.1f} {_UNITS[power]}"


def spoken(found: Estimate) -> dict[str, Any]:
    """The same as `Estimate.to_dict`, for people."""
    told: dict[str, Any] = {
        "seconds": {"all": between(found.all), **{name: between(span) for name, span in found.seconds.items()}},
        "bytes": {
            "each party sends": size(found.bytes_per_party),
            "all answers": size(found.answers),
            "all questions": size(found.questions),
        },
        "memory": {name: f"{peak:.0f} MiB" for name, peak in found.peak.items()},
        "largest": f"{found.largest}: {between(found.largest_seconds)} a split",
        "found": found.found,
    }
    if found.worker:
        told["memory"]["each worker"] = f"{found.worker:.0f} MiB"
    return {**told, "left out": list(found.missing)} if found.missing else told
