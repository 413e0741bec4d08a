"""What stands in the generated parts of a page, by kind."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import click
from pydantic import BaseModel

import benchmarks
from benchmarks.documentation.blocks import Block
from scenarios import cli
from scenarios.reports.report import finished_rows
from scenarios.reports.summary import VariantSummary, summarise
from scenarios.reports.tables import Cell
from scenarios.scores.results import Row
from scenarios.settings.loader import dump
from scenarios.settings.rules import described, why_default
from scenarios.settings.schema import Scenario

_OPTION = re.compile(r"^(?P<name>\w+): ", re.MULTILINE)
_WIDTH = 84  # letters of a terminal's line, as wide as a page


@dataclass
class Runs:
    """Finished runs of scenarios below `folder`; what is not there is run first. `pages` is where figures go."""

    folder: Path
    pages: Path
    data_dir: str | None = None
    _rows: dict[str, list[Row]] = field(default_factory=dict)

    def directory(self, scenario: str) -> Path:
        """The directory of a scenario's run, which `federation run` begins, or goes on with."""
        found = self.folder / scenario
        if not (found / "results.csv").is_file():
            data = ["--data-dir", self.data_dir] if self.data_dir else []
            resumed = ["--resume"] if found.is_dir() else []
            printed(["run", scenario, "--out", str(found), "--engine", "inline", *data, *resumed], self.folder)
        return found

    def rows(self, scenario: str) -> list[Row]:
        """The rows of its `results.csv`."""
        if scenario not in self._rows:
            [self._rows[scenario]] = finished_rows([self.directory(scenario)]).values()
        return self._rows[scenario]


def content(block: Block, runs: Runs) -> str:
    """What a block should say now. Raises `KeyError` for an unknown kind."""
    return _KINDS[block.kind](block.settings, runs)


def printed(arguments: Sequence[str], folder: Path) -> str:
    """What `federation ARGUMENTS` prints on a terminal as wide as a page, called in `folder`.

    Raises `RuntimeError` with what it says where it fails.
    """
    said, complaint = io.StringIO(), io.StringIO()
    folder.mkdir(parents=True, exist_ok=True)
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", ["federation", *arguments]),
        mock.patch.dict(os.environ, {"COLUMNS": str(_WIDTH), "NO_COLOR": "1"}),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complaint),
    ):
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                failed = f"federation {shlex.join(arguments)} ended with {end.code}: "
                raise RuntimeError(failed + complaint.getvalue()) from None
    return "".join(f"{line}\n" for told in said.getvalue().splitlines() for line in _folded(told.rstrip()))


def _folded(line: str) -> list[str]:
    """A line as a terminal shows it: as it is, or in several."""
    return textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False) if len(line) > _WIDTH else [line]


def parsed(words: Sequence[str], bare: bool = False) -> tuple[click.Command, click.Context]:
    """The command that the words after `federation` name, and its context with their options, nothing being run.

    With `bare` they name a command without its options. Raises `click.ClickException` for what it does not have.
    """
    found = cli.program()
    context = click.Context(found, info_name="federation")
    rest = list(words)
    while isinstance(found, click.Group) and rest:
        name, inner, rest = found.resolve_command(context, rest)
        if inner is None:
            raise click.UsageError(f"no command {name}")
        found = inner
        last = not isinstance(found, click.Group)
        context = (
            found.make_context(name, list(rest), parent=context)
            if last and not bare
            else click.Context(found, info_name=name, parent=context)
        )
    return found, context


def _output(settings: Mapping[str, Any], runs: Runs) -> str:
    """`command`, and what it prints; of it only lines `from` to `to` where these are given, counted from 1."""
    words = shlex.split(settings["command"])
    lines = printed(words[1:], runs.folder).splitlines()
    shown = lines[settings.get("from", 1) - 1 : settings.get("to", len(lines))]
    return "\n".join(["```sh", settings["command"], "```", "", "```text", *shown, "```"])


