"""Whatever a party is asked, its node answers in one order: size, agreement, permission, payment, and only then rows.

Otherwise how the reading of a row ends, or that it ends, would be free to see. Answers of other packages are checked
when a question comes, and a broken one costs no other.
"""

import re
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from support.packages import CAUSE, install
from support.questions import PRIVATE, PUBLIC, QUESTIONS, TRUSTED
from support.two_class_parties import cohort, deployed
from support.two_class_questions import marginals, moment, unseeded, wide

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import CODE as QUERY_CODE
from federation.contract.query import NOTHING, Declared, Field, Limits, PrivateQuestion, Question, ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.queries.additive import AdditiveQuestion
from federation.queries.votes import VectorNoise
from parties.guard import answering
from parties.guard.answering import answered, answerer, kinds, permitted, question_type, with_noise
from parties.party_data.cohort import Cohort


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


def node(provider="Untouchable", question=None, **config):
    """A site that has paid, and whose answer is masked where the question asks for a share."""
    masked = isinstance(question, PrivateQuestion) and question.shared
    given = {"public_features": True, "paid": True, "masked": masked, **config}
    return Cohort(Reference(f"{__name__}:{provider}").to_json(), 4, 1, None, **given)


@by_kind([*PRIVATE, *PUBLIC, *TRUSTED])
def test_an_answer_must_have_been_paid_for_before_a_row_is_touched(question):
    with pytest.raises(InputError):
        answered(node(question=question, paid=False), question)
    with pytest.raises(Touched):
        answered(node(question=question), question)
    # Whether a question may be answered is found without a row: a site charges for it then, and only then touches one.
    answer = permitted(node(question=question, paid=False), question)
    with pytest.raises(Touched):
        answer()
    # A simulation's party is bounded, too.
    with pytest.raises(InputError, match=f"'{question.kind}'"):
        answered(replace(node(limits=Limits(1)), seed=1), question)


def test_every_installed_question_is_among_them_and_named_by_its_answer():
    private, others = {question.kind for question in PRIVATE}, {question.kind for question in (*PUBLIC, *TRUSTED)}
    assert private | others == set(kinds())
    assert not private & others
    assert all(issubclass(question_type(kind), Question) and question_type(kind).kind == kind for kind in kinds())


@by_kind(PRIVATE)
def test_an_answer_is_bounded_agreed_on_permitted_and_paid_for_before_a_row_is_touched(question):
    """Of several faults the first in this order is told."""
    faulty = node(question=question, limits=Limits(1), declared=Declared(classes=2, most_rows=10**6), paid=False)
    with pytest.raises(InputError, match=f"'{question.kind}'"):
        answered(faulty, replace(question, seeded=True))
    mended = replace(faulty, limits=QUERY_CODE)
    if question.kind != "error_marginals":  # it takes nothing for granted
        with pytest.raises(InputError):
            answered(mended, replace(question, seeded=True))
    mended = replace(mended, declared=NOTHING)
    with pytest.raises(InputError, match="seed"):
        answered(mended, replace(question, seeded=True))
    with pytest.raises(InputError):
        answered(mended, question)
    with pytest.raises(Touched):
        answered(replace(mended, paid=True), question)


@by_kind([*PUBLIC, *TRUSTED])
def test_answers_without_noise_are_bounded_and_agreed_on_before_a_row_is_touched(question):
    for paid in (True, False):
        with pytest.raises(InputError, match=f"'{question.kind}'"):
            answered(node(limits=Limits(1), paid=paid), question)
    for seed in (None, 1):
        told = replace(node(declared=Declared(classes=2)), seed=seed)
        with pytest.raises(InputError, match=r"3.*2"):
            answered(told, question)
        with pytest.raises(Touched):
            answered(replace(told, declared=Declared(classes=3)), question)


@dataclass(frozen=True)
class Size(AdditiveQuestion):
    """How many rows a party has, twice."""

    kind, unit, numbers, sensitivity = "size", Unit.ROW, 2, 1.0


