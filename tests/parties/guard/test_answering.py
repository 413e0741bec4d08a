"""Whatever a party is asked, its node answers in one order: size, agreement, permission, payment, and only then rows.

Otherwise how the reading of a row ends, or that it ends, would be free to see.
"""

import json
import os
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from support.questions import PRIVATE, PUBLIC, TRUSTED
from support.two_class_cohorts import PARTIES, cohort, deployed
from support.two_class_questions import marginals, moment, unseeded, wide

from federation.contract.declared import NOTHING, Declared
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.limits import CODE, Limits
from federation.contract.question import Field, Question, ReleaseId
from federation.contract.randomness import NoiseBits
from federation.contract.reference import Reference
from federation.contract.submission import Submission
from parties.guard import answering
from parties.guard.answering import answered
from parties.guard.registry import kinds
from parties.holdings.cohort import Cohort


class Unreadable:
    """A provider whose party cannot be read."""

    def holdings(self, party: int) -> None:
        raise OSError("the table of this party is gone")


class Touched(BaseException):
    """What no handler of a party's errors catches: a row was asked for."""


class Untouchable:
    """A provider of rows and evaluation rows that nobody may ask for."""

    def holdings(self, party: int) -> None:
        raise Touched

    def evaluation(self) -> None:
        raise Touched


def by_kind(questions):
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.kind)


def node(tmp_path, provider="Untouchable", epsilon=5.0, **config):
    allowance = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": epsilon, "delta": 1e-3})
    given = {"allowance": allowance, "public_features": True, **config}
    return Cohort(Reference(f"{__name__}:{provider}").to_json(), 4, 1, None, **given)


@by_kind(PRIVATE)
def test_an_answer_is_paid_for_before_a_row_is_read(tmp_path, question):
    answer = answered(node(tmp_path, "Unreadable"), question)
    assert answer.failures == {4: "the party could not answer"}
    [paid] = json.loads((tmp_path / "spent.json").read_text())["4"]
    assert paid["epsilon"] == pytest.approx(1.0)
    assert (paid["release"], paid["answered"]) == (question.release.name, [0])


@by_kind(PRIVATE)
def test_all_parties_of_a_node_have_paid_before_a_row_of_any_is_read(tmp_path, question):
    with pytest.raises(Touched):
        answered(replace(node(tmp_path), count=3), question)
    spent = json.loads((tmp_path / "spent.json").read_text())
    assert {party: [paid["answered"] for paid in known] for party, known in spent.items()} == {
        "4": [[0]], "5": [[0]], "6": [[0]],
    }  # fmt: skip


@by_kind(PRIVATE)
def test_where_a_payment_cannot_be_written_nobody_answers(tmp_path, monkeypatch, question):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        answered(replace(node(tmp_path), count=3), question)


def test_every_installed_question_is_among_them():
    private, others = {question.kind for question in PRIVATE}, {question.kind for question in (*PUBLIC, *TRUSTED)}
    assert private | others == set(kinds())
    assert not private & others


@by_kind(PRIVATE)
def test_a_nodes_answer_is_bounded_agreed_on_permitted_and_paid_for_before_a_row_is_touched(tmp_path, question):
    """Of several faults the first in this order is told, and until the last is mended nobody has paid."""
    ledger = tmp_path / "spent.json"
    faulty = node(tmp_path, epsilon=0.5, limits=Limits(1), declared=Declared(classes=2, most_rows=10**6))
    with pytest.raises(InputError, match=f"'{question.kind}' is too large"):
        answered(faulty, replace(question, seeded=True))
    mended = replace(faulty, limits=CODE)
    if question.kind != "error_marginals":  # it takes nothing for granted
        with pytest.raises(InputError, match="this side declares"):
            answered(mended, replace(question, seeded=True))
    mended = replace(mended, declared=NOTHING)
    with pytest.raises(InputError, match="outside a simulation noise has no seed"):
        answered(mended, replace(question, seeded=True))
    assert not ledger.exists()
    assert answered(mended, question).failures == {4: "the party could not answer"}  # above its allowance
    assert not ledger.exists()
    with pytest.raises(Touched):
        answered(node(tmp_path), question)
    assert [paid["release"] for paid in json.loads(ledger.read_text())["4"]] == [question.release.name]


@by_kind([*PUBLIC, *TRUSTED])
def test_answers_without_noise_are_bounded_before_a_row_is_touched(tmp_path, question):
    for allowance in (None, node(tmp_path).allowance):
        with pytest.raises(InputError, match=f"'{question.kind}' is too large"):
            answered(node(tmp_path, limits=Limits(1), allowance=allowance), question)
    with pytest.raises(Touched):
        answered(node(tmp_path, allowance=None), question)


