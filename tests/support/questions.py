"""One question of each kind that this project installs, of small sizes: tests change parts of them by `replace`."""

import numpy as np

from aggregator.trial.feature_fitting import fit
from federation.contract.query import PrivateQuestion, PublicQuestion, Question, ReleaseId, TrustedQuestion
from federation.features.feature_map import Ball, completed, with_fourier
from federation.numerics.binning import Bins
from federation.queries.bags import (
    Bags,
    CountsNoise,
    CountsQuestion,
    CountTotalsQuestion,
    EmbeddingsQuestion,
    EmbeddingTotalsQuestion,
    JointNoise,
    NoisyEmbeddingsQuestion,
    RowsQuestion,
    TotalsNoise,
)
from federation.queries.labels import (
    BagSums,
    BagSumsNoise,
    BagSumsQuestion,
    LabelledRows,
    LabelsNoise,
    LabelSumsNoise,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
    WeightedSumsNoise,
    WeightedSumsQuestion,
)
from federation.queries.marginals import Hypothesis, MarginalsNoise, MarginalsQuestion
from federation.queries.row_sums import MomentNoise, MomentQuestion, RowMomentsNoise, RowMomentsQuestion
from federation.queries.votes import (
    IndividualQuestion,
    ParametersQuestion,
    ParameterSumQuestion,
    ProbabilitiesQuestion,
    StatisticQuestion,
    StatisticSumQuestion,
    Training,
    VectorNoise,
    VotesQuestion,
)

ROWS = np.random.default_rng(0).normal(size=(60, 3))
MAP, WAVES = fit(["standardise", "unit_norm"], ROWS), with_fourier(fit([], ROWS), 0.5, 8, 1)
BAGS, LABELLED = Bags(2, 3), LabelledRows(MAP, 0.0, 1.0, 50)
TRAINING = Training(MAP, 3, {"name": "logistic", "parameters": {"regularisation": 1e-2}}, 0)
_FEATURES = MAP.transform(ROWS)
_AIM, _PURE, _ONE = (1.0, 1e-6), (1.0, 0.0), {"release": ReleaseId("a release")}
_STATISTIC = StatisticQuestion(TRAINING, _FEATURES, _FEATURES, 1.0, "labels")
_PARAMETERS = ParametersQuestion(TRAINING, 1e-6, 5.0)
_ASKED: list[Question] = [
    CountsQuestion(CountsNoise("auto", *_AIM), BAGS, **_ONE),
    EmbeddingsQuestion(BAGS, WAVES),
    NoisyEmbeddingsQuestion(JointNoise("gaussian", *_AIM), BAGS, WAVES, 1.0, **_ONE),
    RowsQuestion(BAGS, MAP, 50),
    BagSumsQuestion(BagSumsNoise("gaussian", *_AIM), LABELLED, BagSums(0, 4, 8, "signs", 8, 0), **_ONE),
    WeightedSumsQuestion(WeightedSumsNoise("gaussian", *_AIM), LABELLED, BagSums(0, 4, 8, "gaussian", 0, 0), **_ONE),
    PrivateLabelsQuestion(LabelsNoise("one_bit", *_PURE), LABELLED, **_ONE),
    LabelSumsQuestion(LabelSumsNoise("auto", *_AIM), LABELLED, "optimal", **_ONE),
    MomentQuestion(MomentNoise("auto", *_AIM), completed(MAP), 1, 50, "row", 0, **_ONE),
    RowMomentsQuestion(RowMomentsNoise("gaussian", *_AIM), LABELLED, 0, True, **_ONE),
    MarginalsQuestion(
        MarginalsNoise("auto", *_AIM), MAP, Bins.fit(_FEATURES, 5), "errors", Hypothesis.constant(3, 1), "row",
        "add_remove", release=ReleaseId("an exchange", 3, 0),
    ),
    VotesQuestion(TRAINING, _FEATURES),
    ProbabilitiesQuestion(TRAINING, _FEATURES),
    _STATISTIC,
    _PARAMETERS,
    IndividualQuestion(TRAINING, 5),
    StatisticSumQuestion(VectorNoise("pure", *_PURE), _STATISTIC, Ball(1.0), 80, **_ONE),
    ParameterSumQuestion(VectorNoise("gaussian", *_AIM), _PARAMETERS, Ball(1.0, scaled=True), 80, **_ONE),
    CountTotalsQuestion(TotalsNoise("auto", *_AIM), BAGS, 80, **_ONE),
    EmbeddingTotalsQuestion(TotalsNoise("gaussian", *_AIM), BAGS, 80, WAVES, "row", 1.0, **_ONE),
]  # fmt: skip
QUESTIONS: dict[str, Question] = {question.kind: question for question in _ASKED}
PRIVATE = [question for question in _ASKED if isinstance(question, PrivateQuestion)]
PUBLIC = [question for question in _ASKED if isinstance(question, PublicQuestion)]
TRUSTED = [question for question in _ASKED if isinstance(question, TrustedQuestion)]
