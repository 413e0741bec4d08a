"""Options of protocols that form bags of a party's rows."""

from __future__ import annotations

from federation.contract.errors import InputError

BAGS_APART = (
    "every party forms bags of its own rows at random, so that its first bag has nothing in common with the first one "
    "of another, and a sum over parties would mix them; use trust: none, where every party hides its own labels, or "
    "label_sums, which needs one sum only"
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
