import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.command_line import call

from federation.contract.errors import BudgetExceededError, QuorumError
from scenarios import cli
from scenarios.estimates.estimate import PHASES
from scenarios.runs import runner
from scenarios.settings.schema import resolve

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("run", "show", "validate", "list", "schema", "audit", "privacy")
HEAVY = ("numpy", "scipy", "flwr", "ray", "sklearn", "matplotlib", "pydantic", "yaml", "jinja2", "pyarrow")


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


LIGHT = [pytest.param(command, marks=pytest.mark.slow) for command in ("show", "validate", "list", "schema", "audit")]


@pytest.mark.parametrize("command", ["", "run", "privacy", *LIGHT])
def test_help_imports_nothing_heavy(command: str) -> None:
    code = (
        "import sys\n"
        "from scenarios.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as exit:\n    assert exit.code == 0, exit.code\n"
        f"heavy = [name for name in {HEAVY} if name in sys.modules]\n"
        "print('HEAVY', heavy)"
    )
    done = _python("-c", code, *command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: federation" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_help_lists_every_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "--help") == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert f" {command} " in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("validate quickstrt", "did you mean 'quickstart'?"),
        ("validate quickstart --set parties.coutn=1", "--set parties.coutn=1: parties.coutn: unknown key"),
        ("run quickstart --set privacy.epsilon=-1", "privacy.epsilon: must be greater than 0"),
        ("run", "Missing argument"),
        ("run quickstart --engine rya", "'rya' is not one of"),
        ("rum", "No such command 'rum'. Did you mean 'run'?\n"),
        ("privacy gausian", "No such command 'gausian'. Did you mean 'gaussian'?\n"),
        ("show soft_vot", "did you mean 'soft_vote'?\n"),
    ],
)
def test_bad_input_ends_with_one_line_and_code_2(arguments, message, monkeypatch, capsys):
    assert call(monkeypatch, *arguments.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert printed.err.lower().count("did you mean") <= 1


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (BudgetExceededError("too much"), 3, "error: too much\n"),
        (QuorumError("too few"), 4, "error: too few\n"),
        (
            KeyboardInterrupt(),
            130,
            "error: interrupted; worlds that were finished, if any, are kept, and --resume goes on with them\n",
        ),
        (
            ValueError("odd\nthing"),
            1,
            "error: unexpected ValueError: odd thing; run with FEDERATION_DEBUG=1 for the traceback\n",
        ),
        (
            PermissionError(13, "Permission denied", "/srv/journal.jsonl"),
            2,
            "error: /srv/journal.jsonl cannot be read or written: Permission denied; let this user do so, or free some "
            "room on its disk\n",
        ),
        (
            OSError(28, "No space left on device"),
            2,
            "error: a file cannot be read or written: No space left on device; let this user do so, or free some room "
            "on its disk\n",
        ),
    ],
)
def test_failures_end_with_their_code(error, code, text, monkeypatch, capsys):
    def fail(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.delenv("FEDERATION_DEBUG", raising=False)
    monkeypatch.setattr(runner, "run", fail)
    assert call(monkeypatch, "run", "quickstart") == code
    assert capsys.readouterr().err == text


def test_termination_is_an_interruption_with_its_own_code(monkeypatch, capsys):
    def terminated(*args: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it went on")

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(runner, "run", terminated)
    assert call(monkeypatch, "run", "quickstart") == 128 + signal.SIGTERM
    assert capsys.readouterr().err.startswith("error: interrupted; worlds that were finished, if any, are kept, and ")
    assert signal.getsignal(signal.SIGTERM) is before


def test_garbage_is_looked_for_seldom_while_a_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def stopped(*args: Any, **options: Any) -> None:
        found.append(gc.get_threshold())
        raise KeyboardInterrupt

    before = gc.get_threshold()
    monkeypatch.setattr(runner, "run", stopped)
    assert call(monkeypatch, "run", "quickstart") == 130
    assert found[0][0] > 10 * before[0] > 0
    assert gc.get_threshold() == before


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDERATION_DEBUG", "1")
    monkeypatch.setattr(runner, "run", lambda *args, **options: int("odd"))
    monkeypatch.setattr(sys, "argv", ["federation", "run", "quickstart"])
    with pytest.raises(ValueError, match="odd"):
        cli.main()


def test_run_hands_its_options_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[tuple[Any, dict[str, Any]]] = []

    def note(scenario: Any, **options: Any) -> None:
        calls.append((scenario, options))
        raise QuorumError("noted")

    monkeypatch.setattr(runner, "run", note)
    assert call(monkeypatch, "run", "quickstart") == 4
    arguments = ["--out", str(tmp_path), "--set", "seed=2", "--set", "name=x", "--engine", "ray"]
    assert call(monkeypatch, "run", "quickstart", *arguments, "--data-dir", "d", "--resume", "--keep-models") == 4
    for _, options in calls:
        del options["progress"]
    assert calls == [
        (resolve("quickstart"), {"out": None, "data_dir": None, "resume": False, "keep_models": False}),
        (
            resolve("quickstart", ["seed=2", "name=x", "engine.kind=ray"]),
            {"out": tmp_path, "data_dir": Path("d"), "resume": True, "keep_models": True},
        ),
    ]


@pytest.mark.slow
def test_a_dry_run_says_what_would_be_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runner, "run", lambda *args, **options: pytest.fail("must not run"))
    assert call(monkeypatch, "run", "quickstart", "--dry-run") == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert call(monkeypatch, "run", "quickstart", "--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    said, found = shown.pop("estimate"), told.pop("estimate")
    assert told == shown
    assert shown["worlds"] == 5
    assert set(said["seconds"]) == set(found["seconds"]) == {"all", *PHASES}


@pytest.mark.slow
def test_the_package_offers_run_without_loading_it() -> None:
    done = _python(
        "-c",
        "import sys, scenarios\n"
        "assert 'numpy' not in sys.modules\n"
        "from scenarios import run\n"
        "assert callable(run)\n"
        "try:\n    scenarios.rum\n"
        "except AttributeError as error:\n    print(error)",
    )
    assert done.stdout == "module 'scenarios' has no attribute 'rum'\n", done.stderr


def test_windows_gets_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert call(monkeypatch, "list") == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("error: Windows is not supported")
    assert printed.err.endswith("use WSL 2\n")


def test_the_module_is_the_command() -> None:
    done = _python("-m", "scenarios.cli", "--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "federation")
