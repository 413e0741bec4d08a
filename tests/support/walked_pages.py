"""Pages followed as a reader would: files are written, commands and code are run, from top to bottom."""

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

from benchmarks.documentation.blocks import commands, fences
from benchmarks.documentation.contents import printed

_NAMED = re.compile(r"# (?P<path>[\w./-]+\.\w+)\n")


def walk(page: str, folder: Path) -> list[str]:
    """Follow a page in `folder`, the working directory; gives what was run, in order.

    A fence that begins with the name of a file is written there. Code is run, but for examples of a doctest, which
    pytest runs; so are commands `federation`. Texts are for reading. Anything else is an error.
    """
    done: list[str] = []
    names: dict[str, Any] = {"__name__": "page"}
    for fence in fences(page):
        if fence.reason:
            continue
        if named := _NAMED.match(fence.text):
            (folder / named["path"]).write_text(fence.text)
            done.append(named["path"])
        elif fence.language == "python" and ">>>" not in fence.text:
            exec(compile(fence.text, "the page", "exec"), names)
            done.append(fence.text)
        elif fence.language == "sh":
            done += [_run(command, folder) for command in commands(fence)]
        elif fence.language not in ("text", "python", "{toctree}"):
            raise AssertionError(f"nothing runs this: {fence}")
    return done


def _run(command: str, folder: Path) -> str:
    program, *words = shlex.split(command)
    assert program == "federation", f"nothing runs this: {command}"
    printed(words, folder)
    return command


def run_notebook(cells: list[dict[str, Any]]) -> int:
    """Run a notebook's cells of code in one namespace, as its kernel does; gives their number."""
    names: dict[str, Any] = {}
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for source in sources:
        exec(compile(source, "the notebook", "exec"), names)
    return len(sources)


def run_script(path: Path) -> None:
    """Run a script as `python PATH` does."""
    runpy.run_path(str(path), run_name="__main__")


def command_lines(page: str) -> list[list[str]]:
    """The words after `federation` of all commands on a page, also of those that are not run with it."""
    of_fences = [command for fence in fences(page) if fence.language == "sh" for command in commands(fence)]
    inline = re.findall(r"`(federation [a-z][^`\n]*)`", page)
    lines = (line.partition(" > ")[0].removesuffix(" &") for line in [*of_fences, *inline])
    return [shlex.split(line)[1:] for line in lines if line.startswith("federation ")]
