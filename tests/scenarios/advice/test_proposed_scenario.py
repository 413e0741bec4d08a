"""The scenario that follows from advice."""

from dataclasses import replace

from support.refusals import refused

from aggregator.advice import Wish, rank
from aggregator.contract.protocol import Trust
from federation.contract.trust import TrustTerms
from scenarios.advice.proposed_scenario import FINALISTS, advised, checked, finalists
from scenarios.advice.target import of_numbers, of_scenario
from scenarios.settings.draft import Draft

LABEL = Wish("binary", "label", Trust.NONE, rows=12_000, features=50, terms=TrustTerms(100))


def test_it_has_the_finalists_and_says_why_and_a_wish_that_nothing_keeps_is_refused():
    subject = of_numbers(LABEL, "adult", "y", {})
    made, advice = advised(subject), rank(LABEL)
    assert made.plain["protocols"] == [one.entry for one in finalists(advice)]
    assert len(finalists(advice)) == min(FINALISTS, len(advice.ranked))
    assert "chosen by public numbers alone" in made.comments["protocols", 0][0]
    refused(None, advised, of_numbers(replace(LABEL, protect="party"), "adult", "y", {}))


def test_what_a_run_would_refuse_is_refused_before_it_is_written():
    subject = of_scenario("quickstart", replace(LABEL, task="binary"), None)
    checked(subject.write([{"kind": "soft_vote"}], "a reason"), subject)
    refused(None, checked, subject.write([{"kind": "mean_operator"}], "a reason"), subject)
    checked(Draft({"data": {}}, {}, ()), of_numbers(LABEL, "my.csv", "y", {}))  # of numbers nothing can be checked
