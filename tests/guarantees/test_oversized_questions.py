"""Whoever asks cannot make a party allocate, compute or pay for more than its code and its site allow."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import CODE, MOST_BAGS, Limits, PrivateQuestion
from federation.engines.codec import parts_of, read_again
from federation.queries.bags import Bags
from parties.guard.answering import answered, kinds
from parties.party_data.cohort import Cohort, Holdings
from parties.site.worker import cost_of

SITE = Limits(2**18)
MOST_MEMORY = 64 << 20  # bytes: the site's numbers a few times over, and what accountants take


class Party:
    """Rows of three classes in two bags, with real labels where they are asked for."""

    def holdings(self, party):
        rows = np.random.default_rng(party).normal(size=(40, 3))
        return Holdings(party, rows, np.arange(40) % 2, np.arange(40) % 2)

    def evaluation(self):
        return None


def deployed(limits=SITE):
    reference = Reference(f"{__name__}:Party").to_json()
    return Cohort(reference, 0, 1, None, public_features=True, limits=limits)


def ask(site, question, changes):
    """As a site does: what is refused is so before it has been paid for."""
    try:
        large = read_again(question, changes)
        cost_of(large, site)
    except InputError:
        return
    try:
        answered(replace(site, paid=True), large)
    except InputError:
        assert not isinstance(question, PrivateQuestion), f"{changes} was refused after the party had paid"


def integers(question):
    return [name for name, value in parts_of(question)[0].items() if type(value) is int]


def test_every_kind_of_question_is_tried():
    assert set(QUESTIONS) == set(kinds())


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("size", [2**19, 10**9, 10**30, -1])
def test_no_size_makes_a_party_take_more_than_its_site_allows(kind, size):
    question, site = QUESTIONS[kind], deployed()
    assert integers(question) or kind == "error_marginals"
    for name in integers(question):
        tracemalloc.start()
        try:
            ask(site, question, {name: size})
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < MOST_MEMORY, f"{name}={size} took {peak >> 20} MiB"


@pytest.mark.parametrize(("name", "size"), [("bags.count", 10**7), ("bags.classes", 10**30), ("draws", 10**12)])
def test_a_short_message_asks_for_no_gigabytes(name, size):
    """Of 190 bytes: ten million bags, or a number of classes that no loop over them would survive."""
    with pytest.raises(InputError):
        read_again(QUESTIONS["counts"], {name: size})


def test_bags_times_classes_and_feature_maps_are_bounded_before_anything_so_wide_is_made():
    Bags(MOST_BAGS // 2, 2)
    with pytest.raises(InputError):
        Bags(MOST_BAGS // 2, 3)
    description = json.dumps({"columns": 3, "steps": [{"kind": "polynomial", "degree": 3}] * 6})
    with pytest.raises(InputError, match=r"polynomial makes|features of a map"):
        read_again(QUESTIONS["rows"], {"feature_map": description})
    many = json.dumps({"columns": 3, "steps": [{"kind": "append", "value": 1.0}] * 100_000})
    with pytest.raises(InputError):
        read_again(QUESTIONS["rows"], {"feature_map": many})


def test_a_site_may_allow_more_or_less_and_one_payment_is_for_one_answer():
    large = read_again(QUESTIONS["private_labels"], {"rows.most": 2**19})
    with pytest.raises(InputError):
        cost_of(large, deployed())
    assert cost_of(large, deployed(CODE)).guarantee is not None
    assert not answered(replace(deployed(CODE), paid=True), large).failures
    # Else an aggregator would name one release of many queries, and average their noise away for the price of one.
    with pytest.raises(InputError, match="5"):
        read_again(QUESTIONS["counts"], {"release.queries": 5})
    assert read_again(QUESTIONS["error_marginals"], {"release.queries": 5}).payment().epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [kind for kind in QUESTIONS if isinstance(QUESTIONS[kind], PrivateQuestion)])
@pytest.mark.parametrize("epsilon", [1e300, 5e-324, 0.0, -1.0, float("inf"), float("nan")])
def test_extreme_epsilons_are_refused_in_a_sentence(kind, epsilon):
    try:
        question = read_again(QUESTIONS[kind], {"noise.epsilon": epsilon})
        promised = question.promise()
    except InputError:
        return
    assert promised.epsilon == epsilon  # what is accepted promises what was asked for
