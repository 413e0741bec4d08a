"""Words and limits of scenario files that simulations read too: light to import, as every worker does."""

from collections.abc import Sequence
from typing import Literal

Kind = Literal["flip", "random", "target", "malformed", "oversized"]  # of attack
BY = "by"
MAJORITY, PROPORTIONS = "majority", "proportions"
PRESCRIBED = (MAJORITY, PROPORTIONS)  # partitions that say what is in each bag
BY_CLASS = ("dirichlet", *PRESCRIBED)  # partitions that need classes
LEAST, MOST = 1e-6, 1e6  # of a skew's number; nothing changes beyond
MOST_TARGET_ROWS = 1000  # of a target set whose size is not given
NEXT = "next"  # the test rows of a release where rows arrive over time
PERIOD = "period"  # the column of results that says on which period a release was tested
EVERY, ALL = "every", "all"  # a span, and a window without an end
Span = Literal["day", "week", "month", "quarter", "year"]  # of a calendar
MOST_PERIODS = 1000
SHARES = tuple(round(0.1 * tenths, 1) for tenths in range(1, 10))  # of the class that varies over target sets

_ROUNDING = 1e-9  # by which shares written with few digits may miss their sum


def sum_to_one(shares: Sequence[float]) -> bool:
    """Whether shares are those of a whole.

    Examples:
        >>> sum_to_one([0.1] * 10), sum_to_one([0.1] * 9)
        (True, False)
    """
    return abs(sum(shares) - 1) <= _ROUNDING * len(shares)
