"""Options of protocols that form bags of a party's rows."""

from __future__ import annotations

from federation.contract.errors import InputError

# Of K parties with m sums over k rows each, weights of mean 0 and variance 1, residuals of variance s^2 and r features,
# least squares misses by r (k s^2 + t^2)/(K m k) where each sum has a noise of variance t^2, and where bags of the same
# number are added up under one such noise by r (K k s^2 + t^2)/(m K k).
BAGS_APART = (
    "bags are formed at random, and adding those of several parties under one noise tells less than each with a noise "
    "of its own: what the noise gets less, the equations get fewer; use trust: none, where every party hides its own "
    "labels, or label_sums, whose one sum gains by a shared noise"
)


def require_size(size: int, bags: int | None) -> None:
    """Raises `InputError` unless bags have rows and there are some."""
    if size < 1:
        raise InputError(f"size, the rows of a bag, must be a whole number from 1, got {size}")
    if bags is not None and bags < 1:
        raise InputError(f"bags must be a whole number from 1, or null for as many as there can be, got {bags}")


def bags_of_size(size: int, bags: int | None, least: int, most: int) -> tuple[int, int]:
    """(rows of every party that take part, bags that it forms at most), for parties of `least` to `most` rows.

    With a given number of bags the first is `least`; without one it is 0, as each party forms what it can. Raises
    `InputError` when they are too few.
    """
    if least // size < (bags or 1):
        raise InputError(
            f"{bags or 1} disjoint bags of size {size} need {(bags or 1) * size} rows, but some party has {least}; use "
            "smaller or fewer bags, or more rows per party"
        )
    return (least, bags) if bags else (0, most // size)
