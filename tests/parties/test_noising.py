"""Whatever noise a party is asked for, it pays before it reads a row: how the reading ends must not be free to see."""

import json
from dataclasses import replace

import pytest
from two_class_questions import marginals, moment, noising

from federation.questions.bags import Bags, CountsQuestion, NoisyEmbeddingsQuestion
from federation.features import FeatureMap, with_fourier
from federation.questions.labels import (
    BagSums,
    BagSumsQuestion,
    LabelledRows,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
    WeightedSumsQuestion,
)
from federation.reference import Reference
from parties.registry import questions
from parties.holdings import Cohort

ROWS = LabelledRows(FeatureMap(2, ()), -1.0, 1.0, 8)
GAUSSIAN = noising("gaussian", seeded=False)
NOISED = [
    CountsQuestion(Bags(1, 2), GAUSSIAN),
    NoisyEmbeddingsQuestion(Bags(1, 2), with_fourier(FeatureMap(2, ()), 1.0, 8, seed=1), 1.0, GAUSSIAN),
    BagSumsQuestion(ROWS, BagSums(8, 2, 4, "signs", 2, 0), GAUSSIAN),
    WeightedSumsQuestion(ROWS, BagSums(8, 2, 4, "gaussian", 0, 8), GAUSSIAN),
    PrivateLabelsQuestion(ROWS, noising("one_bit", seeded=False)),
    LabelSumsQuestion(ROWS, "optimal", GAUSSIAN),
    replace(moment(protect="row"), noising=GAUSSIAN),
    replace(marginals(), noising=GAUSSIAN),
]
NOT_NOISED = {"probabilities", "parameters", "statistic", "votes", "individual", "embeddings", "rows"}


class Unreadable:
    """A provider whose party cannot be read."""

    def holdings(self, party: int) -> None:
        raise OSError("the table of this party is gone")


@pytest.mark.parametrize("question", NOISED, ids=lambda question: question.kind)
def test_an_answer_is_paid_for_before_a_row_is_read(tmp_path, question):
    allowance = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": 5.0, "delta": 1e-3})
    node = Cohort(Reference("test_noising:Unreadable").to_json(), 4, 1, None, allowance, public_features=True)
    answer = questions()[question.kind].load()(node, question)
    assert answer.failures == {4: "the party could not answer"}
    [paid] = json.loads((tmp_path / "spent.json").read_text())["4"]
    assert paid["epsilon"] == pytest.approx(1.0)


def test_every_question_that_asks_for_noise_is_among_them():
    assert {question.kind for question in NOISED} == set(questions()) - NOT_NOISED
