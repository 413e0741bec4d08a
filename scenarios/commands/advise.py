"""`federation advise`: the choice of a protocol by public numbers, then by a pilot, and a scenario that runs.

`Asked` holds the flags of the command, their defaults, and the requirements that follow from both.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Exit, Option

from federation.contract.errors import InputError, writing
from federation.contract.trust import TrustTerms
from scenarios.commands import init as questions
from scenarios.commands.options import RANGE, AsJson, DataDirectory, parsed_range
from scenarios.commands.output import save, tell

if TYPE_CHECKING:
    from aggregator.advice import Ranked, Wish
    from scenarios.advice.target import Subject
    from scenarios.settings.draft import Draft


INTERRUPTED = 130  # as for every command that somebody stops
Task = Literal["binary", "multiclass", "regression", "ratio", "classification"]


def advise(
    about: Annotated[
        str | None,
        Argument(
            metavar="[FILE|SCENARIO]",
            help="Your rows, a scenario, or a folder of `federation deploy`; without it numbers do.",
        ),
    ] = None,
    rows: Annotated[int | None, Option("--n", min=2, help="Private rows of all parties together.")] = None,
    columns: Annotated[int | None, Option("--d", min=1, help="Features of a row, without the constant.")] = None,
    parties: Annotated[int | None, Option(metavar="K", min=1, help="Parties that the rows are spread over.")] = None,
    epsilon: Annotated[float, Option(help="Privacy loss of a release.")] = 1.0,
    delta: Annotated[float, Option(help="0 compares pure mechanisms only.")] = 1e-6,
    task: Annotated[
        Task | None,
        Option(help="Two classes, several, real labels, or class ratios; classification is binary. A file says it."),
    ] = None,
    protect: Annotated[
        questions.Protect | None,
        Option(help="What the guarantee hides: all of a party, all rows of a person, a row or a label."),
    ] = None,
    trust: Annotated[
        questions.Trusted | None,
        Option(help="aggregator: it may hold all rows and labels; secure: a sum only; none: nobody is trusted."),
    ] = None,
    features: Annotated[
        questions.Features | None, Option(help="Whether everybody may see rows without their labels.")
    ] = None,
    classes: Annotated[int | None, Option(metavar="C", min=2, help="Number of classes.")] = None,
    bags: Annotated[int | None, Option(metavar="M", min=1, help="Bags of each party; asks for class ratios.")] = None,
    bag_rows: Annotated[int | None, Option(metavar="R", min=1, help="Rows of a bag.")] = None,
    label_range: Annotated[str | None, RANGE] = None,
    public_rows: Annotated[
        Path | None, Option(metavar="FILE", help="Rows that are really public; they need no labels.")
    ] = None,
    public_count: Annotated[int | None, Option("--n-public", metavar="P", min=1, help="How many such rows.")] = None,
    per_person: Annotated[
        int, Option("--rows-per-person", metavar="R", min=1, help="The most rows of one person; for --protect person.")
    ] = 1,
    majority: Annotated[float | None, Option(metavar="SHARE", help="Share of the most frequent class.")] = None,
    attainable: Annotated[
        float | None, Option("--pooled", metavar="ACCURACY", help="What can be had without noise; .9 where not given.")
    ] = None,
    accuracy: Annotated[
        float | None, Option(metavar="A", help="The accuracy that is wanted: at which epsilon is it reached?")
    ] = None,
    residual: Annotated[
        float | None, Option(help="Variance of labels around the best linear model, where it is known.")
    ] = None,
    source: Annotated[str, Option(help="Data of a scenario for numbers: a data set or a file.")] = "my.csv",
    label: Annotated[str | None, Option(metavar="COLUMN", help="What is to be learned.")] = None,
    group: Annotated[str | None, Option(metavar="COLUMN", help="Every value of it is a party.")] = None,
    person: Annotated[str | None, Option(metavar="COLUMN", help="Says whose row each is.")] = None,
    positive: Annotated[
        list[str], Option(metavar="CLASS", help="Counts as the positive one of two classes; repeatable.")
    ] = [],  # noqa: B006 - typer copies it
    write: Annotated[Path | None, Option(metavar="FILE", help="Write a scenario that runs as it is.")] = None,
    pilot: Annotated[
        float | None,
        Option(metavar="SECONDS", min=1, help="Try them on your rows for so long; what that says is NON-PRIVATE."),
    ] = None,
    pilot_data: Annotated[
        Path | None, Option(metavar="FILE", help="Try them on these rows, which are public, in place of yours.")
    ] = None,
    charged_pilot: Annotated[
        float | None,
        Option(
            metavar="TRIES",
            min=2,
            help="Choose by a private selection of so many tries on average: its cost is proved, and ledgers count it.",
        ),
    ] = None,
    figure: Annotated[
        Path | None, Option(metavar="FILE", help="Draw what is expected over epsilon, parties and rows: pdf, svg, png.")
    ] = None,
    data_dir: DataDirectory = None,
    as_json: AsJson = False,
) -> None:
    """Which protocol suits what you protect and whom you trust: every one is ranked, or refused with the reason.

    First by public numbers alone: nothing private is looked at, but for the numbers of rows, columns and classes of a
    file. Then, with --pilot, by trying the protocols on the rows, and with --charged-pilot by doing so privately.
    Without --range, labels have the documented range of the --source, or lie between 0 and 1.
    """
    from aggregator.advice import nearest, rank
    from scenarios.advice import texts as words
    from scenarios.advice.proposed_scenario import advised, checked
    from scenarios.advice.texts import draw, prospects

    require_one_pilot(pilot, charged_pilot, pilot_data, accuracy)

    asked = Asked(
        about, rows, columns, parties, epsilon, delta, task, protect, trust, features, classes, bags, bag_rows,
        None if label_range is None else parsed_range(label_range), public_rows, public_count, per_person, majority,
        attainable, residual, source, label, group, person, tuple(positive), write, data_dir,
    )  # fmt: skip
    subject, assumed = asked.settled(sys.stdin.isatty() and not as_json)
    wish, advice = subject.wish, rank(subject.wish)
    near = [] if advice.ranked else nearest(wish)
    told = [*words.premises(subject, assumed), *words.chosen(advice, wish), *words.nearest_told(near, wish)]
    if accuracy is not None:
        words.require_accuracy(wish, accuracy)
        if pilot is None:
            told.append(words.reached(wish, accuracy))
    if figure is not None and advice.ranked:
        draw(prospects(wish), wish, figure)
        told.append(f"drew {figure}")
    scenario = tried = None
    if advice.ranked:
        if pilot is not None:
            tried = run_pilot(asked, subject, advice.ranked, pilot, pilot_data, accuracy)
        elif charged_pilot is not None:
            tried = run_selection(subject, advice.ranked, charged_pilot, write and write.with_suffix(".npz"))
        told += [] if tried is None else tried.sentences
        made = advised(subject) if tried is None else tried.made
        scenario = made.plain
        if write is None:
            told.append("Add --write FILE for a scenario that compares the leading ones on your data.")
        else:
            checked(made, subject)
            save("--write", write, made.to_yaml(write.name, "advise"))
            told.append(f"wrote {write}; run it with: federation run {write}")
    elif write is not None:
        told.append("Nothing was written, as there is nothing to run.")
    record = {
        "verdict": words.verdict(advice),
        "advice": [words.record(one, wish) for one in advice.ranked],
        "refused": [{"protocol": one.kind, "reason": one.reason} for one in advice.refused],
        "nearest": [{"flags": dict(flags), **words.record(one, wish)} for flags, one in near],
        "counted": subject.counted,
        "assumed": assumed,
        "pilot": None if tried is None else tried.record,
        "scenario": scenario,
        "sentences": told,
    }
    tables = {
        "by public numbers": words.rows(advice, wish),
        "what leaves a party": words.leaving(advice),
        "refused": record["refused"],
        **({} if tried is None else {tried.title: tried.rows}),
    }
    tell(as_json, record if as_json else {title: found for title, found in tables.items() if found}, text=told)
    if tried is not None and tried.interrupted:
        raise Exit(INTERRUPTED)


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


@dataclass(frozen=True)
class Asked:
    """The flags of `federation advise` as they were given; None, or an empty tuple, for what was not."""

    about: str | None
    rows: int | None
    columns: int | None
    parties: int | None
    epsilon: float
    delta: float
    task: Task | None
    protect: questions.Protect | None
    trust: questions.Trusted | None
    features: questions.Features | None
    classes: int | None
    bags: int | None
    bag_rows: int | None
    label_range: tuple[float, float] | None
    public_rows: Path | None
    public_count: int | None
    per_person: int
    majority: float | None
    attainable: float | None
    residual: float | None
    source: str
    label: str | None
    group: str | None
    person: str | None
    positive: tuple[str, ...]
    write: Path | None
    data_dir: Path | None

    def settled(self, asking: bool) -> tuple[Subject, list[str]]:
        """The subject, once what is missing has been asked for, and the flags that were taken to be said elsewhere.

        Raises `InputError` for flags that do not go together and data that cannot be used.
        """
        protect = self.protect or questions.choice(questions.PROTECT, ("label", "row", "person", "party"), asking)
        trust = self.trust or questions.choice(questions.TRUST, ("none", "secure", "aggregator"), asking)
        usual = ("public", "private") if protect == "label" else ("private", "public")
        features = self.features or questions.choice(questions.FEATURES, usual, asking)
        whole = replace(self, protect=protect, trust=trust, features=features)
        left_open: dict[str, tuple[Any, Any]] = {
            "protect": (self.protect, protect),
            "trust": (self.trust, trust),
            "features": (self.features, features),
        }
        if self.about is None:
            whole = whole._with_numbers(asking)
            left_open |= {"task": (self.task, whole.task), "parties": (self.parties, whole.parties)}
        assumed = [] if asking else [f"--{flag} {now}" for flag, (said, now) in left_open.items() if said is None]
        return whole._subject(asking), assumed

    def _with_numbers(self, asking: bool) -> Asked:
        """With the task, and the numbers that it needs: asked for, or as far as there are defaults."""
        tasks: tuple[Task, ...] = ("regression", "binary", "multiclass", "ratio")
        task: Task = self.task or ("ratio" if self.bags else questions.choice(questions.TASK, tasks, asking))
        known = replace(self, task=task, parties=1 if self._together else self.parties)
        if not asking:
            return replace(known, parties=known.parties or 1)
        wanted = ["bags", "bag_rows", "classes"] if task == "ratio" else ["rows", "columns"]
        wanted += ["classes"] if task == "multiclass" else []
        numbers: dict[str, Any] = {name: getattr(known, name) or questions.number(name) for name in wanted}
        return replace(known, parties=known.parties or questions.number("parties", default=1), **numbers)

    def _subject(self, asking: bool) -> Subject:
        from scenarios.advice.target import of_scenario
        from scenarios.data.files import SUFFIXES

        if self.about is None:
            return self._of_numbers()
        if Path(self.about).suffix.lower() in SUFFIXES:
            return self._of_file(Path(self.about), asking)
        return of_scenario(self.about, self._wish(), self.data_dir)

    @property
    def _together(self) -> bool:
        """Whether somebody may hold all rows, who is one party then."""
        return self.trust == "aggregator" and self.protect in ("row", "label")

    def _wish(self, **counted: Any) -> Wish:
        """The wish by flags alone."""
        from aggregator.advice import Wish
        from aggregator.contract.protocol import Trust

        assert self.protect is not None, "it is settled"
        assert self.trust is not None, "it is settled"
        task = "binary" if self.task == "classification" else self.task or ("ratio" if self.bags else "regression")
        return Wish(
            task,
            self.protect,
            Trust(self.trust),
            self.features == "public",
            epsilon=self.epsilon,
            delta=self.delta,
            rows_per_person=self.per_person,
            majority=self.majority,
            attainable=self.attainable,
            residual=self.residual,
            **counted,
        )

    def _of_numbers(self) -> Subject:
        from scenarios.advice.target import of_numbers
        from scenarios.data.catalogue import entry
        from scenarios.data.profile import profile

        wish = self._wish()
        known = entry(self.source)
        documented = None if known is None else known.label_range
        public = self.public_count
        if public is None and self.public_rows is not None:
            public = profile(self.public_rows).rows
        wish = replace(
            wish,
            rows=self.rows,
            features=self.columns,
            terms=TrustTerms(1 if self._together else self.parties or 1),
            classes=2 if wish.task == "binary" else self.classes,
            label_range=(self.label_range or documented or (0.0, 1.0)) if wish.task == "regression" else None,
            public_rows=public,
            bags=self.bags,
            bag_rows=self.bag_rows,
        )
        needed: dict[str, Any] = {"--n": self.rows, "--d": self.columns}
        if wish.task == "ratio":
            needed = {"--bags": self.bags, "--bag-rows": self.bag_rows, "--classes": self.classes}
        elif wish.task == "multiclass":
            needed["--classes"] = self.classes
        return of_numbers(wish, self.source, self.label or _LABEL, needed)

    def _of_file(self, file: Path, asking: bool) -> Subject:
        from scenarios.advice.target import of_file
        from scenarios.data.profile import profile
        from scenarios.settings.draft import Wish

        for flag, value in (("--n", self.rows), ("--d", self.columns), ("--classes", self.classes)):
            if value is not None:
                raise InputError(f"{flag} is for advice without data, and {file} has rows to count; leave it out")
        found = profile(file, self.label)
        label = self.label or questions.column_of_labels(found, asking)
        bounds, person = self.label_range, self.person
        if bounds is None and asking and found.is_real(found.column(label, "--label")):
            bounds = parsed_range(typer.prompt(questions.RANGE_ASKED, err=True))
        if self.protect == "person" and person is None and asking:
            person = questions.column_of_persons(found)
        assert self.protect is not None, "it is settled"
        assert self.trust is not None, "it is settled"
        out = self.write or Path("advised.yaml")
        drafted = Wish(
            label,
            self.protect,
            self.trust,
            source=questions.as_seen(out, file),
            public=None if self.public_rows is None else questions.as_seen(out, self.public_rows),
            group=None if self._together else self.group,
            person=person,
            parties=None if self._together else self.parties,
            epsilon=(self.epsilon,),
            delta=self.delta or None,
            label_range=bounds,
            positive=self.positive,
        )
        bags = self.bags or (2 if self.task == "ratio" else None)
        public = None if self.public_rows is None else profile(self.public_rows)
        return of_file(found, drafted, self._wish(), public, bags, here=(file, self.public_rows))


def run_pilot(
    asked: Asked, subject: Subject, ranked: Sequence[Ranked], seconds: float, data: Path | None, accuracy: float | None
) -> Tried:
    """Try the ranked protocols for so many seconds, on the subject's own rows or on public `data`.

    With an `accuracy` half of the time is for the epsilon at which it is reached. Raises `InputError` where there are
    no rows, and for parties that are deployed, who answer no pilot.
    """
    from scenarios.advice import pilot as pilot_words
    from scenarios.advice.pilot import needed_epsilon, pilot
    from scenarios.advice.pilot_runs import Deadline, OutOfTimeError
    from scenarios.advice.proposed_scenario import piloted

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
    from scenarios.advice import private_selection as selection_words
    from scenarios.advice.private_selection import planned
    from scenarios.advice.proposed_scenario import selected

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


_LABEL = "y"  # of a scenario for data that is not at hand