def test_an_additive_query_gets_the_exact_vector_in_every_draw_or_noise_of_its_own_in_each():
    vectors, draws = {3: np.array([5.0, 7.0])}, 40
    asked = Size(VectorNoise("pure", 2.0), release=ReleaseId("sizes"), draws=draws)
    plain = with_noise(replace(asked, noise=VectorNoise("off")), vectors.get)
    assert plain(3, NoiseBits(1, "unused"))["vector"].tolist() == [[5.0, 7.0]] * draws
    noisy = with_noise(asked, vectors.get)(3, NoiseBits(1, "party"))["vector"]
    np.testing.assert_array_equal(noisy, asked.mechanism().release(vectors[3], NoiseBits(1, "party"), draws))
    assert len(np.unique(noisy[:, 0])) == draws


@by_kind([question for question in QUESTIONS.values() if question.takes_features_as_public])
def test_features_stay_where_they_are_not_declared_public(question):
    with pytest.raises(InputError, match="public-features"):
        answered(node(public_features=False), question)


@pytest.mark.parametrize("question", [marginals("pure", "label", "replace"), wide(moment(protect="label"))])
def test_protecting_labels_alone_takes_features_to_be_public_and_protecting_rows_does_not(question):
    assert question.takes_features_as_public
    with pytest.raises(InputError, match="public-features"):
        answered(deployed(public=False), unseeded(question))
    by_row = replace(question, protect="row")
    assert not by_row.takes_features_as_public
    assert answered(deployed(public=False), unseeded(by_row)).failures == {}


@by_kind(PRIVATE)
def test_what_only_a_simulation_may_ask_touches_no_row_and_a_deployed_party_that_fails_says_no_more(question):
    with pytest.raises(InputError, match="seed"):
        answered(node(question=question), replace(question, seeded=True))
    if question.kind != "error_marginals":  # of which two draws cannot be asked for at all
        with pytest.raises(InputError):
            answered(node(question=question), replace(question, draws=2))
    assert answered(node("Unreadable", question), question).failures == {4: "the party could not answer"}
    assert "is gone" in answered(replace(node("Unreadable", paid=False), seed=1), question).failures[4]


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_a_share_of_a_noise_leaves_a_simulation_only(noise):
    share = replace(moment(noise, contributors=7), seeded=False)
    with pytest.raises(InputError):
        answered(node(), share)


@by_kind([question for question in [*PRIVATE, *TRUSTED, *PUBLIC] if not getattr(question, "shared", False)])
def test_what_is_no_share_of_a_noise_leaves_in_no_secure_sum(question):
    """Each party would add a whole noise, or none."""
    with pytest.raises(InputError):
        answered(node(question=question, masked=True), question)


@by_kind([question for question in PRIVATE if question.kind != "noisy_embeddings"])  # which always have noise
def test_an_answer_without_a_guarantee_leaves_a_simulation_only(question):
    exact = replace(question, noise=replace(question.noise, kind="off"))
    with pytest.raises(InputError, match=r"only.*noise"):
        answered(node(), exact)
    with pytest.raises(Touched):
        answered(replace(node(), seed=1), exact)


@pytest.mark.parametrize(
    ("seed", "seeded", "key"), [(7, True, (7, "a|query 1", 4)), (7, False, (None, "a|query 1", 4)),
                                (None, False, (None, "a|query 1", 4))],
)  # fmt: skip
def test_noise_is_keyed_by_the_query_of_a_release_and_the_party(monkeypatch, seed, seeded, key):
    taken = []
    monkeypatch.setattr(answering, "NoiseBits", lambda *given: taken.append(given) or NoiseBits(*given))
    question = replace(marginals(seeded=seeded), release=ReleaseId("a", 2, 1))
    answered(replace(node("Unreadable"), seed=seed), question)
    assert taken == [key]


@pytest.mark.parametrize("question", [moment("gaussian", "row", 7), moment("gaussian", "row")])
def test_an_answer_carries_a_guarantee_where_it_keeps_one_by_itself(question):
    answer = answered(replace(node("Unreadable"), seed=1), question)
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


