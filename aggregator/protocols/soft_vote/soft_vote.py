"""Protocol `soft_vote` (after Hamm, Cao and Belkin 2016, Alg. 2): the parties' opinions of public rows are labels."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from aggregator.contract.expectations import Expected
from aggregator.contract.protocol import Place, Rule, refuse_misplaced, refuse_public_reach, require_positive
from aggregator.contract.session import Decoder, Perturbable
from aggregator.contract.worst_case import WorstCase
from aggregator.ensembles.output import PUBLISHED_REGULARISATION, Ensemble, perturb_output
from aggregator.ensembles.sessions import Refinement
from aggregator.ensembles.votes import ShareAnswers, VoteProtocol, perturb_shares
from aggregator.ensembles.worst_case import of_minimisers, of_votes, worst_shares
from aggregator.protocols.soft_vote import decoders
from aggregator.protocols.soft_vote.decoders import perturb_statistic, perturb_votes
from aggregator.protocols.soft_vote.student import student_of
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.public_rows import Coordinates, PublicRows
from aggregator.trial.trial import World
from federation.contract.errors import InputError
from federation.contract.query import OFF

_MANY_RUNS = 400_000  # of an audit
_RUNS = {"erm": 4_000, "votes": 100_000}  # where releases need optimisations


@dataclass(frozen=True)
class SoftVote(VoteProtocol):
    """Parties say what their classifiers find on public rows; noise goes to the sufficient statistic of it all.

    The defaults need no tuning and take any classifier. As published, parties vote; shares of votes are soft labels.

    perturb: `statistic` adds noise to the votes' mean operator in public coordinates, `output` to the minimiser of
        the weighted risk, as published, `votes` to all vote shares, whose largest become hard labels.
    sensitivity: of `output`: `published`, `tight` (exact for the loss), `diameter` (also bounded by lam alone) or
        `public_features` (also by how far votes can move these public rows).
    shape: of `statistic`: `whitened` (noise shaped like the public rows' second moment) or `isotropic`.
    decoder: of `statistic`: `least_squares` (closed form) or `erm` (the weighted risk).
    noise: `pure` (L2-Gamma), `gaussian` (discrete Gaussian, uses delta) or `off` (NON-PRIVATE).
    submit: of `statistic`: what a party sends, only its share of the `statistic`, so that nobody sees a vote, or its
        `votes`. Everything else is computed from votes.
    share: of `submit: statistic`: `both` is the mean direction of a party's probabilities and of its scores, over all
        declared classes, scaled to norm 1, so that no party is louder than another; `probabilities` and `scores` are
        one of them. Behind features that are not whitened `both` is `probabilities`, as scores are loudest in the
        faintest directions. With `raw` shares, as they are, the statistic is that of votes.
    student: with `submit: statistic`, for 3 classes or more: whether clusters of the public rows that agree with the
        release may replace its model, where a test on public numbers lets them; costs nothing.
    ballot: of votes and raw shares: a vote is one of the `labels` or the `probabilities` of all classes.
    protect: `party`, or `party_and_auxiliary_row` with `output`: one auxiliary row may change as well.
    regularisation: lam of `output` and `votes` (default 1e-4) or of the `erm` decoder (default: the expected noise
        norm).
    """

    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "perturb: statistic, decoder: least_squares",
            "noise of so few numbers needs no tuning and takes any classifier; their number follows from classes, "
            "parties, epsilon and delta",
            "activity recognition, 1000 parties, epsilon 1: accuracy .84, beside .17 as published and .77 with "
            "hindsight on lam",
        ),
        Rule(
            "submit: statistic, share: both, of classifiers over all declared classes",
            "one party moves the mean of M such shares by 2/M at most, whatever its model is; parties that saw one "
            "class do not vote for it everywhere",
            "8 sets, 5 to 1000 parties, where the signal is louder than the noise: mean accuracy .836, votes .817, "
            "parameter_average .837; more than .03 below the best of our variants in 2 %, 30 % and 8 % of cells; up to "
            ".010 behind parameter_average where parties see few classes",
        ),
        Rule(
            "every party counts alike, whatever the number of its rows",
            "that number is private, and shares that shrink with it below a public number were worse",
            "unequal natural parties, mean accuracy and balanced accuracy at epsilon .3 to 10, and of votes: census "
            "incomes by occupation and education .768 and .763, .778 and .735; network services .803 and .755, .807 "
            "and .535; activities by person .552, .498: accuracy may be traded for balanced accuracy",
        ),
        Rule(
            "student: true",
            "a test on the release and on public rows lets clusters replace the model: its signal is beyond the noise, "
            "they explain nine tenths of it, and their rows are told apart with certainty .9",
            "sets of three classes or more, 5 to 1000 parties, mean accuracy with and without: activities .643 and "
            ".627, digits .446 and .423, heart rates .728 and .728, wines .642 and .645, ordered classes .567 and .568",
        ),
    )

    perturb: Literal["statistic", "output", "votes"] = "statistic"
    sensitivity: Literal["published", "tight", "diameter", "public_features"] = "tight"
    shape: Literal["whitened", "isotropic"] = "whitened"
    decoder: Literal["least_squares", "erm"] = "least_squares"
    noise: Literal["pure", "gaussian", "off"] = "pure"
    submit: Literal["votes", "statistic"] = "statistic"
    share: Literal["both", "probabilities", "scores", "raw"] = "both"
    student: bool = True
    ballot: Literal["labels", "probabilities"] = "labels"
    protect: Literal["party", "party_and_auxiliary_row"] = "party"
    regularisation: float | None = None

    def __post_init__(self) -> None:
        if self.regularisation is not None:
            require_positive("regularisation", self.regularisation)
        refuse_misplaced(self, ("sensitivity", "protect"), "perturb: output", self.perturb == "output")
        refuse_misplaced(self, ("shape", "decoder"), "perturb: statistic", self.perturb == "statistic")
        refuse_misplaced(self, ("share",), "submit: statistic", self.by_shares or self.share == "raw")
        refuse_misplaced(self, ("ballot", "decoder"), "share: raw", not self.unit_shares)
        refuse_misplaced(self, ("student",), "share: both, probabilities or scores", self.unit_shares)
        chosen = self.decoder if self.perturb == "statistic" else None
        regularised = self.perturb != "statistic" or chosen == "erm"
        refuse_misplaced(self, ("regularisation",), "perturb: output, perturb: votes or decoder: erm", regularised)
        refuse_public_reach(self.sensitivity, self.protect)
        if self.perturb == "votes" and self.noise == "pure":
            raise InputError(
                "perturb: votes needs noise: gaussian: the norm of pure noise grows with the number of votes, and not "
                "with its root; use that, or perturb: statistic"
            )

    @property
    def unit_shares(self) -> bool:
        """Whether every party's share has norm 1."""
        return self.by_shares and self.share != "raw"

    def refinement(self, world: World, public: PublicRows) -> Refinement:
        """With three classes or more a student may replace its model, where the features have one."""
        found = None
        if self.student and self.unit_shares and self.noise != OFF and len(world.plan.task.classes) > 2:
            key = ("student", self.shape, id(public))
            found = world.once(key, lambda: student_of(world.views, public, self.shape))
        return found or super().refinement(world, public)

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """By the noise on the mean of the parties' shares, where these have norm 1."""
        return self.expected_of_mean(public, epsilon) if self.unit_shares else None

    def worst_case(self, units: int, public: PublicNumbers) -> WorstCase:
        """Votes of one party that decide."""
        if self.place is Place.SHARES:
            return worst_shares(units)
        slow = [_RUNS[chosen] for chosen in (self.perturb, self.decoder) if chosen in _RUNS]
        runs = min(slow, default=_MANY_RUNS)
        if self.perturb != "output":
            return of_votes(units, runs, perturb=self.perturb)
        strength = self.regularisation or PUBLISHED_REGULARISATION
        known = {"sensitivity": self.sensitivity, "protect": self.protect}
        return of_minimisers(units, runs, labels="soft", regularisation=strength, **known)

    def prepare(self, ensemble: Ensemble | ShareAnswers) -> Perturbable:
        """The vector to perturb, with its sensitivity and decoder."""
        if isinstance(ensemble, ShareAnswers):
            return perturb_shares(ensemble, self.decoded(ensemble.coordinates, ensemble.classes))
        strength = self.regularisation or PUBLISHED_REGULARISATION
        if self.perturb == "output":
            return perturb_output(ensemble, "soft", self.sensitivity, strength, self.protect)
        if self.perturb == "votes":
            return perturb_votes(ensemble, strength)
        coordinates = ensemble.public.coordinates(self.shape)
        return perturb_statistic(ensemble, coordinates, self.decoded(coordinates, ensemble.classes))

    def decoded(self, coordinates: Coordinates, classes: int) -> Decoder:
        """What turns noisy statistics in these coordinates into models."""
        if self.decoder == "least_squares":
            return decoders.least_squares(coordinates, classes)
        return decoders.erm(coordinates, classes, self.regularisation)
