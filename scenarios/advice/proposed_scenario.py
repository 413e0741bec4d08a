"""The scenario that follows from advice: its finalists, and why these; it must run before it is written."""

from collections.abc import Sequence

from aggregator.advice import Advice, Ranked, contenders, nearest, rank
from federation.contract.errors import InputError
from scenarios.advice import pilot as pilot_words
from scenarios.advice import private_selection as selection_words
from scenarios.advice import texts as words
from scenarios.advice.pilot import Pilot
from scenarios.advice.private_selection import Selected
from scenarios.advice.target import Subject, in_order
from scenarios.runs.runner import preview
from scenarios.settings.draft import Draft
from scenarios.settings.schema import resolve

FINALISTS = 2


def advised(subject: Subject) -> Draft:
    """The scenario with the finalists by public numbers.

    Raises `InputError`, which names the nearest wish that can be kept, where nothing keeps this one.
    """
    advice = rank(subject.wish)
    if not advice.ranked:
        near = words.nearest_told(nearest(subject.wish), subject.wish)
        raise InputError(" ".join([*words.chosen(advice, subject.wish), *near]))
    return subject.write([one.entry for one in finalists(advice)], words.why(advice, subject.wish))


def piloted(subject: Subject, found: Pilot, private: bool) -> Draft:
    """The scenario with the finalists of a pilot; of one on private rows every ledger says that they were chosen so."""
    made = subject.write([one.entry for one in found.finalists], pilot_words.why(found, private))
    plain = {**made.plain, "chosen": {"by": "pilot", "private": not private}}
    return Draft(in_order(plain), made.comments, made.remarks)


def selected(subject: Subject, found: Selected) -> Draft:
    """The scenario with what a private selection chose, and the first of the others by public numbers.

    It says what was spent on the choice, for every later ledger.
    """
    first = finalists(rank(subject.wish))
    others = [one.entry for one in first if one.entry != found.chosen.entry]
    made = subject.write([found.chosen.entry, *others[:1]], selection_words.why(found))
    spent = found.guarantee
    chosen = {"by": "private selection", "epsilon": spent.epsilon, "delta": spent.delta, "unit": str(spent.unit)}
    return Draft(in_order({**made.plain, "chosen": chosen}), made.comments, made.remarks)


def finalists(advice: Advice) -> Sequence[Ranked]:
    """The first protocols of a ranking that are worth a trial."""
    return contenders(advice.ranked)[:FINALISTS]


def checked(written: Draft, subject: Subject) -> None:
    """See that a run would take the scenario, where its data is at hand. Raises `InputError` where it would not."""
    if subject.has_data:
        preview(resolve(subject.runnable(written.plain)), subject.data_dir)