def test_a_question_that_nothing_is_installed_for_or_that_does_not_say_what_it_is_for_is_not_answered(monkeypatch):
    with pytest.raises(InputError, match=r"count.*counts"):
        answered(node(), Unknown())
    with pytest.raises(InputError, match=r"vots.*votes"):
        answerer("vots")
    monkeypatch.setattr(answering, "answerer", lambda kind: lambda cohort, question: pytest.fail("it was answered"))
    with pytest.raises(InputError, match="undecided"):
        answered(node(), Undecided())


def test_what_is_gathered_has_the_declared_form_whoever_fails():
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


DOCUMENT = {
    "data": {"source": "breast_cancer", "auxiliary": 60},
    "parties": {"count": 3},
    "privacy": {"epsilon": 1},
    "trials": {"splits": 1, "noise": 1},
}


def test_what_cannot_be_imported_is_listed_and_named_when_it_is_used(broken_package):
    assert {"votes", "votes_of_theirs"} <= set(kinds())
    assert callable(answerer("votes"))
    for use in (answerer, question_type):
        with pytest.raises(InputError, match="'votes_of_theirs' of " + CAUSE.format("queries", "answer")):
            use("votes_of_theirs")


@pytest.mark.slow
def test_parties_answer_all_other_questions(broken_package):
    code = f"""if True:
        import scenarios
        from flwr.app import RecordDict
        from federation.engines.inline import open_grid
        from federation.engines.nodes import Placement
        from federation.contract.plugins import Reference
        from scenarios.runs import runner
        runner._draw = lambda *arguments: None
        scenarios.run({DOCUMENT}, out="out")
        grid = open_grid("inline")
        grid.assign(Placement(1, 1, Reference("builtins:dict"), 1))
        sent = grid.push_messages([grid.create_message(RecordDict(), "query.votes_of_theirs", 1, "")])
        [reply] = grid.pull_messages(sent)
        print(reply.error.reason)
        """
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=broken_package)
    assert re.search(r"votes_of_theirs.*Broken-Pack", told.stdout), told.stderr
    assert (broken_package / "out" / "results.csv").exists()


CODE = """
from dataclasses import dataclass
from typing import ClassVar
from federation.contract.query import Question, TrustedQuestion

class Undecided(Question):
    kind: ClassVar[str] = "undecided"

class Told(TrustedQuestion):
    kind: ClassVar[str] = "told"

number = 3
def told(cohort, question: Told): return question
def other_name(cohort, question: Told): return question
def undecided(cohort, question: Undecided): return question
def untyped(cohort, question): return question
def unnamed(cohort, asked: Told): return asked
def unreadable(cohort, question: "Absent"): return question
"""
NAMES = ("told", "other_name", "undecided", "untyped", "unnamed", "unreadable", "number", "missing")


@pytest.mark.parametrize("group", ["federation.queries", "federation.questions"])
def test_a_package_may_install_its_queries_in_the_former_group(import_folder, group):
    install(import_folder, "Asking-Pack", CODE, {group: ["told = asking_pack:told"]})
    assert question_type("told").kind == "told"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other_name", "answers questions of the kind 'told'; rename either"),
        ("undecided", "must have an argument 'question' whose type derives from PrivateQuestion or PublicQuestion or"),
        ("untyped", "must have an argument 'question' whose type derives from .*, got None; its package must be"),
        ("unnamed", "must have an argument 'question' whose type derives from .*, got None; its package must be"),
        ("unreadable", "has a type that cannot be read: name 'Absent' is not defined"),
        ("number", "is no function; its package must be repaired"),
        ("missing", "cannot be imported: AttributeError"),
    ],
)
def test_answers_out_of_form_are_named_with_their_package(import_folder, name, words):
    install(import_folder, "Asking-Pack", CODE, {"federation.queries": [f"{one} = asking_pack:{one}" for one in NAMES]})
    assert question_type("told").kind == "told"
    with pytest.raises(InputError, match=rf"'{name}'.*Asking-Pack.*{words}"):
        question_type(name)
