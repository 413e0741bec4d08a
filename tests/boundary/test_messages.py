"""The plugin that keeps the wording of messages: what it records, compares and rewrites."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.messages import TESTS, merged, read, spoken, steady, write

from federation.contract.errors import InputError

HERE = ("boundary/test_messages.py", "test_here")
GONE = ("boundary/test_gone.py", "test_gone")


def test_a_file_is_read_as_it_was_written(tmp_path):
    kept = {HERE: {"InputError: b", "InputError: [a] # b"}, ("a.py", "Test::test"): {"error: a"}}
    write({**kept, GONE: set()}, tmp_path / "messages.txt")
    assert read(tmp_path / "messages.txt") == kept


@pytest.mark.parametrize(
    ("whole", "existing", "left"),
    [
        ({HERE}, None, {"new"}),
        (set(), None, {"old", "new"}),
        ({HERE}, {HERE}, {"new"}),
    ],
)
def test_lines_of_tests_that_ran_replace_those_that_are_kept(whole, existing, left):
    assert merged({HERE: {"old"}, GONE: {"old"}}, {HERE: {"new"}}, whole, existing) == {HERE: left}


def test_a_test_that_did_not_run_keeps_its_lines_while_it_exists():
    other = (HERE[0], "test_other")
    assert merged({other: {"old"}}, {HERE: {"new"}}, {HERE}, None) == {other: {"old"}, HERE: {"new"}}
    assert merged({other: {"old"}}, {}, set(), {HERE}) == {}


def test_parts_that_vary_are_left_out(tmp_path):
    folder = tmp_path.parent
    text = f"{tmp_path}/a.csv of <x at 0x7f00aa11> at 127.0.0.1:80 by process 12\n2026-01-02 03:04 with 1.2.3 or 1.25"
    assert steady(text, folder) == (
        r"<folder>/a.csv of <x at <address>> at 127.0.0.1:<port> by process <pid>\n<time> with <version> or 1.25"
    )


def test_the_text_of_other_libraries_is_left_out(tmp_path):
    error = InputError("a.csv cannot be read: no such luck; name another")
    error.__cause__ = OSError("no such luck")
    assert spoken(error, tmp_path) == "InputError: a.csv cannot be read: <OSError>; name another"


@pytest.mark.slow
def test_a_message_that_is_not_kept_fails_and_names_the_command(tmp_path):
    """Another run of pytest, over a copy of the plugin and one test."""
    tests = tmp_path / "tests"
    (tests / "support").mkdir(parents=True)
    (tests / "support/messages.py").write_text((TESTS / "support/messages.py").read_text())
    (tests / "conftest.py").write_text('pytest_plugins = ["support.messages"]\n')
    (tests / "test_toy.py").write_text(
        "import pytest\n"
        "from federation.contract.errors import InputError\n"
        "@pytest.mark.parametrize('part', ['a', 'b'])\n"
        "def test_toy(part):\n"
        "    with pytest.raises(InputError):\n"
        "        raise InputError(f'{part} is wrong')\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tests), str(TESTS.parent)])
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    kept = Path(tests / "messages.txt")
    assert run("-n", "2", "--accept-messages").returncode == 0
    assert kept.read_text().splitlines()[3:] == [
        "[test_toy.py]",
        "test_toy",
        "    InputError: a is wrong",
        "    InputError: b is wrong",
    ]
    assert run("-n", "0").returncode == 0
    kept.write_text(kept.read_text().replace("b is", "b was"))
    failed = run("-n", "0")
    assert failed.returncode == 1
    assert "InputError: b is wrong\n" in failed.stdout
    assert "--accept-messages tests/test_toy.py" in failed.stdout
    assert run("-n", "0", "-k", "test_toy and b", "--accept-messages").returncode == 0
    assert "b was wrong" in kept.read_text()  # as not all cases of the function ran
    assert run("-n", "0", "--accept-messages").returncode == 0
    assert "b was wrong" not in kept.read_text()