@by_kind([*PUBLIC, *TRUSTED])
def test_answers_without_noise_are_agreed_on_before_a_row_is_touched(tmp_path, question):
    for seed in (None, 1):
        told = replace(node(tmp_path, declared=Declared(classes=2), allowance=None), seed=seed)
        with pytest.raises(InputError, match="takes classes to be 3, this side declares 2"):
            answered(told, question)
        with pytest.raises(Touched):
            answered(replace(told, declared=Declared(classes=3)), question)


@by_kind([*PRIVATE, *PUBLIC, *TRUSTED])
def test_a_simulations_party_is_bounded_too(tmp_path, question):
    with pytest.raises(InputError, match=f"'{question.kind}' is too large"):
        answered(replace(node(tmp_path, limits=Limits(1), allowance=None), seed=1), question)


@by_kind(TRUSTED)
def test_a_node_with_an_allowance_answers_nothing_without_noise(tmp_path, question):
    """Not even where it is spent, or where features are public: what is learned goes to whoever asks."""
    with pytest.raises(InputError, match="under a guarantee only; without an allowance it trusts the aggregator"):
        answered(node(tmp_path, epsilon=0.0), question)
    assert not (tmp_path / "spent.json").exists()


@by_kind(TRUSTED)
def test_an_answer_on_trust_is_paid_for_before_a_row_is_touched(tmp_path, question):
    allowance = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": 0, "delta": 0, "trusted_answers": 1})
    with pytest.raises(InputError, match=f"'{question.kind}' is too large"):
        answered(node(tmp_path, limits=Limits(1), allowance=allowance), question)
    with pytest.raises(InputError, match="this side declares"):
        answered(node(tmp_path, declared=Declared(classes=17), allowance=allowance), question)
    assert not (tmp_path / "spent.json").exists()
    with pytest.raises(Touched):
        answered(node(tmp_path, allowance=allowance), question)
    assert json.loads((tmp_path / "spent.json").read_text()) == {"4": [{"trusted": question.kind}]}
    with pytest.raises(BudgetExceededError, match="has given 1 of 1 answers without noise"):
        answered(node(tmp_path, allowance=allowance), question)
    with pytest.raises(Touched):  # in a simulation nobody pays
        answered(replace(node(tmp_path, allowance=allowance), seed=1), question)


@by_kind(PUBLIC)
def test_features_stay_where_they_are_not_declared_public(tmp_path, question):
    with pytest.raises(InputError, match="this node keeps its features; set public-features"):
        answered(node(tmp_path, public_features=False), question)


@by_kind(PRIVATE)
def test_what_only_a_simulation_may_ask_touches_no_row(tmp_path, question):
    with pytest.raises(InputError, match="outside a simulation noise has no seed"):
        answered(node(tmp_path), replace(question, seeded=True))
    if question.kind != "error_marginals":  # of which two draws cannot be asked for at all
        with pytest.raises(InputError, match="every answer is given once"):
            answered(node(tmp_path), replace(question, draws=2))
    with pytest.raises(InputError, match="this node has no allowance"):
        answered(node(tmp_path, allowance=None), question)
    assert not (tmp_path / "spent.json").exists()


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_a_share_of_a_noise_leaves_a_simulation_only(tmp_path, noise):
    share = replace(moment(noise, contributors=7), seeded=False)
    with pytest.raises(InputError, match="no secure summation, and a share of the noise hides nothing by itself"):
        answered(node(tmp_path), share)
    assert not (tmp_path / "spent.json").exists()


@by_kind([question for question in PRIVATE if question.kind != "noisy_embeddings"])  # which always have noise
def test_an_answer_without_a_guarantee_leaves_a_simulation_only(tmp_path, question):
    exact = replace(question, noise=replace(question.noise, kind="off"))
    with pytest.raises(InputError, match="this node answers under a guarantee only: noise is off"):
        answered(node(tmp_path), exact)
    assert not (tmp_path / "spent.json").exists()
    with pytest.raises(Touched):
        answered(replace(node(tmp_path), seed=1), exact)


@by_kind(PRIVATE)
def test_in_a_simulation_nobody_pays(tmp_path, question):
    """Worlds that never happen together would be charged as if they did."""
    answer = answered(replace(node(tmp_path, "Unreadable"), seed=1), question)
    assert "is gone" in answer.failures[4]
    assert not (tmp_path / "spent.json").exists()


