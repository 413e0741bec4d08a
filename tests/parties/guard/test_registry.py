"""Answers of other packages: checked when a question comes, and a broken one costs no other."""

import subprocess
import sys

import pytest
from support.packages import CAUSE, install

from federation.contract.errors import InputError
from federation.contract.query import Question
from parties.guard.answering import answerer, kinds, question_type

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
        with pytest.raises(InputError, match="'votes_of_theirs' of " + CAUSE.format("questions", "answer")):
            use("votes_of_theirs")


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
    assert "the entry point 'votes_of_theirs' of the package 'Broken-Pack'" in told.stdout, told.stderr
    assert (broken_package / "out" / "results.csv").exists()


def test_every_answer_names_the_question_of_its_kind():
    for kind in kinds():
        question = question_type(kind)
        assert issubclass(question, Question)
        assert question.kind == kind


def test_what_nothing_answers_is_named():
    with pytest.raises(InputError, match=r"question 'vots' is not known; allowed: .*; did you mean 'votes'\?"):
        answerer("vots")


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
    with pytest.raises(InputError, match=rf"the entry point '{name}' of the package 'Asking-Pack' .*{words}"):
        question_type(name)
