"""What the shell may complete; it waits for the answer, so nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

MECHANISMS = ("discrete_laplace", "l2_gamma", "discrete_gaussian", "lattice_laplace", "count_gaussian")
_PROTOCOLS = "federation.protocols"
_FILES = (".yaml", ".yml")

Completed = Callable[[str], list[str]]


def scenarios(incomplete: str) -> list[str]:
    """Library scenarios, scenario files and folders that begin so."""
    return _beginning(incomplete, _library()) + _files(incomplete)


def scenarios_and_protocols(incomplete: str) -> list[str]:
    """The same, and installed protocols, none of which is loaded."""
    from federation.contract.plugins import installed

    return _beginning(incomplete, [*_library(), *installed(_PROTOCOLS)]) + _files(incomplete)


def scenarios_and_mechanisms(incomplete: str) -> list[str]:
    """The same as of scenarios, and mechanisms that can be audited."""
    return _beginning(incomplete, [*_library(), *MECHANISMS]) + _files(incomplete)


def papers(incomplete: str) -> list[str]:
    """Papers whose tables and figures can be measured again."""
    from scenarios.papers.catalogue import names

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
