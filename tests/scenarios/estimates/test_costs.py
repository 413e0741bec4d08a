"""From rates to an engine: workers side by side, the aggregator as their bound, messages, memory."""

from dataclasses import replace

import pytest

from scenarios.estimates.estimate import Site, Span, beside, cost
from scenarios.estimates.rates import Line, Rates


def line(fixed, each):
    return Line(fixed, each, each, each)


RATES = Rates(
    answering=line(0.0, 1e-3), gathering=line(0.0, 1e-6), release=line(2.0, 0.0), scoring=line(3.0, 0.0),
    sent=line(0.0, 100.0), held=line(1e6, 2.0), alone=0.0, once=0.5, crowding=1.0, asked=1000, messages=2,
    peaks=dict.fromkeys(("data", "collect", "release", "scoring"), 200.0), served=(32, 1000), missing=(),
)  # fmt: skip
INLINE = Site("inline", 1, 2)


def test_inline_all_parties_are_served_one_after_another():
    found = cost(RATES, 1_000_000, 1000, 0.0, INLINE)
    assert found.seconds["collect"].likely == pytest.approx(1000 + 1 + 2000 * 0.0002)
    assert (found.seconds["release"].likely, found.seconds["scoring"].likely) == (2.0, 3.0)
    assert (found.bytes_per_party, found.answers, found.questions) == (100.0, 1e8, 1e3)
    assert found.aggregator["collect"] == pytest.approx(200 + 2e6 / 2**20 + 2000 * 4e-3)
    assert found.worker == 0.0


@pytest.mark.parametrize(
    ("site", "gathering", "expected"),
    [
        (Site("ray", 10, 100), 1e-6, 100.0),  # workers bound it
        (Site("ray", 10, 5), 1e-6, (1000 + 1 + 2.1) / 5),  # processors do, which they share
        (Site("ray", 1000, 1001), 1e-5, 10 + 2.1),  # the aggregator does, which takes in all answers
    ],
)
def test_workers_processors_or_the_aggregator_bound_what_goes_side_by_side(site, gathering, expected):
    rates = replace(RATES, gathering=line(0.0, gathering))
    found = cost(rates, 1_000_000, 1000, 7.0, site).seconds["collect"].likely
    assert found == pytest.approx(7.0 + expected, rel=1e-3)  # 7 s: workers load their data


def test_parties_on_their_own_are_all_in_the_first_nodes():
    rates = replace(RATES, alone=500.0)
    found = cost(rates, 1_000_000, 1000, 0.0, Site("ray", 100, 200)).seconds["collect"].likely
    assert found == pytest.approx(501.0)


def test_a_busy_machine_widens_the_range_upwards():
    found = cost(replace(RATES, crowding=3.0), 1000, 1000, 0.0, INLINE).seconds["scoring"]
    assert (found.low, found.likely) == (pytest.approx(2.4), pytest.approx(9.0))
    assert found.high > 9.0


def test_what_is_done_once():
    found = beside(Site("ray", 2, 2), 4.0, 1.0, RATES)
    assert found["data"] == Span(4.0, 5.0, 6.25)
    assert found["start"].low < found["start"].likely < found["start"].high
    assert set(found) == {"start", "data", "report"}


def test_where_one_release_stands_for_all_the_range_is_wider():
    sure, rough = (cost(replace(RATES, rough=one), 1000, 1000, 0.0, INLINE).seconds["release"] for one in (False, True))
    assert rough.low < sure.low < sure.likely == rough.likely < sure.high < rough.high