def _table(settings: Mapping[str, Any], runs: Runs) -> str:
    """Means over releases of a run's variants: `rows` over `columns`.

    rows: the name or names (one for each `head`) of each variant of results.csv.
    columns: epsilons, or mappings with a `name` and values of `epsilon` and of swept keys of the scenario.
    metric: by default the one by which variants are compared.
    """
    head = [settings["head"]] if isinstance(settings.get("head", "variant"), str) and "head" in settings else None
    head = head or settings.get("head", ["variant"])
    summaries = summarise(runs.rows(settings["run"]), settings.get("metric"))
    columns = [
        one if isinstance(one, dict) else {"name": f"ε = {one:g}", "epsilon": one} for one in settings["columns"]
    ]
    lines = [[*head, *(str(one["name"]) for one in columns)], ["---"] * (len(head) + len(columns))]
    for variant, named in settings["rows"].items():
        members = [one for one in summaries if one.variant == variant]
        if not members:
            raise ValueError(f"{settings['run']} has no {variant}; it has {sorted({one.variant for one in summaries})}")
        cells = [_cell(members, column) for column in columns]
        lines.append([*([named] if isinstance(named, str) else named), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(members: Iterable[VariantSummary], column: Mapping[str, Any]) -> str:
    keys = {key: str(value) for key, value in column.items() if key not in ("name", "epsilon")}
    for one in members:
        if all(one.setting.get(key) == value for key, value in keys.items()):
            cell = Cell.of(one.at(column["epsilon"]), one.metric)
            return cell.text.partition(" ± ")[0] + (f" ({cell.kept})" if cell.kept else "")
    return ""


def _verdict(settings: Mapping[str, Any], runs: Runs) -> str:
    """What a run says of its releases' worth, a sentence each."""
    record = json.loads((runs.directory(settings["run"]) / "run.json").read_text(encoding="utf-8"))
    return "\n".join(f"> {_escaped(one['sentence'])}" for one in record["sayings"])


def _figure(settings: Mapping[str, Any], runs: Runs) -> str:
    """A figure of a run, copied to `to` among the pages, with the text that stands for it."""
    source = runs.directory(settings["run"]) / "figures" / settings["figure"]
    target = runs.pages / settings["to"]
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return f"![{settings['alt']}]({settings.get('below', '')}{settings['to']})"


def _options(settings: Mapping[str, Any], runs: Runs) -> str:
    """Options of a protocol with their defaults, and how these were chosen, as `federation show PROTOCOL` has them."""
    record, _ = described(settings["protocol"])
    about, defaults = record["about"], record["defaults"]
    starts = [match for match in _OPTION.finditer(about) if match["name"] in defaults]
    ends = [match.start() for match in starts[1:]] + [len(about)]
    meant = {
        match["name"]: " ".join(about[match.end() : end].split("\n\n")[0].split())
        for match, end in zip(starts, ends, strict=True)
    }
    lines = ["| option | default | what it is |", "|---|---|---|"]
    lines += [
        f"| `{name}` | `{dump(value, flow=True).strip()}` | {_escaped(meant[name])} |"
        for name, value in defaults.items()
        if name in meant
    ]
    rules = why_default(settings["protocol"])
    if rules:
        lines += ["", "| default | rule | validated on |", "|---|---|---|"]
    lines += [f"| {_escaped(one.default)} | {_escaped(one.rule)} | {_escaped(one.validated)} |" for one in rules]
    return "\n".join(lines)


def _command(settings: Mapping[str, Any], runs: Runs) -> str:
    """What a command does, its arguments and its options, as `federation COMMAND --help` has them."""
    found, context = parsed(settings["command"].split(), bare=True)
    lines = [f"```text\n{found.get_usage(context).removeprefix('Usage: ')}\n```", "", _escaped(_joined(found.help))]
    options = [one for one in found.params if isinstance(one, click.Option) and one.name != "help"]
    if options:
        lines += ["", "| option | what it does |", "|---|---|"]
    for one in options:
        names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
        lines.append(f"| {names} | {_escaped(_joined(one.help))} |")
    return "\n".join(lines)


def _settings(settings: Mapping[str, Any], runs: Runs) -> str:
    """All keys of a scenario with what they mean; `section` names one."""
    section: Any = Scenario
    if "section" in settings:
        section = Scenario.model_fields[settings["section"]].annotation
    lines = ["| key | what it says |", "|---|---|"]
    return "\n".join([*lines, *_keys(section, f"{settings['section']}." if "section" in settings else "")])


def _keys(section: Any, before: str) -> Iterator[str]:
    for key, declared in section.model_fields.items():
        inner = declared.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            if before:
                yield from _keys(inner, f"{before}{key}.")
        elif declared.description:
            yield f"| `{before}{key}` | {_escaped(_joined(declared.description))} |"


def _benchmarks(settings: Mapping[str, Any], runs: Runs) -> str:
    """Every benchmark with the first sentence of what it says of itself."""
    folder = Path(benchmarks.__file__).parent
    found = {path.stem: path for path in folder.glob("*.py")} | {
        path.parent.name: path for path in folder.glob("*/__main__.py")
    }
    lines = ["| `benchmarks.` | what it prints |", "|---|---|"]
    for name, path in sorted(found.items()):
        text = path.read_text(encoding="utf-8")
        if path.name == "__main__.py" or "__main__" in text:
            said = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].partition(": python -m")[0]
            lines.append(f"| `{name}` | {_escaped(said.rstrip('.'))} |")
    return "\n".join(lines)


def _joined(text: str | None) -> str:
    """Lines as one, paragraphs apart."""
    return " ".join((text or "").split())


def _escaped(text: str) -> str:
    """A text in a cell of a table; outside code, signs are themselves."""
    parts = text.replace("|", r"\|").split("`")
    return "`".join(part if i % 2 else re.sub(r"([*_<$\[\]{}])", r"\\\1", part) for i, part in enumerate(parts))


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Runs], str]] = {
    "benchmarks": _benchmarks,
    "command": _command,
    "figure": _figure,
    "options": _options,
    "output": _output,
    "settings": _settings,
    "table": _table,
    "verdict": _verdict,
}
