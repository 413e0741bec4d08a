"""Protocol `parameter_average` (Pathak, Rane and Raj 2010; `avg` of Hamm et al. 2016): the mean of local minimisers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from aggregator.collectors.vectors import VECTOR_CHECKS, VectorAnswers, parameter_average, radius_of_any_rows
from aggregator.contract.expectations import Expected
from aggregator.contract.ledger import ATTENDANCE, COUNTED_ONCE
from aggregator.contract.protocol import Place, Rule, Sent, refuse_misplaced, require_positive
from aggregator.contract.session import Decode, Decoder, Perturbable
from aggregator.contract.worst_case import WorstCase
from aggregator.ensembles.output import weights_decoder
from aggregator.ensembles.sessions import PUBLIC_ROWS, CollectedProtocol, Summand
from aggregator.ensembles.worst_case import of_parameters, worst_parameters
from aggregator.trial.plan import PublicNumbers, product
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check
from federation.contract.validation import required
from federation.features.feature_map import Ball
from federation.features.steps import ClipNorm, UnitNorm
from federation.mechanisms.accounting.sensitivity import radius, solver_slack
from federation.numerics.erm import gradient_floor
from federation.numerics.rows import contrasts
from federation.queries.votes import ParametersQuestion, ParameterSumQuestion, Training

_RUNS = 400_000  # of an audit
_LOGISTIC = "logistic"
_LONG_ROWS = (
    "data.features: average: plain needs rows of norm at most 1; end the list with unit_norm or max_norm, or choose "
    "average: unit"
)
_LOUD, _APART = 0.3, 0.005  # beyond such noise soft votes were ahead of it, and otherwise hardly ever
_LOUD_IF_UNEVEN, _UNEVEN = 0.4, 2.0  # the same where the largest of several classes has twice an even share or more
_DEFAULT_CLIP = 0.2  # of the largest norm of a minimiser; below the norms of parties with few rows


@dataclass(frozen=True)
class ParameterAverage(CollectedProtocol):
    """Parties train linear classifiers over all classes; noise goes to the mean of their parameters.

    The default needs no tuning: a linear classifier decides the same at every scale.

    average: `unit` (every party's parameters scaled to norm 1), `clipped` (shortened to a public norm) or `plain`
        (as they are; the features must end with `unit_norm` or `max_norm`).
    clip: the public norm of `clipped`; by default a fifth of the largest norm that any data could give.
    sensitivity: of `plain`: `published`, `tight` or `diameter`, which is exact.
    noise: `pure` (L2-Gamma), `gaussian` (discrete Gaussian, uses delta) or `off` (NON-PRIVATE).
    """

    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "average: unit",
            "a linear classifier decides the same at every scale, so each party's may have norm 1: one of M moves "
            "their mean by 2/M at most, and there is no norm to tune",
            "5 two-class sets not chosen on, 5 to 1000 parties: mean accuracy .800, within .01 of the best of three "
            "candidates in 79 % of cells, .056 below it at worst",
        ),
    )

    average: Literal["unit", "clipped", "plain"] = "unit"
    clip: float | None = None
    sensitivity: Literal["published", "tight", "diameter"] = "diameter"
    noise: Literal["pure", "gaussian", "off"] = "pure"

    def __post_init__(self) -> None:
        if self.clip is not None:
            require_positive("clip", self.clip)
        refuse_misplaced(self, ("clip",), "average: clipped", self.average == "clipped")
        refuse_misplaced(self, ("sensitivity",), "average: plain", self.average == "plain")

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """By the noise on the mean of parameters of norm 1, which is that on soft votes: ahead of them where it is low.

        Measured on 7 generated and bundled sets at 30 to 400 parties, and then on 6 others; where a largest class is
        declared that has twice an even share, on 3 generated sets, and then on cardiotocograms.
        """
        found = self.expected_of_mean(public, epsilon) if self.average == "unit" else None
        if found is None or found.noise is None:
            return None
        uneven = public.majority is not None and public.majority * (public.classes or 0) >= _UNEVEN
        behind = _APART if found.noise > (_LOUD_IF_UNEVEN if uneven else _LOUD) else -_APART
        return replace(found, error=max(0.0, found.error + behind))

    def check_setting(self, features: Sequence[str | Mapping[str, Any]], classifier: Mapping[str, Any]) -> None:
        """Refuse features and classifiers that these options cannot work with; raises `InputError`."""
        declared_regularisation(classifier)
        if self.average == "plain" and (not features or features[-1] not in ("unit_norm", "max_norm")):
            raise InputError(_LONG_ROWS)

    def sends(self, public: PublicNumbers) -> Sent:
        """The parameters of its classifier."""
        contrasts = None if public.classes is None else max(1, public.classes - 1)
        return Sent("the parameters of its classifier", product(contrasts, public.features), False)

    def width(self, public: PublicRows) -> int:
        """The number of features."""
        return int(public.rows.shape[1])

    def worst_case(self, units: int, public: PublicNumbers) -> WorstCase:
        """One party turns its parameters round."""
        if self.place is Place.SHARES:
            return worst_parameters(units, clip=self.clip)
        return of_parameters(units, _RUNS, sensitivity=self.sensitivity if self.average == "plain" else None)

    def question(self, public: PublicRows, training: Training) -> ParametersQuestion:
        """Ask each party for the minimiser on its own rows.

        Raises `InputError` unless every party trains logistic regression, and for `plain` where rows may be long.
        """
        if self.average == "plain":
            # Every row behind the map has norm at most 1, private ones included.
            steps = training.feature_map.steps
            if not steps or steps[-1].kind not in (UnitNorm.kind, ClipNorm.kind):
                raise InputError(_LONG_ROWS)
        regularisation = declared_regularisation(training.classifier)
        longest = radius_of_any_rows(regularisation, training.classes)
        # Inexact minimisers are this little longer. Twice the norm leaves room for a solver's limits on long rows.
        tolerance = max(1e-6 * regularisation * longest, 4 * gradient_floor(regularisation))
        return ParametersQuestion(training, tolerance, 2 * longest)

    @property
    def unsummed(self) -> str:
        """Parties keep to the largest norm of a minimiser, which needs no more noise than it takes."""
        if self.average == "plain" and self.sensitivity != "diameter":
            return "parties that are seen in a sum only keep their parameters to a norm; choose sensitivity: diameter"
        return ""

    def summand(self, public: PublicRows, question: ParametersQuestion) -> Summand:
        """The parameters of each party, in the ball that the aggregator would bring them into."""
        ball, [declared] = self._ball(question), question.fields().values()
        decoder = Decoder(self._decode(declared.shape, question.training.classes), largest_norm=ball.norm)
        return Summand(ParameterSumQuestion, question, ball, decoder, self.width(public))

    def collector(
        self, public: PublicRows, question: ParametersQuestion, parties: int
    ) -> VectorAnswers[ParametersQuestion]:
        """Where the answers go; what `prepare` is called with."""
        return VectorAnswers(question, parties, self._ball(question))

    def prepare(self, answers: VectorAnswers[ParametersQuestion]) -> Perturbable:
        """The vector to perturb, with its sensitivity and decoder."""
        classes, value = answers.question.training.classes, answers.value()
        decode = self._decode(value.shape, classes)
        if classes > 2 and self.sensitivity == "published":
            value = contrasts(classes) @ value
            decode = weights_decoder(value.shape, None)
        return Perturbable(
            value.ravel(),
            self._sensitivity(answers),
            decode,
            (*answers.assumptions(), *self._premises(), COUNTED_ONCE, ATTENDANCE, PUBLIC_ROWS),
            VECTOR_CHECKS,
            largest_norm=answers.mean.norm,
        )

    def _ball(self, question: ParametersQuestion) -> Ball:
        if self.average == "unit":
            return Ball(1.0, scaled=True)
        regularisation, classes = declared_regularisation(question.training.classifier), question.training.classes
        if self.average == "clipped":
            return Ball(self.clip or _DEFAULT_CLIP * radius_of_any_rows(regularisation, classes))
        return Ball(radius(regularisation, classes) + solver_slack(question.gradient_tolerance, regularisation) / 2)

    @staticmethod
    def _decode(shape: tuple[int, ...], classes: int) -> Decode:
        """Of means of parameters of this shape: one vector of two classes, or contrasts (C-1, d)."""
        return weights_decoder(shape[1:], None) if classes == 2 else weights_decoder(shape, contrasts(classes))

    def _sensitivity(self, answers: VectorAnswers[ParametersQuestion]) -> float:
        if self.average != "plain" or self.sensitivity == "diameter":
            return answers.mean.sensitivity
        training, tolerance = answers.question.training, answers.question.gradient_tolerance
        regularisation = declared_regularisation(training.classifier)
        exact = parameter_average(
            self.sensitivity, regularisation=regularisation, parties=answers.parties, classes=training.classes
        )
        slack = solver_slack(tolerance, regularisation) / answers.parties
        return max(answers.mean.sensitivity, math.nextafter(exact + slack + answers.mean.rounding, math.inf))

    def _premises(self) -> tuple[Assumption, ...]:
        if self.average != "plain":
            return ()
        text = (
            "that norm is the largest of a minimiser with the declared regularisation on rows of norm at most 1, and "
            "what the public gradient tolerance adds: parties who keep to both are not shortened"
        )
        return (Assumption(text, Check.ENFORCED),)


def declared_regularisation(classifier: Mapping[str, Any]) -> float:
    """lam of the parties' logistic regressions. Raises `InputError` for any other classifier, before it is asked."""
    name, parameters = classifier["name"], classifier["parameters"]
    if name != _LOGISTIC or set(parameters) != {"regularisation"}:
        raise InputError(
            "parameter_average needs every party to train logistic regression; set parties.classifier to "
            f"{{logistic: {{regularisation: 1.0e-4}}}} or leave the protocol out; got '{name}' with "
            f"{dict(parameters) or 'no parameters'}"
        )
    found = parameters["regularisation"]
    return float(required("regularisation", found, "be a positive number", lambda value: value > 0))
