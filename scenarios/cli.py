"""`federation`: the command line. Light to import; each command imports its work when it runs."""

import functools
import gc
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import click
import typer

from federation.contract.errors import DEBUG, FederationError, InputError, told, unwritable
from scenarios.commands import inspect
from scenarios.commands.advise import advise
from scenarios.commands.audit import audit, check_claim
from scenarios.commands.deploy import collect_command, deploy
from scenarios.commands.init import init
from scenarios.commands.inspect import data
from scenarios.commands.output import remark
from scenarios.commands.party import party_app
from scenarios.commands.predict import predict_command
from scenarios.commands.privacy import privacy_app
from scenarios.commands.report import figure, report_command
from scenarios.commands.reproduce import reproduce_command
from scenarios.commands.run import run_command

app = typer.Typer(
    name="federation",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Federated multiparty learning under differential privacy.",
)
INTERRUPTED = 130  # what typer makes of a KeyboardInterrupt
_MANY_OBJECTS = 50_000  # more than before, until garbage is looked for; Python's own 700 cost a tenth of a small run
TERMINATED = 128 + signal.SIGTERM
_KEPT = {  # what is left of an interrupted command
    "run": "; worlds that were finished, if any, are kept, and --resume goes on with them",
    "reproduce": "; worlds that were finished, if any, are kept, and the same command goes on with them",
}
_TWICE = re.compile(r"( Did you mean [^?]*\?)\1")  # click suggests, and so does typer


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


app.command()(init)
app.command("run")(run_command)
app.command()(inspect.show)
app.command()(inspect.validate)
app.command("list")(inspect.list_choices)
app.command()(inspect.schema)
app.command()(data)
app.command()(audit)
app.command()(advise)
app.command()(check_claim)
app.command("report")(report_command)
app.command()(figure)
app.command("reproduce")(reproduce_command)
app.command("predict")(predict_command)
app.command()(deploy)
app.command("collect")(collect_command)
app.add_typer(privacy_app, name="privacy")
app.add_typer(party_app, name="party")


@functools.cache
def program() -> click.Command:
    """All commands with their options, which take a twentieth of a second to make."""
    return typer.main.get_command(app)


def main() -> None:
    """Run and exit: 0 done, 1 failed, 2 bad input, 3 over budget, 4 no quorum, 5 no power, 130 and 143 stopped."""
    if sys.platform == "win32":
        sys.exit(
            _fail("Windows is not supported, as Ray's workers and file locks are not the same there; use WSL 2", 1)
        )
    with _seldom_collecting(), _terminable() as received:
        code = _exit_code()
    sys.exit(TERMINATED if received and code == INTERRUPTED else code)


@contextmanager
def _terminable() -> Iterator[list[int]]:
    """SIGTERM, which schedulers and containers send, interrupts as SIGINT does; gives the signals that have come."""
    received: list[int] = []

    def interrupt(number: int, _: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Looks for garbage that only circles of references keep after many new objects: imports make many that stay."""
    before = gc.get_threshold()
    gc.set_threshold(_MANY_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _exit_code() -> int:
    try:
        code = program()(prog_name="federation", standalone_mode=False)
        if code == INTERRUPTED:
            return _fail(f"interrupted{_KEPT.get(''.join(sys.argv[1:2]), '')}", INTERRUPTED)
        return code if isinstance(code, int) else 0
    except FederationError as error:
        return _fail(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _fail(_TWICE.sub(r"\1", error.format_message()), error.exit_code)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _fail(told(error), InputError.exit_code if unwritable(error) else 1)


def _fail(text: str, code: int) -> int:
    for line in text.splitlines():
        remark(f"error: {line}")
    return code


if __name__ == "__main__":
    main()
