"""`federation init`: a first scenario from one's own file, by a few questions or by flags."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from federation.contract.errors import InputError
from scenarios.commands import questions
from scenarios.commands.options import RANGE, AsJson, parsed_range
from scenarios.commands.output import save, tell


def init(
    file: Annotated[Path, Argument(metavar="FILE", help="Your rows: csv, npz, Parquet or svmlight.")],
    out: Annotated[Path, Option("--out", metavar="YAML", help="The scenario to write.")] = Path("my-scenario.yaml"),
    label: Annotated[str | None, Option(metavar="COLUMN", help="What is to be learned.")] = None,
    protect: Annotated[
        questions.Protect | None,
        Option(help="What the guarantee hides: all of a party (default), a person, a row or a label."),
    ] = None,
    trust: Annotated[
        questions.Trusted | None,
        Option(help="aggregator (default): all trust it; secure: a sum only; none: every party adds its own noise."),
    ] = None,
    public: Annotated[
        Path | None, Option(metavar="FILE", help="Rows that are really public; without it some of FILE play them.")
    ] = None,
    group: Annotated[str | None, Option(metavar="COLUMN", help="Every value of it is a party.")] = None,
    person: Annotated[
        str | None, Option(metavar="COLUMN", help="Says whose row each is; for --protect person.")
    ] = None,
    parties: Annotated[int | None, Option(metavar="K", min=1, help="How many parties.")] = None,
    epsilon: Annotated[list[float], Option(help="Privacy loss of a release; repeatable.")] = [1.0, 3.0, 10.0],  # noqa: B006 - typer copies it
    label_range: Annotated[str | None, RANGE] = None,
    positive: Annotated[
        list[str], Option(metavar="CLASS", help="Counts as the positive one of two classes; repeatable.")
    ] = [],  # noqa: B006 - typer copies it
    as_json: AsJson = False,
) -> None:
    """Write a first scenario for your own file, with comments, that `federation run` takes as it is.

    Looks at the columns, and asks `federation advise` which protocols to compare. On a terminal it asks what flags
    leave open; otherwise the defaults hold.
    """
    from scenarios.advice.subject import of_file, wished
    from scenarios.advice.written import advised, checked
    from scenarios.data.profile import profile
    from scenarios.settings.draft import Wish

    if out.exists():
        raise InputError(f"--out: {out} exists; name another file, or remove it")
    found, asking = profile(file, label), sys.stdin.isatty() and not as_json
    if asking:
        questions.show_columns(found)
    label = label or questions.column_of_labels(found, asking)
    protect = protect or questions.choice(questions.PROTECT, ("party", "person", "row", "label"), asking)
    assert protect is not None, "it is one of the answers"
    if protect == "person" and person is None and asking:
        person = questions.column_of_persons(found)
    trust = trust or questions.choice(questions.TRUST, ("aggregator", "secure", "none"), asking)
    assert trust is not None, "it is one of the answers"
    if public is None and asking:
        named = typer.prompt(questions.PUBLIC, default="", show_default=False, err=True)
        public = Path(named).expanduser() if named else None
    if label_range is None and asking and found.is_real(found.column(label, "--label")):
        label_range = typer.prompt(questions.RANGE_ASKED, err=True)
    wish = Wish(
        label,
        protect,
        trust,
        source=questions.as_seen(out, file),
        public=None if public is None else questions.as_seen(out, public),
        group=group,
        person=person,
        parties=parties,
        epsilon=tuple(dict.fromkeys(epsilon)),
        label_range=None if label_range is None else parsed_range(label_range),
        positive=tuple(positive),
    )
    others = None if public is None else profile(public)
    subject = of_file(found, wish, wished(wish, protect == "label"), others, here=(file, public))
    written = advised(subject)
    checked(written, subject)
    save("--out", out, written.to_yaml(out.name, "init"))
    if not (asking or as_json):
        questions.show_columns(found)
    columns = [questions.described(column) for column in found.columns]
    record = {"scenario": str(out), "settings": written.plain, "remarks": list(written.remarks), "columns": columns}
    told = [*written.remarks, f"wrote {out}; run it with: federation run {out}"]
    tell(as_json, record, text=told, hidden=record)