@pytest.mark.parametrize(
    ("seed", "seeded", "key"), [(7, True, (7, "a|query 1", 4)), (7, False, (None, "a|query 1", 4)),
                                (None, False, (None, "a|query 1", 4))],
)  # fmt: skip
def test_noise_is_keyed_by_the_query_of_a_release_and_the_party(tmp_path, monkeypatch, seed, seeded, key):
    taken = []
    monkeypatch.setattr(answering, "NoiseBits", lambda *given: taken.append(given) or NoiseBits(*given))
    question = replace(marginals(seeded=seeded), release=ReleaseId("a", 2, 1))
    answered(replace(node(tmp_path, "Unreadable"), seed=seed), question)
    assert taken == [key]


@pytest.mark.parametrize("question", [moment("gaussian", "row", 7), moment("gaussian", "row")])
def test_an_answer_carries_a_guarantee_where_it_keeps_one_by_itself(tmp_path, question):
    answer = answered(replace(node(tmp_path, "Unreadable"), seed=1), question)
    assert answer.guarantee == (None if question.contributors else question.promise())


@dataclass(frozen=True)
class Undecided(Question):
    """A question that does not say what its answers are for."""

    kind: ClassVar[str] = "undecided"

    def fields(self) -> dict[str, Field]:
        return {"value": Field(())}


@dataclass(frozen=True)
class Unknown(Undecided):
    """One that nothing is installed for."""

    kind: ClassVar[str] = "count"


def test_a_question_that_does_not_say_what_its_answers_are_for_is_not_answered(tmp_path, monkeypatch):
    monkeypatch.setattr(answering, "answerer", lambda kind: lambda cohort, question: pytest.fail("it was answered"))
    with pytest.raises(InputError, match="'undecided' does not say whether answers are private"):
        answered(node(tmp_path), Undecided())


def test_a_question_that_nothing_is_installed_for_is_named(tmp_path):
    with pytest.raises(InputError, match=r"question 'count' is not known; allowed: .*did you mean 'counts'"):
        answered(node(tmp_path), Unknown())


def test_what_is_gathered_has_the_declared_form_whoever_fails(tmp_path):
    cohort = Cohort("", 2, 3, 1)

    def act(party):
        if party == 3:
            raise ValueError("a torn page")
        return {"value": np.float64(party)}

    found = answering.gathered(cohort, Undecided(), act)
    assert isinstance(found, Submission)
    assert (found.kind, found.parties.tolist(), found.failures) == ("undecided", [2, 4], {3: "ValueError: a torn page"})
    assert found.arrays["value"].tolist() == [2.0, 4.0]
    nobody = answering.gathered(replace(cohort, first=3, count=1), Undecided(), act)
    assert (nobody.parties.shape, nobody.arrays["value"].shape) == ((0,), (0,))


@pytest.mark.parametrize("question", [marginals("pure", "label", "replace"), wide(moment())])
def test_a_deployed_party_keeps_features_that_are_not_public(tmp_path, question):
    with pytest.raises(InputError, match="keeps its features"):
        answered(deployed(tmp_path, public=False), unseeded(question))
    assert not (tmp_path / "spent.json").exists()
    by_row = replace(question, protect="row")
    assert answered(deployed(tmp_path, public=False), unseeded(by_row)).failures == {}


@pytest.mark.parametrize(("question", "name"), [(wide(moment(protect="row")), "sums"), (marginals(), "errors")])
def test_noise_is_another_for_each_party_and_repeats_with_a_seed_only(question, name):
    without = replace(question, noise=replace(question.noise, kind="off"))

    def noise(asked):
        return answered(cohort(), asked).arrays[name] - answered(cohort(), without).arrays[name]

    first = noise(question)
    assert len(np.unique(first.reshape(len(first), -1), axis=0)) == len(first) > 1
    np.testing.assert_array_equal(first, noise(question))
    other = replace(question, release=replace(question.release, name="another"))
    for fresh in (noise(other), noise(unseeded(question))):
        assert (fresh != first).mean() > 0.5


def test_a_deployed_party_answers_once_for_what_it_pays_and_never_for_nothing(tmp_path):
    question = unseeded(wide(moment()))
    with pytest.raises(InputError, match="every answer is given once"):
        answered(deployed(tmp_path), replace(question, draws=2))
    assert not (tmp_path / "spent.json").exists()
    for asked in (question, unseeded(marginals())):
        with pytest.raises(InputError, match="no allowance"):
            answered(Cohort(PARTIES, 0, 1, None, None, True), asked)


@pytest.mark.parametrize("noise", ["off", "pure"])
def test_a_deployed_party_gives_no_seeded_and_no_noiseless_answer(tmp_path, noise):
    question = marginals(noise)
    with pytest.raises(InputError):
        answered(deployed(tmp_path), unseeded(question) if noise == "off" else question)
