from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from federation.contract.errors import BudgetExceededError, QuorumError
from scenarios import cli
from scenarios.runs import runner
from scenarios.settings.loader import library
from scenarios.settings.schema import resolve

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("run", "show", "validate", "list", "schema", "audit", "privacy")
HEAVY = ("numpy", "scipy", "flwr", "ray", "sklearn", "matplotlib", "pydantic", "yaml", "jinja2", "pyarrow")


def _call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["federation", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_nothing_heavy(command: str) -> None:
    code = (
        "import sys\n"
        "from scenarios.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as exit:\n    assert exit.code == 0, exit.code\n"
        f"heavy = [name for name in {HEAVY} if name in sys.modules]\n"
        "print('HEAVY', heavy)"
    )
    done = _python(code, *command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: federation" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_help_lists_every_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _call(monkeypatch, "--help") == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert f" {command} " in text


def test_show_prints_what_resolves_to_the_same_scenario(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _call(monkeypatch, "show", "quickstart", "--set", "trials.splits=2", "--set", "seed=5") == 0
    path = tmp_path / "shown.yaml"
    path.write_text(capsys.readouterr().out)
    shown = resolve(path)
    assert shown == resolve("quickstart", ["trials.splits=2", "seed=5"])
    assert (shown.trials.splits, shown.seed) == (2, 5)


@pytest.mark.parametrize("name", sorted(library()))
def test_what_is_shown_of_a_library_scenario_resolves_to_it(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _call(monkeypatch, "show", name) == 0
    (tmp_path / "shown.yaml").write_text(capsys.readouterr().out)
    assert resolve(tmp_path / "shown.yaml") == resolve(name)
    assert _call(monkeypatch, "show", name, "--json") == 0
    assert resolve(json.loads(capsys.readouterr().out)) == resolve(name)


def test_show_says_why_the_default_is_one_and_hides_what_does_not_apply(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call(monkeypatch, "show", "quickstart") == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("protocols:")
    listed = lines[start + 1 : lines.index("privacy:")]
    entries = [line for line in listed if line.startswith("  - ")]
    reason = listed[: listed.index(entries[0])]
    assert reason
    assert len(reason) <= 2
    assert "the default" in reason[0]
    assert listed == [*reason, *entries]  # no other entry needs an explanation
    assert "shrinkage" in entries[0]
    assert "regularisation" not in entries[0]
    assert "sensitivity" not in entries[0]
    assert "perturb: output, sensitivity: published" in entries[2]
    assert "shrinkage" not in entries[2]


def test_validate_counts_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "data: {source: digits}\nparties: {count: [10, 20]}\nprivacy: {epsilon: [1, 2, 3]}\n"
        "trials: {splits: 4, noise: 5}\n"
        "protocols: [{kind: soft_vote, noise: [pure, gaussian]}, {kind: pooled}]\n"
    )
    assert _call(monkeypatch, "validate", str(path)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "OK: mine",
        "sweep: parties.count, protocols.noise",
        "support.worlds: 8 (2 settings x 4 splits)",
        "variants: 3 (soft_vote, soft_vote-gaussian, pooled)",
        "releases: 240 (8 worlds x 30: 3 epsilons x 5 noise draws per private variant)",
        "soft_vote: epsilon 1, delta 0 for one party (replace); the aggregator adds the noise and must be trusted; a "
        "party sends one vote on every public row without noise",
        "soft_vote-gaussian: epsilon 1, delta 1e-06 for one party (replace); the aggregator adds the noise and must be "
        "trusted; a party sends one vote on every public row without noise",
    ]


def test_validate_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _call(monkeypatch, "validate", "quickstart", "--set", "parties.count=[10, 20]", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    promised = found.pop("promises")
    assert [one["variant"] for one in promised] == found["variants"][:4]
    assert promised[0] == {
        "variant": "soft_vote",
        "promise": "epsilon 1, delta 0 for one party (replace); the aggregator adds the noise and must be trusted",
        "sends": "a party sends one vote on every public row (430 numbers) without noise",
    }
    assert found == {
        "scenario": "quickstart",
        "sweep": ["parties.count"],
        "settings": 2,
        "splits": 5,
        "worlds": 10,
        "variants": [
            "soft_vote", "soft_vote-gaussian", "soft_vote-output-published-regularisation=0.0001",
            "majority_vote-published", "pooled", "individual",
        ],
        "releases_per_world": 200,
        "releases": 2000,
    }  # fmt: skip


def test_every_library_scenario_is_valid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for path in sorted((ROOT / "scenarios" / "library").glob("*.yaml")):
        assert _call(monkeypatch, "validate", path.stem) == 0
        assert capsys.readouterr().out.startswith(f"OK: {path.stem}\n")


def test_list_shows_every_kind_of_choice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _call(monkeypatch, "list") == 0
    lines = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"quickstart", "digits", "soft_vote", "majority_vote", "pooled", "logistic", "gaussian"} <= set(lines)
    assert _call(monkeypatch, "list", "--json") == 0
    sections = json.loads(capsys.readouterr().out)
    assert set(sections) == {"scenarios", "data", "protocols", "classifiers", "mechanisms"}
    assert set(sections["scenarios"]) == set(library()) >= {"scale", "kdd-large", "har-robust"}
    assert {"digits", "gaussians"} <= set(sections["data"])
    assert all(text for entries in sections.values() for text in entries.values())


def test_schema_prints_a_json_schema_in_which_the_name_is_optional(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _call(monkeypatch, "schema") == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["required"] == ["data", "parties", "privacy"]
    kinds = [option["properties"]["kind"]["const"] for option in schema["properties"]["protocols"]["items"]["oneOf"]]
    assert {"soft_vote", "pooled"} <= set(kinds)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validate", "quickstrt"], "did you mean 'quickstart'?"),
        (
            ["validate", "quickstart", "--set", "parties.coutn=1"],
            "--set parties.coutn=1: parties.coutn: unknown key",
        ),
        (["run", "quickstart", "--set", "privacy.epsilon=-1"], "privacy.epsilon: must be greater than 0"),
        (["run"], "Missing argument"),
        (["run", "quickstart", "--engine", "rya"], "'rya' is not one of"),
        (["rum"], "No such command 'rum'"),
    ],
)
def test_bad_input_ends_with_one_line_and_code_2(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _call(monkeypatch, *arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err


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
    ],
)
def test_failures_end_with_their_code(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.delenv("FEDERATION_DEBUG", raising=False)
    monkeypatch.setattr(runner, "run", fail)
    assert _call(monkeypatch, "run", "quickstart") == code
    assert capsys.readouterr().err == text


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise ValueError("odd")

    monkeypatch.setenv("FEDERATION_DEBUG", "1")
    monkeypatch.setattr(runner, "run", fail)
    monkeypatch.setattr(sys, "argv", ["federation", "run", "quickstart"])
    with pytest.raises(ValueError, match="odd"):
        cli.main()


def test_run_hands_its_options_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[tuple[Any, dict[str, Any]]] = []

    def note(scenario: Any, **options: Any) -> None:
        calls.append((scenario, options))
        raise QuorumError("noted")

    monkeypatch.setattr(runner, "run", note)
    assert _call(monkeypatch, "run", "quickstart") == 4
    arguments = ["--out", str(tmp_path), "--set", "seed=2", "--set", "name=x", "--engine", "ray"]
    assert _call(monkeypatch, "run", "quickstart", *arguments, "--data-dir", "d", "--resume", "--keep-models") == 4
    for _, options in calls:
        del options["progress"]
    assert calls == [
        (resolve("quickstart"), {"out": None, "data_dir": None, "resume": False, "keep_models": False}),
        (
            resolve("quickstart", ["seed=2", "name=x", "engine.kind=ray"]),
            {"out": tmp_path, "data_dir": Path("d"), "resume": True, "keep_models": True},
        ),
    ]


def test_a_dry_run_says_what_would_be_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runner, "run", lambda *args, **options: pytest.fail("must not run"))
    assert _call(monkeypatch, "run", "quickstart", "--dry-run") == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert _call(monkeypatch, "run", "quickstart", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out) == shown
    assert shown["worlds"] == 5


def test_the_package_offers_run_without_loading_it() -> None:
    done = _python(
        "import sys, scenarios\n"
        "assert 'numpy' not in sys.modules\n"
        "from scenarios import run\n"
        "assert callable(run)\n"
        "try:\n    scenarios.rum\n"
        "except AttributeError as error:\n    print(error)"
    )
    assert done.stdout == "module 'scenarios' has no attribute 'rum'\n", done.stderr
