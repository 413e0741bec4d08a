"""Arguments and options that several commands share, and the completions of the shell.

The shell waits for completions, so this module imports nothing heavy.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from federation.contract.errors import InputError
from federation.contract.plugins import installed


def scenarios(incomplete: str) -> list[str]:
    """Library scenarios, scenario files and folders that begin so."""
    return _beginning(incomplete, _library()) + _files(incomplete)


ScenarioName = Annotated[
    str,
    Argument(
        metavar="SCENARIO",
        help="A scenario file, or the name of a library scenario.",
        autocompletion=scenarios,
    ),
]
Settings = Annotated[
    list[str],
    Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario, such as trials.splits=2; repeatable."),
]
DataDirectory = Annotated[
    Path | None, Option("--data-dir", metavar="DIR", help="Folder of data files; default: FEDERATION_DATA.")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
RANGE = Option("--range", metavar="LOW,HIGH", help="The public range of labels; never taken from data.")


def parsed_range(text: str) -> tuple[float, float]:
    """LOW,HIGH as two numbers. Raises `InputError` for anything else.

    Examples:
        >>> parsed_range("0,1e3")
        (0.0, 1000.0)
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--range must be two numbers with a comma between, such as 0,1; got '{text}'") from None
    if not low < high:
        raise InputError(f"--range must name the lower number first, got '{text}'")
    return low, high


MECHANISMS = ("discrete_laplace", "l2_gamma", "discrete_gaussian", "lattice_laplace", "count_gaussian")
_PROTOCOLS = "federation.protocols"
_FILES = (".yaml", ".yml")

Completed = Callable[[str], list[str]]


def scenarios_and_protocols(incomplete: str) -> list[str]:
    """The same, and installed protocols, none of which is loaded."""
    return _beginning(incomplete, [*_library(), *installed(_PROTOCOLS)]) + _files(incomplete)


def scenarios_and_mechanisms(incomplete: str) -> list[str]:
    """The same as of scenarios, and mechanisms that can be audited."""
    return _beginning(incomplete, [*_library(), *MECHANISMS]) + _files(incomplete)


def papers(incomplete: str) -> list[str]:
    """Papers whose tables and figures can be measured again."""
    from scenarios.reproductions.paper import names

    return _beginning(incomplete, names())


def _library() -> Iterable[str]:
    from scenarios.settings.loader import library

    return library()


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """Folders end with a slash, so that the shell goes on in them."""
    given = Path(incomplete)
    folder, begin = (given, "") if incomplete.endswith("/") else (given.parent, given.name)
    shown = incomplete[: len(incomplete) - len(begin)]
    try:
        found = sorted(each for each in folder.iterdir() if each.name.startswith(begin))
    except OSError:
        return []
    folders = [f"{shown}{each.name}/" for each in found if each.is_dir() and not each.name.startswith(".")]
    return [f"{shown}{each.name}" for each in found if each.suffix in _FILES] + (folders if begin or shown else [])
