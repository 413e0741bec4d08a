"""The pilots of `federation advise`: on which rows, for how long, and what is told of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federation.contract.errors import InputError, writing

if TYPE_CHECKING:
    from aggregator.advice import Ranked
    from scenarios.advice.subject import Subject
    from scenarios.commands.advised import Asked
    from scenarios.settings.draft import Draft

_FOR_ACCURACY = 0.5  # of the time, where an epsilon is to be found as well
_WRITING = 0.03  # of the time, for the end


@dataclass(frozen=True)
class Tried:
    """A pilot as it is told: a record, a table with its title, and sentences; and the scenario that follows."""

    made: Draft
    record: Mapping[str, Any]
    title: str
    rows: Sequence[Mapping[str, str]]
    sentences: Sequence[str]
    interrupted: bool = False


def require_one_pilot(pilot: float | None, charged: float | None, data: Path | None, accuracy: float | None) -> None:
    """Raise `InputError` for a pilot that is paid for beside what belongs to one that is not."""
    beside = {"--pilot": pilot, "--pilot-data": data, "--accuracy": accuracy}
    for flag, value in beside.items():
        if charged is not None and value is not None:
            raise InputError(
                f"{flag} does not go with --charged-pilot, which tells its choice and no more; leave one out"
            )


def run_pilot(
    asked: Asked, subject: Subject, ranked: Sequence[Ranked], seconds: float, data: Path | None, accuracy: float | None
) -> Tried:
    """Try the ranked protocols for so many seconds, on the subject's own rows or on public `data`.

    With an `accuracy` half of the time is for the epsilon at which it is reached. Raises `InputError` where there are
    no rows, and for parties that are deployed, who answer no pilot.
    """
    from scenarios.advice import pilot_words
    from scenarios.advice.measuring import Deadline, OutOfTimeError
    from scenarios.advice.pilot import needed_epsilon, pilot
    from scenarios.advice.written import piloted

    private = data is None
    if private and subject.deployed:
        raise InputError(
            "--pilot: parties that are deployed answer no pilot; leave it out, or try public rows with --pilot-data"
        )
    rows = subject if data is None else _of_data(asked, data)
    if not rows.has_data:
        raise InputError("--pilot needs rows: name a file of them or a scenario, or public rows with --pilot-data")
    where = asked.about or str(data) if data is None else str(data)
    file = Path("pilot.json") if asked.write is None else asked.write.with_suffix(".pilot.json")
    whole = Deadline(seconds * (1 - _WRITING))
    share = 1.0 if accuracy is None else _FOR_ACCURACY
    until = Deadline(whole.seconds * share, whole.started)
    told = _Line()
    found = pilot(rows, ranked, until, file, private, told)
    sentences = pilot_words.sentences(found, private, whole.seconds - whole.left, str(where))
    if accuracy is not None and not found.interrupted:
        try:
            told("the epsilon that is needed")
            needed = needed_epsilon(rows, found.finalists, accuracy, whole, file, private)
            sentences.append(pilot_words.needed(needed, private))
        except (OutOfTimeError, KeyboardInterrupt) as stopped:
            found.interrupted = isinstance(stopped, KeyboardInterrupt)
            sentences.append(f"There was no time to find at which epsilon accuracy {accuracy:g} is reached.")
    told.end()
    sentences.append(f"kept what was measured in {file}; the same command goes on from there")
    title = f"pilot{pilot_words.MARK if private else ' on public rows'}"
    record = pilot_words.record(found, private, whole.seconds - whole.left)
    return Tried(
        piloted(subject, found, private), record, title, pilot_words.rows(found, private), sentences, found.interrupted
    )


def run_selection(subject: Subject, ranked: Sequence[Ranked], tries: float, model: Path | None) -> Tried:
    """Choose among the ranked protocols by a private selection with so many tries on average.

    Its model is written to the file `model`, if there is one. Raises `InputError` where it cannot be proved.
    """
    from scenarios.advice import selection_words
    from scenarios.advice.selection import planned
    from scenarios.advice.written import selected

    selection = planned(subject, ranked, tries)
    told = _Line()
    told(f"a private selection of {selection.law.mean:.3g} tries on average; nothing ends it before that but you")
    try:
        found = selection.made()
    finally:
        told.end()
    sentences = selection_words.sentences(selection, found)
    if model is not None:
        with writing(f"to {model}", "name another file with --write"):
            found.released.save(model)
        sentences.append(
            f"wrote {model}, the model of the choice, which is paid for with it: federation predict {model}"
        )
    record, title = selection_words.record(selection, found), "private selection"
    return Tried(selected(subject, found), record, title, selection_words.rows(selection, found), sentences)


def _of_data(asked: Asked, data: Path) -> Subject:
    """The same wish about other rows."""
    other = replace(asked, about=str(data), rows=None, columns=None, classes=None, bag_rows=None, public_count=None)
    subject, _ = other.settled(asking=False)
    return subject


class _Line:
    """What is under way, on one line of a terminal."""

    def __call__(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[Kpilot: {text}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear it."""
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
