"""An estimate for people."""

from scenarios.estimates.estimate import PHASES, Estimate, Span, between, seconds, size, spoken


def found(**changes):
    span = Span(1.0, 2.0, 4.0)
    fields = {
        "seconds": dict.fromkeys(PHASES, span), "largest": "a=1", "largest_seconds": span, "bytes_per_party": 258,
        "answers": 2.58e9, "questions": 1e6, "peak": {"data": 100.4}, "worker": 0.0, "crowding": 1.0, "found": "so",
        "missing": (),
    }  # fmt: skip
    return Estimate(**{**fields, **changes})


def test_all_of_it():
    told = spoken(found())
    assert told["seconds"]["all"] == "12 s (6 s to 24 s)"
    assert told["bytes"] == {"each party sends": "258 bytes", "all answers": "2.6 GB", "all questions": "1.0 MB"}
    assert told["memory"] == {"data": "100 MiB"}
    assert told["largest"] == "a=1: 2 s (1 s to 4 s) a split"
    assert "left out" not in told


def test_workers_and_what_is_left_out_are_said_where_there_are_any():
    told = spoken(found(worker=50.0, missing=("a",)))
    assert told["memory"]["each worker"] == "50 MiB"
    assert told["left out"] == ["a"]


def test_units():
    assert [seconds(one) for one in (0, 119, 121, 59 * 60, 3600, 86400 * 20)] == [
        "0 s", "119 s", "2.0 min", "59 min", "1.0 h", "20 days",
    ]  # fmt: skip
    assert [size(one) for one in (0, 999, 1000, 5e16, 1e19)] == ["0 bytes", "999 bytes", "1.0 kB", "50 PB", "10000 PB"]
    assert between(Span(1, 2, 3)) == "2 s (1 s to 3 s)"
