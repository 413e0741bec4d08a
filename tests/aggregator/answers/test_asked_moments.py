"""Who collects a noisy sum, and what it promises, follows from whether its noise is shared."""

from __future__ import annotations

import pytest
from support.two_class_questions import moment

from aggregator.collectors.row_sums import MomentAnswers, SharedMoments, asked_moments
from aggregator.contract.ledger import LOCAL, summed
from federation.contract.guarantee import Guarantee, NoGuarantee


@pytest.mark.parametrize(("contributors", "collector"), [(0, MomentAnswers), (2, SharedMoments)])
def test_noise_is_each_partys_or_shared(make_plan, contributors, collector):
    plan, question = make_plan(parties=4, quorum=0.9), moment("gaussian", contributors=contributors)
    asked, promised = asked_moments(question, None, plan)
    assert asked.question is question
    assert type(asked.collector) is collector
    assert isinstance(promised, Guarantee)
    whose = summed(plan, question.mechanism().additive) if contributors else LOCAL
    assert whose in promised.assumptions


def test_without_noise_answers_are_summed_as_they_come_and_promise_nothing(make_plan):
    asked, promised = asked_moments(moment("off"), None, make_plan(parties=4))
    assert isinstance(promised, NoGuarantee)
    assert type(asked.collector) is MomentAnswers
