"""Every line that a site writes down has words of its own."""

import pytest

from parties.site.accounts import printable, said

COST = {"epsilon": 1.0, "delta": 1e-6, "unit": "label", "adjacency": "replace"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            {"event": "charged", "table": "t", "trusted": False, "guarantee": COST},
            "charged table 't': epsilon 1, delta 1e-06 for one label (replace), by noise of this site",
        ),
        (
            {"event": "newest state", "by": "ada", "file": 7},
            "ada said that this copy of the state is the newest there is",
        ),
        (
            {"event": "charged", "table": "t", "trusted": True, "guarantee": COST},
            "charged table 't': epsilon 1, delta 1e-06 for one label (replace), if the aggregator adds its noise",
        ),
        (
            {"event": "charged", "table": "t", "trusted": False, "guarantee": COST, "sum of": 3},
            "charged table 't': epsilon 1, delta 1e-06 for one label (replace), by noise that 3 sites add together",
        ),
        (
            {"event": "answered in a secure sum", "kind": "sums, masked part of a secure sum", "bytes": 10},
            "answered 'sums, masked part of a secure sum': 10 bytes",
        ),
        (
            {"event": "told the sum of masks", "counted": 4, "of": 5, "bytes": 10},
            "told the sum of the masks of 4 of 5 sites: 10 bytes",
        ),
        ({"event": "start", "plan": "ab"}, "started, with the plan ab"),
        ({"event": "begun"}, "a question is being answered"),
        ({"event": "answered", "kind": "votes", "bytes": 10}, "answered 'votes': 10 bytes"),
        ({"event": "answered again"}, "sent again what was answered before"),
        ({"event": "refused", "why": "not signed", "times": 4}, "refused: not signed (4 times by now)"),
        ({"event": "refused", "why": "not signed", "times": 2}, "refused: not signed (2 times by now)"),
        ({"event": "refused", "why": "not signed", "times": 1}, "refused: not signed"),
        (
            {"event": "waits for approval", "kind": "votes"},
            "'votes' waits for approval, for a table as agreed, or for room on the disk",
        ),
        ({"event": "approved", "id": "ab", "by": "ada"}, "ab was approved by ada"),
        ({"event": "denied", "id": "ab", "by": "eve"}, "ab was denied by eve"),
        ({"event": "start", "plan": "0" * 64, "table": "t"}, f"started, with the table 't' and the plan {'0' * 64}"),
        ({"event": "stop"}, "stopped"),
        (
            {"event": "table", "table": "t", "rows": 64, "content": "1" * 64},
            f"table 't' was read: fewer than 64 rows, digest {'1' * 16}",
        ),
        ({"event": "same table", "table": "t", "as": "s", "by": "ada"}, "ada said that table 't' is the table 's'"),
        ({"event": "new table", "table": "t", "by": "ada"}, "ada said that table 't' is a new one"),
        ({"event": "of a later version"}, "of a later version"),
    ],
)
def test_a_line_has_words(line, words):
    assert said(line) == words


def test_nothing_moves_a_terminals_cursor():
    assert printable("a\x1b[2Jb\rc\u202ed\n") == "a [2Jb c d "
