"""`federation`: the command line. Light to import; each command imports its work when it runs."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click
import typer

from federation.contract.errors import DEBUG, FederationError, told
from scenarios.commands import inspect
from scenarios.commands.advise import advise
from scenarios.commands.audit import audit
from scenarios.commands.options import DataDirectory, ScenarioName, Settings
from scenarios.commands.privacy import privacy_app

app = typer.Typer(
    name="federation",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Federated multiparty learning under differential privacy.",
)
INTERRUPTED = 130  # what typer makes of a KeyboardInterrupt


class Engine(StrEnum):
    """Where a run takes place."""

    INLINE = "inline"
    RAY = "ray"
    FLOWER = "flower"


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"federation {version('multiparty-federation')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Federated multiparty learning under differential privacy."""


@app.command()
def run(
    scenario: ScenarioName,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run directory; default: runs/NAME.")] = None,
    settings: Settings = [],  # noqa: B006 - typer copies it
    engine: Annotated[Engine | None, typer.Option("--engine", help="Short for --set engine.kind=...")] = None,
    data_dir: DataDirectory = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run: what is unfinished or failed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; train nothing.")] = False,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep the models of all variants, not of the default only.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run a scenario: train, release, score; write results, ledger, figures and a report.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.commands.run import run_command

    run_command(
        scenario,
        out=out,
        overrides=settings if engine is None else [*settings, f"engine.kind={engine}"],
        data_dir=data_dir,
        resume=resume,
        dry_run=dry_run,
        keep_models=keep_models,
        as_json=as_json,
    )


app.command()(inspect.show)
app.command()(inspect.validate)
app.command("list")(inspect.list_choices)
app.command()(inspect.schema)
app.command()(audit)
app.command()(advise)
app.add_typer(privacy_app, name="privacy")


@app.command()
def report(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run directories.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Default: report.html in DIR.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Write the report of one run again, or one report that compares several."""
    from scenarios.commands.report import report_command

    report_command(directories, out, as_json)


@app.command()
def predict(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Run directory.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New rows: csv, npz or Parquet.")],
    variant: Annotated[str, typer.Option("--variant", metavar="NAME", help="Whose model.")],
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Which release; default: the largest.")] = None,
    split: Annotated[int, typer.Option("--split", min=0, help="Which split.")] = 0,
    draw: Annotated[int, typer.Option("--draw", min=0, help="Which noise draw.")] = 0,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Class ratios for each value of a column.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="CSV", help="Write here instead of standard output.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of csv.")] = False,
) -> None:
    """Apply a released model to new rows."""
    from scenarios.commands.predict import predict_command

    predict_command(directory, variant, file, epsilon, split, draw, by, out, as_json)


def main() -> None:
    """Run and exit: 0 done, 1 failed, 2 bad input, 3 over budget, 4 no quorum, 130 interrupted."""
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        code = app(prog_name="federation", standalone_mode=False)
        if code == INTERRUPTED:
            text = "interrupted; worlds that were finished, if any, are kept, and --resume goes on with them"
            return _fail(text, INTERRUPTED)
        return code if isinstance(code, int) else 0
    except FederationError as error:
        return _fail(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _fail(told(error), 1)


def _fail(text: str, code: int) -> int:
    for line in text.splitlines():
        typer.echo(f"error: {line}", err=True)
    return code
