"""The questions that NIST SP 800-226 has evaluators of differential privacy ask, with the answers that a run knows.

The publication (Near, Darais, Lefkovitz, Howarth 2025) stacks what a guarantee depends on as a pyramid: from epsilon
and the unit at its top down to how data are collected, where no part protects more than those below it. The questions
are put in our words. What a program cannot know stays a question that begins with TODO.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from aggregator.contract.protocol import Place
from federation.contract.guarantee import Check, Unit
from scenarios.reports.evidence import Evidence, levels, numbers
from scenarios.reports.officer import BANNERS, CHANGES, NOISE_AT, UNITS, declared_public, example, roles, total
from scenarios.reports.registry import write_yaml

EVALUATION = "sp800-226.yaml"


@dataclass(frozen=True)
class Answer:
    """A question of one part of the pyramid, and what is known about it."""

    about: str
    question: str
    answer: str


def evaluation(found: Evidence) -> list[Answer]:
    """Questions and answers about the leading variant, from the top of the pyramid down.

    Raises `InputError` where no release has a guarantee.
    """
    world, release, kept = found.required("evaluate")
    first = kept[0]
    totals = [
        f"epsilon {one['epsilon']}, delta {one['delta']} for {one['unit']}, by {one['releases']} releases"
        for one in map(total, world.totals)
    ]
    title, banner = BANNERS[found.reality]
    maker = "not recorded" if release.noise_at is None else NOISE_AT[release.noise_at]
    granted = [one.text for one in first.assumptions if one.keeper == "software" and one.check is Check.DECLARED]
    return [
        Answer("reality", "Does the guarantee protect anybody?", f"{title}: {banner}"),
        Answer("epsilon", "What are the parameters of a release, and what do they mean for one unit?",
               f"{levels(kept)}. {' '.join(example(first))}"),
        Answer("epsilon", "What do all releases about the same data cost together?",
               "; ".join([*totals, "TODO: what else has been or will be released about the same data?"])),
        Answer("unit of privacy", "Whose data is hidden, and from what change?",
               f"{UNITS[first.unit]}: what a release can tell about whether it {CHANGES[first.adjacency]} is bounded."),
        Answer("unit of privacy", "Is all that one person contributes hidden?", _persons(first.unit)),
        Answer("algorithm", "Which mechanism makes it private, and who has proved or tested that?",
               f"{first.mechanism}, with {numbers(first)}. `federation audit` tests the claim on the protocol's worst "
               "case, and on a twin with half the noise. TODO: was it run for this scenario, and what did it say?"),
        Answer("algorithm", "What comes out without protection?",
               "Declared public: " + "; ".join(declared_public(found, world, first.unit))
               + ". Accuracies, figures and baselines of a run are covered by no guarantee."),
        Answer("utility and bias", "How accurate is the release, and for whom is it worse?",
               "report.html has the accuracies, beside those without any privacy. TODO: is the model worse for some "
               "groups of people, and who has looked?"),
        Answer("trust model", "Who sees what before there is noise, and who must be trusted?",
               f"Noise is made by {maker}. "
               + " ".join(f"{one['who']}: sees {one['sees']}; is trusted with {one['trusted']}."
                          for one in roles(world, release))),
        Answer("implementation", "What can go wrong between the formula and the machine?",
               "Enforced or checked by the code: "
               + "; ".join(one.text for one in first.assumptions if one.check is not Check.DECLARED)
               + "." + (f" Taken for granted: {'; '.join(granted)}." if granted else "")),
        Answer("implementation", "Who could learn from time, memory or failures?",
               "TODO: can anybody but the coordinator watch when and how long a party answers?"),
        Answer("security", "Who has access to the rows, the keys and the answers?", _access(release.noise_at)),
        Answer("data collection", "How exposed are the data before anything is asked of them?",
               "TODO: who collected the rows, where are they kept, for how long, and on which legal basis?"),
        Answer("data collection", "Were options, features or epsilon chosen by looking at private data?",
               "Assumed not to be: see the coordinator's assumptions. TODO: on which data were they tried before?"),
    ]  # fmt: skip


def write_evaluation(directory: Path, found: Evidence) -> Path:
    """Write questions and answers into a directory; returns the path. Raises `InputError`."""
    return write_yaml(directory / EVALUATION, [asdict(one) for one in evaluation(found)])


def _persons(unit: Unit) -> str:
    match unit:
        case Unit.PARTY | Unit.PARTY_AND_AUXILIARY_ROW:
            return "Yes, if nobody's rows lie at several parties. TODO: can one person's rows lie at several parties?"
        case Unit.PERSON:
            return "All labels of a person, and no feature. TODO: is a person the same at all parties?"
    what = "row" if unit is Unit.ROW else "label"
    return f"One {what} is: a person with several is protected less. TODO: is every row about another person?"


def _access(place: Place | None) -> str:
    answers = {
        Place.AGGREGATOR: " Answers before the noise lie at the coordinator: who can read its memory and its traffic?",
        Place.SHARES: " Answers leave a party masked: who enrols the parties' keys, and who runs what adds up?",
    }.get(place or Place.NOWHERE, "")
    return f"TODO: who can read the parties' rows, and the noise of the machines that make it?{answers}"
