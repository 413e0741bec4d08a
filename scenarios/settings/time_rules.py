"""What does not go together with rows that arrive over time, and what is for these alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scenarios.settings.division import partition_kind
from scenarios.settings.sections import Data, Parties, Trials
from scenarios.settings.values import all_values
from scenarios.settings.words import ALL, BY, NEXT
from scenarios.settings.yaml_rules import KeyPath


def untimely(data: Data, parties: Parties, trials: Trials) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of what does not go together with data.time, or is for it alone."""
    tests, given = all_values(data.test), all_values(data.auxiliary)
    if data.time is None:
        if trials.periods is not None:
            yield ("trials", "periods"), "needs data.time, the column that says when each row arrived"
        if trials.window != ALL:
            yield ("trials", "window"), "is for rows that arrive over time; name their column in data.time or remove it"
        if NEXT in tests:
            yield ("data", "test"), "next is the period that follows, and needs data.time; give a count or a fraction"
        return
    if trials.periods is None:
        text = "missing; data.time needs periods, such as a number of them, {every: month} or a list of their starts"
        yield ("trials", "periods"), text
    if tests != (NEXT,):
        other = next(value for value in tests if value != NEXT)
        text = f"must be {NEXT} with data.time, as a release is tested on the rows of the next period, got {other}"
        yield ("data", "test"), text
    if any(value == "official" or isinstance(value, Mapping) for value in given):
        text = (
            "must be a count or a fraction of each period's rows, or a file, with data.time: other public rows may be "
            "of later periods"
        )
        yield ("data", "auxiliary"), text
    if parties.common_bags:
        yield ("parties", "common_bags"), "with data.time every period has bags of its own; remove it"
    if BY in map(partition_kind, all_values(parties.partition)) and all_values(parties.count) != (None,):
        text = "with {by: COLUMN} and data.time all groups are parties, who may come and go; remove it"
        yield ("parties", "count"), text
