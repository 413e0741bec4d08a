"""`federation advise`: which protocol, by public numbers first, then by a pilot; and a scenario that runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from scenarios.commands import questions
from scenarios.commands.advised import Asked, Task
from scenarios.commands.options import RANGE, AsJson, DataDirectory, parsed_range
from scenarios.commands.output import save, tell

INTERRUPTED = 130  # as for every command that somebody stops


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
    from scenarios.advice import words
    from scenarios.advice.prospects import draw, prospects
    from scenarios.advice.written import advised, checked
    from scenarios.commands.piloting import require_one_pilot, run_pilot, run_selection

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
