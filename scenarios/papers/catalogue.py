"""The papers that there are: folders of this one, each with a module of its own name that has a `PAPER`."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from importlib.resources import files

from federation.contract.errors import InputError, nearest_name
from scenarios.reproductions.paper import Item, Paper


def names() -> list[str]:
    """Names of papers, sorted; nothing of them is imported.

    Examples:
        >>> "lacombe" in names()
        True
    """
    folders = (files("scenarios") / "papers").iterdir()
    return sorted(each.name for each in folders if each.is_dir() and (each / f"{each.name}.py").is_file())


def paper(name: str) -> Paper:
    """A paper by its name. Raises `InputError`, which lists those that there are."""
    known = names()
    if name not in known:
        raise InputError(f"there is no paper '{name}'; there are {', '.join(known)}{nearest_name(name, known)}")
    found = importlib.import_module(f"scenarios.papers.{name}.{name}").PAPER
    assert isinstance(found, Paper)
    return found


def items(paper: Paper, only: Collection[str]) -> list[Item]:
    """The items of a paper of these names, or all where none is given. Raises `InputError`, which lists them."""
    known = [item.name for item in paper.items]
    for name in only:
        if name not in known:
            raise InputError(f"--only '{name}' is none of {', '.join(known)}{nearest_name(name, known)}")
    return [item for item in paper.items if not only or item.name in only]
