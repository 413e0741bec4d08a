"""README and docs tell what is so: commands and code run, what they show is printed, links lead somewhere."""

import importlib.util
import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from benchmarks.documentation.__main__ import TOLERANCE, pages
from benchmarks.documentation.blocks import blocks, commands, differ, fences
from benchmarks.documentation.contents import Runs, content, parsed, printed

ROOT = Path(__file__).resolve().parents[2]
PAGES = pages(ROOT)
README = ROOT / "README.md"
EXAMPLES = ROOT / "docs" / "examples"
ELSEWHERE = {
    "own-protocol.md",
    "three-sites.md",
    "two-servers.md",
    "periods.md",
}  # tests/guarantees and tests/deployment follow them


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


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs of these tests, and a place for their figures."""
    folder = tmp_path_factory.mktemp("runs")
    return Runs(folder, folder / "pages")


@pytest.mark.parametrize("path", [path for path in PAGES if path != README and path.name not in ELSEWHERE], ids=named)
def test_what_a_page_tells_can_be_followed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    walk(text(path), tmp_path)


def test_the_readme_alone_leads_from_a_table_to_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = walk(text(README), tmp_path)
    assert [line.split()[1] for line in done if line.startswith("federation")][:3] == ["init", "run", "predict"]
    assert (tmp_path / "my-scenario.yaml").is_file()
    assert (tmp_path / "runs" / "my-scenario" / "report.html").is_file()


def test_the_readme_is_short_and_has_a_figure() -> None:
    assert len(text(README).splitlines()) < 130
    assert any(block.kind == "figure" for block in blocks(text(README)))


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(text(path))], ids=named)
def test_what_is_printed_is_what_the_product_prints(path: Path, runs: Runs) -> None:
    for block in blocks(text(path)):
        assert block.content.strip(), f"never written: python -m benchmarks.documentation {named(path)} --write"
        if not block.slow:
            hint = f"python -m benchmarks.documentation {named(path)} --write"
            assert not differ(block.content.strip("\n"), content(block, runs), TOLERANCE), f"{block.settings}: {hint}"


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=named)
def test_every_command_has_these_options(path: Path) -> None:
    for words in command_lines(text(path)):
        try:
            parsed(words)
        except click.MissingParameter:
            assert len(words) <= 3, f"federation {' '.join(words)}: incomplete"  # a command's name, in a sentence
        except click.ClickException as error:
            raise AssertionError(f"federation {' '.join(words)}: {error.format_message()}") from None


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=named)
def test_links_and_benchmarks_are_there(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", text(path)):
        assert (path.parent / target).exists(), target
    for module in re.findall(r"python -m\s+(benchmarks\.\w+)", text(path)):
        if module != "benchmarks.NAME":
            assert importlib.util.find_spec(module) is not None, module


def test_every_protocol_has_a_page_with_its_options() -> None:
    from aggregator.contract.registry import protocol_names

    for protocol in (ROOT / "aggregator" / "protocols").iterdir():
        name = protocol.stem
        if name in protocol_names():
            kinds = {(block.kind, block.settings.get("protocol")) for block in blocks(text(page_of(name)))}
            assert ("options", name) in kinds
            assert f"protocols/{name}.md" in text(README)


def page_of(protocol: str) -> Path:
    return ROOT / "docs" / "protocols" / f"{protocol}.md"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=named)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    assert len(text(path).splitlines()) <= 60
    assert path.name in text(EXAMPLES / "index.md")
    monkeypatch.chdir(tmp_path)
    run_script(path)
    assert capsys.readouterr().out


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context({"backend": "agg"}):
        assert run_notebook(json.loads(text(EXAMPLES / "first-steps.ipynb"))["cells"]) > 5
